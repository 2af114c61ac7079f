//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"sync/atomic"

	"github.com/kvgate/kvgate/cuda"
)

// handles are the handles of one kind. C has a copy to look up by.
type handles struct {
	entries []entry
	free    []uint32
}

type entry struct {
	handle  uint64 // 0: free
	raw     uint64
	gen     uint32
	foreign bool
	sleep   bool    // of an event: who synchronises with it gives the processor away
	from    *Device // of an imported event
}

// own returns the driver's handles of what this device has made.
func (h *handles) own() (raw []C.uint64_t) {
	for _, e := range h.entries {
		if e.handle != 0 && !e.foreign {
			raw = append(raw, C.uint64_t(e.raw))
		}
	}
	return raw
}

// index is the slot of a handle.
func index(handle uint64) uint32 { return uint32(handle & (1<<C.KVG_INDEX_BITS - 1)) }

// devices counts the devices that were opened. Their numbers are in their handles,
// so that one of another device is told, as long as there are not KVG_DEVICES others
// between them.
var devices atomic.Uint64

const maxGeneration = 1<<24 - 1

// add makes a handle. A slot is used again under another generation, so that a
// handle that was destroyed is told from its successor.
func (d *Device) add(kind int, raw uint64, foreign bool, params int32) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &d.handles[kind]
	var i uint32
	if n := len(h.free); n > 0 {
		i, h.free = h.free[n-1], h.free[:n-1]
	} else if i = uint32(len(h.entries)); i < C.KVG_CHUNK*C.KVG_CHUNKS {
		h.entries = append(h.entries, entry{})
	} else {
		return 0, fmt.Errorf("cuda/driver: more than %d handles: %w", i, cuda.ErrOutOfMemory)
	}
	e := &h.entries[i]
	e.gen = e.gen%maxGeneration + 1
	e.handle = uint64(kind)<<56 | uint64(e.gen)<<32 | d.number<<C.KVG_INDEX_BITS | uint64(i)
	e.raw, e.foreign, e.sleep, e.from = raw, foreign, false, nil
	flags := 0
	if foreign {
		flags = C.KVG_FOREIGN
	}
	if C.kvg_entry_set(d.c, C.uint64_t(e.handle), C.uint64_t(raw), C.uint32_t(flags), C.int32_t(params)) == 0 {
		e.handle = 0
		h.free = append(h.free, i)
		return 0, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: "make handle"}
	}
	return e.handle, nil
}

// find returns what a handle stands for.
func (d *Device) find(kind int, handle uint64) (entry, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handles[kind].find(handle)
}

func (h *handles) find(handle uint64) (entry, bool) {
	i := index(handle)
	if handle == 0 || int64(i) >= int64(len(h.entries)) || h.entries[i].handle != handle {
		return entry{}, false
	}
	return h.entries[i], true
}

// take ends a handle and returns what it stood for.
func (d *Device) take(kind int, handle uint64) (entry, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takeLocked(kind, handle)
}

func (d *Device) takeLocked(kind int, handle uint64) (entry, bool) {
	h := &d.handles[kind]
	e, ok := h.find(handle)
	if !ok {
		return e, false
	}
	C.kvg_entry_drop(d.c, C.uint64_t(handle))
	i := index(handle)
	h.entries[i].handle, h.entries[i].from = 0, nil
	h.free = append(h.free, i)
	return e, true
}

// end takes a handle and frees what it stood for, unless that is an engine's own.
// Where the driver lacks what frees it, the symbol is named.
func (d *Device) end(op string, kind int, what string, handle uint64, symbol string, free func(raw C.uint64_t) C.kvg_result) error {
	e, ok := d.take(kind, handle)
	if !ok {
		return badHandle(op, what, handle)
	}
	if e.foreign {
		return nil
	}
	if r := free(C.uint64_t(e.raw)); r.why != C.KVG_OK {
		return d.lacking(op, r, "", symbol)
	}
	return nil
}

func badHandle(op, what string, h uint64) error {
	return &cuda.Error{Code: cuda.ErrInvalidHandle, Op: op, Detail: fmt.Sprintf("%s %#x", what, h)}
}
