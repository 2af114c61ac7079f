//go:build cgo && linux

package libnixl

/*
#cgo noescape kvg_create
#cgo nocallback kvg_create
#cgo nocallback kvg_post
#cgo nocallback kvg_status
#cgo nocallback kvg_nixl_release
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"unsafe"

	"github.com/kvgate/kvgate/nixl"
)

func (n *native) prepare(agent handle, peer string, m nixl.MemoryType, d []nixl.Descriptor) (handle, status, error) {
	if err := both(n.needList(), n.need(C.KVG_SYM_prep_xfer_dlist, C.KVG_SYM_release_xfer_dlist_handle)); err != nil {
		return nil, 0, err
	}
	var h C.kvg_h
	s := C.kvg_prepare(n.table, C.kvg_h(agent), zeroed(peer), C.int(m), descs(d), C.size_t(len(d)), &h)
	return handle(h), status(s), nil
}

func (n *native) releaseList(agent, list handle) (status, error) {
	return status(C.kvg_release_list(n.table, C.kvg_h(agent), C.kvg_h(list))), nil
}

func (n *native) needRequest() error {
	return n.need(C.KVG_SYM_post_xfer_req, C.KVG_SYM_get_xfer_status, C.KVG_SYM_release_xfer_req, C.KVG_SYM_destroy_xfer_req)
}

func (n *native) make(agent handle, op nixl.Op, local handle, li []int32, remote handle, ri []int32) (handle, status, error) {
	if err := both(n.needRequest(), n.need(C.KVG_SYM_make_xfer_req)); err != nil {
		return nil, 0, err
	}
	var q C.kvg_h
	s := C.kvg_make(n.table, C.kvg_h(agent), C.int(op),
		C.kvg_h(local), (*C.int)(unsafe.Pointer(unsafe.SliceData(li))), C.size_t(len(li)),
		C.kvg_h(remote), (*C.int)(unsafe.Pointer(unsafe.SliceData(ri))), C.size_t(len(ri)), &q)
	return handle(q), status(s), nil
}

func (n *native) create(agent handle, s *nixl.Spec, peer []byte) (handle, status, error) {
	if !n.ready[C.KVG_SYM_create_xfer_req].Load() {
		err := both(n.needRequest(), n.needList())
		if err = both(err, n.need(C.KVG_SYM_create_xfer_req, C.KVG_SYM_xfer_dlist_clear)); err != nil {
			return nil, 0, err
		}
	}
	made := C.kvg_create(n.address(), number(agent), C.int(s.Op), C.int(s.LocalMemory), descs(s.Local),
		C.int(s.RemoteMemory), descs(s.Remote), C.size_t(len(s.Local)), (*C.char)(unsafe.Pointer(&peer[0])))
	return handle(made.req), status(made.status), nil
}

func (n *native) address() C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(n.table))) }
func number(h handle) C.uintptr_t      { return C.uintptr_t(uintptr(h)) }

// The symbols of these were resolved when the request was made.

func (n *native) post(agent, req handle) (status, error) {
	return status(C.kvg_post(n.address(), number(agent), number(req))), nil
}

func (n *native) poll(agent, req handle) (status, error) {
	return status(C.kvg_status(n.address(), number(agent), number(req))), nil
}

func (n *native) release(agent, req handle) (status, error) {
	return status(C.kvg_nixl_release(n.address(), number(agent), number(req))), nil
}

func (n *native) backendOf(agent, req handle, backends []handle) (int, status, error) {
	if err := n.need(C.KVG_SYM_query_xfer_backend, C.KVG_SYM_destroy_backend); err != nil {
		return 0, 0, err
	}
	var i C.int
	s := C.kvg_request_backend(n.table, C.kvg_h(agent), C.kvg_h(req), (*C.kvg_h)(unsafe.Pointer(unsafe.SliceData(backends))), C.size_t(len(backends)), &i)
	return int(i), status(s), nil
}

func (n *native) notify(agent handle, peer string, message []byte) (status, error) {
	if err := n.need(C.KVG_SYM_gen_notif); err != nil {
		return 0, err
	}
	return status(C.kvg_notify(n.table, C.kvg_h(agent), zeroed(peer), unsafe.Pointer(unsafe.SliceData(message)), C.size_t(len(message)))), nil
}

func (n *native) notifications(agent handle, dst []nixl.Notification) ([]nixl.Notification, status, error) {
	err := n.need(C.KVG_SYM_get_notifs, C.KVG_SYM_create_notif_map, C.KVG_SYM_destroy_notif_map, C.KVG_SYM_notif_map_size,
		C.KVG_SYM_notif_map_get_agent_at, C.KVG_SYM_notif_map_get_notifs_size, C.KVG_SYM_notif_map_get_notif)
	if err != nil {
		return dst, 0, err
	}
	var o out
	defer o.free()
	s := o.status(C.kvg_notifs(n.table, C.kvg_h(agent), &o.c))
	for r := o.records(); len(r) > 1; r = r[2:] {
		dst = append(dst, nixl.Notification{From: string(r[0]), Message: append([]byte{}, r[1]...)})
	}
	return dst, s, nil
}
