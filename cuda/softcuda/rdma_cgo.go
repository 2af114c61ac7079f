//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// change applies fn to the allocation that p lies in, if there is one.
func (m *memory) change(p uint64, fn func(*allocation)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.below(p) - 1
	if i < 0 || p-m.list[i].base >= m.list[i].size {
		return false
	}
	fn(&m.list[i])
	return true
}

// segmentBytes is the granularity that drivers ask for where memory is mapped.
const segmentBytes = 2 << 20

// segment returns the range that attributes of p name: the allocation, or what
// one cuMemMap mapped of it.
func (a allocation) segment(p uint64) (base, size uint64) {
	if !a.virtual {
		return a.base, a.size
	}
	off := (p - a.base) / segmentBytes * segmentBytes
	return a.base + off, min(segmentBytes, a.size-off)
}

// MakeVirtual makes the allocation that p lies in be as if it came from the
// virtual memory functions (cuMemCreate, cuMemMap), as far as they show: it has no
// attribute for blocking copies and fills, and what is asked after the range of an
// address answers with the segment of 2 MiB that was mapped there.
func (d *Device) MakeVirtual(p cuda.DevicePtr) error {
	if !d.memory.change(uint64(p), func(a *allocation) { a.virtual = true }) {
		return fmt.Errorf("cuda/softcuda: %#x: no allocation of device %d: %w", uint64(p), d.ordinal, cuda.ErrNotFound)
	}
	return nil
}

// SyncMemops returns the attribute CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the
// allocation that p lies in; false where there is none.
func (d *Device) SyncMemops(p cuda.DevicePtr) bool {
	a, _ := d.memory.find(uint64(p))
	return a.syncMemops
}

// ContextFlags returns the flags of the primary context, 0 while there is none.
func (d *Device) ContextFlags() uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.primary == nil {
		return 0
	}
	d.primary.mu.Lock()
	defer d.primary.mu.Unlock()
	return d.primary.flags
}

// Copies and fills are over here when they return whether they are asked to be
// or not. The result for virtual memory: UCX, issue 9895.
func doPointerSetAttribute(value unsafe.Pointer, attribute C.int, p C.CUdeviceptr) C.CUresult {
	const syncMemops = 6
	a, ok := find(uint64(p))
	switch {
	case !ok || a.kind != cuda.DeviceMemory:
		return fail(cuda.ErrInvalidValue)
	case attribute != syncMemops || a.virtual:
		return fail(cuda.ErrNotSupported)
	}
	on := *(*uint32)(value) != 0
	a.c.device.memory.change(uint64(p), func(a *allocation) { a.syncMemops = on })
	return 0
}

// doCtxSetFlags takes what cuCtxSetFlags does: the flags of cuCtxCreate and
// CU_CTX_SYNC_MEMOPS among them.
func doCtxSetFlags(flags C.uint) C.CUresult {
	const known = 0xff // CU_CTX_FLAGS_MASK
	c, r := current()
	if c == nil {
		return r
	}
	if flags&^known != 0 {
		return fail(cuda.ErrInvalidValue)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flags = uint32(flags)
	return 0
}

func doFlushGPUDirectRDMAWrites(target, scope C.int) C.CUresult {
	const (
		currentContext = 0
		owner          = 100
		allDevices     = 200
	)
	c, r := current()
	switch {
	case c == nil:
		return r
	case target != currentContext || scope != owner && scope != allDevices:
		return fail(cuda.ErrInvalidValue)
	}
	return result(c.sim.FlushRDMA())
}
