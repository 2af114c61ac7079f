//go:build cgo && linux

package libnixl

/*
#cgo CFLAGS: -O2 -Wall
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/nixl"
)

// native is the loaded library. Each method resolves the symbols that it needs
// when it is first called.
type native struct {
	lib   *dl.Library
	table *C.kvg_table // in C memory, since shims keep nothing
	ready [C.KVG_SYMBOLS]atomic.Bool
}

// boundSymbols returns the names in the table of functions.
func boundSymbols() []string {
	names := make([]string, C.KVG_SYMBOLS)
	for i := range names {
		names[i] = C.GoString(C.kvg_symbol_name(C.int(i)))
	}
	return names
}

func openDriver(file string) (d driver, path string, stub bool, err error) {
	lib, err := dl.Open(file)
	if err != nil {
		return nil, "", false, err
	}
	n := &native{lib: lib, table: (*C.kvg_table)(C.calloc(1, C.sizeof_kvg_table))}
	if err = n.need(C.KVG_SYM_is_stub); err == nil {
		stub = bool(C.kvg_is_stub(n.table))
	}
	if err != nil || stub {
		C.free(unsafe.Pointer(n.table))
		if e := lib.Close(); e != nil && err == nil {
			err = e
		}
		return nil, lib.Path(), stub, err
	}
	return n, lib.Path(), false, nil
}

// need resolves symbols. Two goroutines that do so at once write the same.
func (n *native) need(symbols ...int) error {
	for _, i := range symbols {
		if n.ready[i].Load() {
			continue
		}
		name := C.GoString(C.kvg_symbol_name(C.int(i)))
		p, err := n.lib.Symbol(name)
		if err != nil {
			return fmt.Errorf("%w: %w", nixl.ErrUnavailable, err)
		}
		atomic.StorePointer((*unsafe.Pointer)(&n.table.fn[i]), p)
		n.ready[i].Store(true)
	}
	return nil
}

func (n *native) needRegList() error {
	return n.need(C.KVG_SYM_create_reg_dlist, C.KVG_SYM_destroy_reg_dlist, C.KVG_SYM_reg_dlist_add_desc)
}

func (n *native) needList() error {
	return n.need(C.KVG_SYM_create_xfer_dlist, C.KVG_SYM_destroy_xfer_dlist, C.KVG_SYM_xfer_dlist_add_desc)
}

func (n *native) needDescription() error {
	return n.need(C.KVG_SYM_destroy_mem_list, C.KVG_SYM_mem_list_size, C.KVG_SYM_mem_list_get, C.KVG_SYM_destroy_params,
		C.KVG_SYM_params_is_empty, C.KVG_SYM_params_create_iterator, C.KVG_SYM_params_iterator_next, C.KVG_SYM_params_destroy_iterator)
}

// out is a buffer that a shim fills.
type out struct{ c C.kvg_out }

func (o *out) free() { C.free(unsafe.Pointer(o.c.data)) }

// records returns what is in the buffer; it must not be used after free.
func (o *out) records() [][]byte {
	return splitRecords(unsafe.Slice((*byte)(unsafe.Pointer(o.c.data)), int(o.c.len)))
}

func splitRecords(b []byte) [][]byte {
	var r [][]byte
	for len(b) >= 8 {
		n := binary.NativeEndian.Uint64(b)
		r = append(r, b[8:8+n])
		b = b[8+n:]
	}
	return r
}

// status turns lost memory into a failure.
func (o *out) status(r C.int) status {
	if r == 0 && o.c.oom != 0 {
		return statusNoMemory
	}
	return status(r)
}

func pairs(r [][]byte) map[string]string {
	m := make(map[string]string, len(r)/2)
	for i := 0; i+1 < len(r); i += 2 {
		m[string(r[i])] = string(r[i+1])
	}
	return m
}

func info(mems, params *out) pluginInfo {
	p := pluginInfo{params: pairs(params.records())}
	for _, m := range mems.records() {
		p.memories = append(p.memories, nixl.MemoryType(m[0]))
	}
	return p
}

// zeroed returns s with the zero byte that C wants behind it.
func zeroed(s string) *C.char {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return (*C.char)(unsafe.Pointer(&b[0]))
}

func descs(d []nixl.Descriptor) *C.kvg_desc {
	return (*C.kvg_desc)(unsafe.Pointer(unsafe.SliceData(d)))
}
