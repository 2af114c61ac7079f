//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"slices"
	"sort"
	"sync"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// allocation is memory of a context, on the device or pinned.
type allocation struct {
	c    *softContext
	base uint64
	size uint64
	kind cuda.MemoryKind
	host []byte // of pinned and managed memory

	opened     bool // it is another process's
	virtual    bool // of the virtual memory functions: see [Device.MakeVirtual]
	syncMemops bool // the attribute
	registered bool // host memory of somebody else's
}

func (a allocation) release() error {
	if a.opened {
		return a.closeAll()
	}
	switch {
	case a.registered:
		return a.c.sim.UnregisterHost(cuda.PinnedBuffer{Host: a.host, Device: cuda.DevicePtr(a.base)})
	case a.kind == cuda.ManagedMemory:
		return a.c.sim.FreeManaged(cuda.ManagedBuffer{Host: a.host, Device: cuda.DevicePtr(a.base)})
	case a.kind == cuda.PinnedMemory:
		return a.c.sim.FreePinned(cuda.PinnedBuffer{Host: a.host, Device: cuda.DevicePtr(a.base)})
	}
	return a.c.sim.Free(cuda.DevicePtr(a.base))
}

// counted returns what the allocation takes of the device's memory.
func (a allocation) counted() uint64 {
	if a.kind != cuda.DeviceMemory || a.opened {
		return 0
	}
	return a.size
}

// memory is the allocations of a device, by address.
type memory struct {
	mu   sync.RWMutex
	list []allocation
	used uint64 // bytes on the device
}

// below returns the number of allocations that start at or below p.
func (m *memory) below(p uint64) int {
	return sort.Search(len(m.list), func(i int) bool { return m.list[i].base > p })
}

func (m *memory) add(a allocation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.Insert(m.list, m.below(a.base), a)
	m.used += a.counted()
}

func (m *memory) find(p uint64) (allocation, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if i := m.below(p) - 1; i >= 0 && p-m.list[i].base < m.list[i].size {
		return m.list[i], true
	}
	return allocation{}, false
}

func (m *memory) remove(base uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.below(base) - 1; i >= 0 && m.list[i].base == base {
		m.used -= m.list[i].counted()
		m.list = slices.Delete(m.list, i, i+1)
	}
}

// drop takes out all that is a context's.
func (m *memory) drop(c *softContext) (gone []allocation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(a allocation) bool {
		if a.c != c {
			return false
		}
		gone = append(gone, a)
		m.used -= a.counted()
		return true
	})
	return gone
}

// find returns the allocation that an address lies in. The address space is one
// for all devices.
func find(p uint64) (allocation, bool) {
	machine.RLock()
	defer machine.RUnlock()
	for _, d := range machine.devices {
		if d == nil {
			continue
		}
		if a, ok := d.memory.find(p); ok {
			return a, true
		}
	}
	return allocation{}, false
}

func doMemAllocV2(out *C.CUdeviceptr, size C.size_t) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	if r := c.safe(); r != 0 {
		return r
	}
	p, err := c.sim.Alloc(uint64(size), cuda.AllocOptions{})
	if err != nil {
		return result(err)
	}
	c.device.memory.add(allocation{c: c, base: uint64(p), size: uint64(size), kind: cuda.DeviceMemory})
	*out = C.CUdeviceptr(p)
	return 0
}

func doMemFreeV2(p C.CUdeviceptr) C.CUresult {
	if p == 0 {
		return 0
	}
	mine, r := current()
	if mine == nil {
		return r
	}
	if r := mine.safe(); r != 0 {
		return r
	}
	return free(uint64(p), cuda.DeviceMemory)
}

func free(p uint64, kind cuda.MemoryKind) C.CUresult {
	a, ok := find(p)
	if kind == cuda.DeviceMemory && a.kind == cuda.ManagedMemory {
		kind = a.kind
	}
	if !ok || a.base != p || a.kind != kind || a.opened || a.registered {
		return fail(cuda.ErrInvalidValue)
	}
	if err := a.release(); err != nil {
		return result(err)
	}
	a.c.device.memory.remove(p)
	return 0
}

