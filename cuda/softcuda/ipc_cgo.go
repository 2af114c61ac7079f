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

func doIpcGetMemHandle(handle *C.CUipcMemHandle, p C.CUdeviceptr) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	a, ok := find(uint64(p))
	if !ok || a.kind != cuda.DeviceMemory || a.base != uint64(p) || a.virtual || handle == nil {
		return fail(cuda.ErrInvalidValue)
	}
	h, err := a.c.sim.ExportMemory(cuda.DevicePtr(p))
	if err != nil {
		return result(err)
	}
	*(*cuda.MemoryHandle)(unsafe.Pointer(handle)) = h
	return 0
}

// A handle may be opened by one context of a device. Source: driver API,
// cuIpcOpenMemHandle.
func doIpcOpenMemHandleV2(out *C.CUdeviceptr, handle C.CUipcMemHandle, flags C.uint) C.CUresult {
	const lazyPeerAccess = 1
	c, r := current()
	if c == nil {
		return r
	}
	if flags != lazyPeerAccess || out == nil {
		return fail(cuda.ErrInvalidValue)
	}
	p, err := c.sim.OpenMemory(*(*cuda.MemoryHandle)(unsafe.Pointer(&handle)))
	if err != nil {
		return result(err)
	}
	if a, ok := find(uint64(p)); ok {
		if a.c != c {
			_ = c.sim.CloseMemory(p) // the other context's opening stays
			return fail(cuda.ErrInvalidContext)
		}
	} else {
		_, size, err := c.sim.AllocRange(p)
		if err != nil {
			return result(err)
		}
		c.device.memory.add(allocation{c: c, base: uint64(p), size: size, kind: cuda.DeviceMemory, opened: true})
	}
	*out = C.CUdeviceptr(p)
	return 0
}

func doIpcCloseMemHandle(p C.CUdeviceptr) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	a, ok := find(uint64(p))
	if !ok || !a.opened || a.base != uint64(p) || a.c != c {
		return fail(cuda.ErrInvalidValue)
	}
	if err := c.sim.CloseMemory(cuda.DevicePtr(p)); err != nil {
		return result(err)
	}
	if _, _, err := c.sim.AllocRange(cuda.DevicePtr(p)); err != nil { // that was the last
		c.device.memory.remove(uint64(p))
	}
	return 0
}

// closeAll closes memory of another process however often it is open.
func (a allocation) closeAll() error {
	for {
		if err := a.c.sim.CloseMemory(cuda.DevicePtr(a.base)); err != nil {
			return err
		}
		if _, _, err := a.c.sim.AllocRange(cuda.DevicePtr(a.base)); err != nil {
			return nil
		}
	}
}
