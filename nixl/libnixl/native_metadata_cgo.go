//go:build cgo && linux

package libnixl

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"unsafe"

	"github.com/kvgate/kvgate/nixl"
)

func (n *native) metadata(agent handle) ([]byte, status, error) {
	if err := n.need(C.KVG_SYM_get_local_md); err != nil {
		return nil, 0, err
	}
	var p unsafe.Pointer
	var size C.size_t
	s := C.kvg_local_md(n.table, C.kvg_h(agent), &p, &size)
	return taken(s, p, size), status(s), nil
}

func (n *native) partialMetadata(agent handle, m nixl.MemoryType, regions []nixl.Descriptor) ([]byte, status, error) {
	if err := both(n.needRegList(), n.need(C.KVG_SYM_get_local_partial_md)); err != nil {
		return nil, 0, err
	}
	var p unsafe.Pointer
	var size C.size_t
	s := C.kvg_partial_md(n.table, C.kvg_h(agent), C.int(m), descs(regions), C.size_t(len(regions)), &p, &size)
	return taken(s, p, size), status(s), nil
}

// taken copies what the library allocated for us, and frees it.
func taken(s C.int, p unsafe.Pointer, n C.size_t) []byte {
	if s != 0 {
		return nil
	}
	defer C.free(p)
	return append([]byte{}, unsafe.Slice((*byte)(p), int(n))...)
}

func (n *native) load(agent handle, blob []byte) (string, status, error) {
	if err := n.need(C.KVG_SYM_load_remote_md); err != nil {
		return "", 0, err
	}
	var o out
	defer o.free()
	s := o.status(C.kvg_load_md(n.table, C.kvg_h(agent), unsafe.Pointer(unsafe.SliceData(blob)), C.size_t(len(blob)), &o.c))
	if r := o.records(); len(r) == 1 {
		return string(r[0]), s, nil
	}
	return "", s, nil
}

func (n *native) invalidate(agent handle, peer string) (status, error) {
	if err := n.need(C.KVG_SYM_invalidate_remote_md); err != nil {
		return 0, err
	}
	return status(C.kvg_invalidate(n.table, C.kvg_h(agent), zeroed(peer))), nil
}

func (n *native) check(agent handle, peer string, m nixl.MemoryType, regions []nixl.Descriptor) (status, error) {
	if err := both(n.needList(), n.need(C.KVG_SYM_check_remote_md)); err != nil {
		return 0, err
	}
	return status(C.kvg_check_md(n.table, C.kvg_h(agent), zeroed(peer), C.int(m), descs(regions), C.size_t(len(regions)))), nil
}

func (n *native) connect(agent handle, peer string) (status, error) {
	if err := n.need(C.KVG_SYM_agent_make_connection); err != nil {
		return 0, err
	}
	return status(C.kvg_connect(n.table, C.kvg_h(agent), zeroed(peer))), nil
}