func doMemHostAlloc(out *unsafe.Pointer, size C.size_t, flags C.uint) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	if flags > 7 {
		return fail(cuda.ErrInvalidValue)
	}
	if r := c.safe(); r != 0 {
		return r
	}
	b, err := c.sim.AllocPinned(uint64(size), cuda.AllocOptions{})
	if err != nil {
		return result(err)
	}
	c.device.memory.add(allocation{c: c, base: uint64(b.Device), size: uint64(size), kind: cuda.PinnedMemory, host: b.Host})
	*out = unsafe.Pointer(unsafe.SliceData(b.Host))
	return 0
}

func doMemFreeHost(host unsafe.Pointer) C.CUresult {
	return free(uint64(uintptr(host)), cuda.PinnedMemory)
}

func doMemHostGetDevicePointerV2(out *C.CUdeviceptr, host unsafe.Pointer, flags C.uint) C.CUresult {
	p := uint64(uintptr(host))
	if a, ok := find(p); !ok || a.kind != cuda.PinnedMemory || flags != 0 {
		return fail(cuda.ErrInvalidValue)
	}
	*out = C.CUdeviceptr(p)
	return 0
}

func doMemGetInfoV2(free, total *C.size_t) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	m := &c.device.memory
	m.mu.RLock()
	defer m.mu.RUnlock()
	*total = C.size_t(c.device.info.Memory)
	*free = C.size_t(c.device.info.Memory - m.used)
	return 0
}

func doMemGetAddressRangeV2(base *C.CUdeviceptr, size *C.size_t, p C.CUdeviceptr) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	if err := c.dead(); err != nil {
		return result(err)
	}
	a, ok := find(uint64(p))
	if !ok {
		return fail(cuda.ErrNotFound)
	}
	from, n := a.segment(uint64(p))
	if base != nil {
		*base = C.CUdeviceptr(from)
	}
	if size != nil {
		*size = C.size_t(n)
	}
	return 0
}

// dead returns the context's sticky error.
func (c *softContext) dead() error { return c.sim.Poll(nil) }

// Where an address is in no allocation every value is 0, which is no error.
func doPointerGetAttributes(n C.uint, attributes *C.int, values *unsafe.Pointer, p C.CUdeviceptr) C.CUresult {
	mine, r := current()
	if mine == nil {
		return r
	}
	if err := mine.dead(); err != nil {
		return result(err)
	}
	a, _ := find(uint64(p))
	for i, attribute := range unsafe.Slice(attributes, int(n)) {
		if r := pointerAttribute(unsafe.Slice(values, int(n))[i], int(attribute), uint64(p), a); r != 0 {
			return r
		}
	}
	return 0
}

// pointerAttribute answers CU_POINTER_ATTRIBUTE_*; a is empty outside of
// allocations.
func pointerAttribute(value unsafe.Pointer, attribute int, p uint64, a allocation) C.CUresult {
	c := a.c
	set32 := func(v uint32) { *(*uint32)(value) = v }
	set64 := func(v uint64) { *(*uint64)(value) = v }
	switch attribute {
	case 1: // context
		if set64(0); c != nil {
			set64(c.handle)
		}
	case 2: // memory type: host 1, device 2
		switch {
		case c == nil:
			set32(0)
		case a.kind == cuda.PinnedMemory:
			set32(1)
		default:
			set32(2)
		}
	case 3: // device pointer
		if set64(0); c != nil {
			set64(p)
		}
	case 4: // host pointer
		if set64(0); c != nil && a.kind != cuda.DeviceMemory {
			set64(p)
		}
	case 6: // synchronous memory operations
		*(*uint8)(value) = 0
		if a.syncMemops {
			*(*uint8)(value) = 1
		}
	case 8: // managed
		*(*uint8)(value) = 0
		if c != nil && a.kind == cuda.ManagedMemory {
			*(*uint8)(value) = 1
		}
	case 9: // device
		if set32(^uint32(0)); c != nil {
			set32(uint32(c.device.ordinal))
		}
	case 11: // range
		from, _ := a.segment(p)
		set64(from)
	case 12:
		_, n := a.segment(p)
		set64(n)
	case 13: // mapped
		*(*uint8)(value) = 0
		if c != nil {
			*(*uint8)(value) = 1
		}
	default:
		return fail(cuda.ErrNotSupported)
	}
	return 0
}
