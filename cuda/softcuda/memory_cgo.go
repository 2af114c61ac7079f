//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// find returns the allocation that an address lies in and its context. The
// address space is one for all contexts; the thread's own comes first.
func find(p uint64) (c *softContext, base uint64, a allocation, ok bool) {
	mine, _ := current()
	if mine != nil {
		if base, a, ok := mine.find(p); ok {
			return mine, base, a, true
		}
	}
	machine.RLock()
	var others []*softContext
	for _, o := range machine.objects {
		if c, ok := o.(*softContext); ok && c != mine {
			others = append(others, c)
		}
	}
	machine.RUnlock()
	for _, c := range others {
		if base, a, ok := c.find(p); ok {
			return c, base, a, true
		}
	}
	return nil, 0, allocation{}, false
}

func (c *softContext) find(p uint64) (uint64, allocation, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for base, a := range c.memory {
		if p >= base && p-base < a.size {
			return base, a, true
		}
	}
	return 0, allocation{}, false
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
	c.mu.Lock()
	c.memory[uint64(p)] = allocation{size: uint64(size), kind: cuda.DeviceMemory}
	c.mu.Unlock()
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
	c, base, a, ok := find(uint64(p))
	if !ok || base != uint64(p) || a.kind != cuda.DeviceMemory {
		return fail(cuda.ErrInvalidValue)
	}
	if err := c.sim.Free(cuda.DevicePtr(p)); err != nil {
		return result(err)
	}
	c.forget(base)
	return 0
}

func (c *softContext) forget(base uint64) {
	c.mu.Lock()
	delete(c.memory, base)
	c.mu.Unlock()
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
	c.mu.Lock()
	c.memory[uint64(b.Device)] = allocation{size: uint64(size), kind: cuda.PinnedMemory, host: b.Host}
	c.mu.Unlock()
	*out = unsafe.Pointer(unsafe.SliceData(b.Host))
	return 0
}

func doMemAllocHostV2(out *unsafe.Pointer, size C.size_t) C.CUresult {
	return doMemHostAlloc(out, size, 0)
}

func doMemFreeHost(host unsafe.Pointer) C.CUresult {
	p := uint64(uintptr(host))
	c, base, a, ok := find(p)
	if !ok || base != p || a.kind != cuda.PinnedMemory {
		return fail(cuda.ErrInvalidValue)
	}
	if err := c.sim.FreePinned(cuda.PinnedBuffer{Host: a.host, Device: cuda.DevicePtr(base)}); err != nil {
		return result(err)
	}
	c.forget(base)
	return 0
}

func doMemHostGetDevicePointerV2(out *C.CUdeviceptr, host unsafe.Pointer, flags C.uint) C.CUresult {
	p := uint64(uintptr(host))
	if _, _, a, ok := find(p); !ok || a.kind != cuda.PinnedMemory || flags != 0 {
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
	c.mu.Lock()
	defer c.mu.Unlock()
	used := uint64(0)
	for _, a := range c.memory {
		if a.kind == cuda.DeviceMemory {
			used += a.size
		}
	}
	*total = C.size_t(c.device.info.Memory)
	*free = C.size_t(c.device.info.Memory - used)
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
	_, b, a, ok := find(uint64(p))
	if !ok {
		return fail(cuda.ErrNotFound)
	}
	if base != nil {
		*base = C.CUdeviceptr(b)
	}
	if size != nil {
		*size = C.size_t(a.size)
	}
	return 0
}

// dead returns the context's sticky error.
func (c *softContext) dead() error { return c.sim.Poll(nil) }

func doPointerGetAttribute(value unsafe.Pointer, attribute C.int, p C.CUdeviceptr) C.CUresult {
	c, base, a, ok := find(uint64(p))
	if !ok {
		return fail(cuda.ErrInvalidValue)
	}
	if err := c.dead(); err != nil {
		return result(err)
	}
	return pointerAttribute(value, int(attribute), uint64(p), c, base, a)
}

// Where an address is in no allocation every value is 0, which is no error.
func doPointerGetAttributes(n C.uint, attributes *C.int, values *unsafe.Pointer, p C.CUdeviceptr) C.CUresult {
	mine, r := current()
	if mine == nil {
		return r
	}
	if err := mine.dead(); err != nil {
		return result(err)
	}
	c, base, a, _ := find(uint64(p))
	for i, attribute := range unsafe.Slice(attributes, int(n)) {
		if r := pointerAttribute(unsafe.Slice(values, int(n))[i], int(attribute), uint64(p), c, base, a); r != 0 {
			return r
		}
	}
	return 0
}

// pointerAttribute answers CU_POINTER_ATTRIBUTE_*; c is nil outside of
// allocations.
func pointerAttribute(value unsafe.Pointer, attribute int, p uint64, c *softContext, base uint64, a allocation) C.CUresult {
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
		if set64(0); c != nil && a.kind == cuda.PinnedMemory {
			set64(p)
		}
	case 6, 8: // synchronous memory operations, managed
		*(*uint8)(value) = 0
	case 9: // device
		if set32(^uint32(0)); c != nil {
			set32(uint32(c.device.ordinal))
		}
	case 11: // range
		set64(base)
	case 12:
		set64(a.size)
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

// Copies are in order here whether they are asked to be or not.
func doPointerSetAttribute(value unsafe.Pointer, attribute C.int, p C.CUdeviceptr) C.CUresult {
	const syncMemops = 6
	_, _, a, ok := find(uint64(p))
	switch {
	case !ok || a.kind != cuda.DeviceMemory:
		return fail(cuda.ErrInvalidValue)
	case attribute != syncMemops:
		return fail(cuda.ErrNotSupported)
	}
	return 0
}

// What a NIC writes is visible at once.
func doFlushGPUDirectRDMAWrites(target, scope C.int) C.CUresult {
	if c, r := current(); c == nil {
		return r
	}
	return 0
}
