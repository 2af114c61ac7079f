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

func doMemAllocManaged(out *C.CUdeviceptr, size C.size_t, flags C.uint) C.CUresult {
	const attachGlobal, attachHost = 1, 2
	c, r := current()
	if c == nil {
		return r
	}
	if flags != attachGlobal && flags != attachHost {
		return fail(cuda.ErrInvalidValue)
	}
	if r := c.safe(); r != 0 {
		return r
	}
	b, err := c.sim.AllocManaged(uint64(size), cuda.AllocOptions{})
	if err != nil {
		return result(err)
	}
	c.device.memory.add(allocation{c: c, base: uint64(b.Device), size: uint64(size), kind: cuda.ManagedMemory, host: b.Host})
	*out = C.CUdeviceptr(b.Device)
	return 0
}

func doMemHostRegisterV2(host unsafe.Pointer, size C.size_t, flags C.uint) C.CUresult {
	const portable, mapped, readOnly = 1, 2, 8
	c, r := current()
	if c == nil {
		return r
	}
	switch {
	case host == nil || size == 0 || size > 1<<46:
		return fail(cuda.ErrInvalidValue)
	case flags&^(portable|mapped|readOnly) != 0: // memory of other devices
		return fail(cuda.ErrNotSupported)
	}
	if r := c.safe(); r != 0 {
		return r
	}
	b, err := c.sim.RegisterHost(unsafe.Slice((*byte)(host), int(size)))
	if err != nil {
		return result(err)
	}
	c.device.memory.add(allocation{c: c, base: uint64(b.Device), size: uint64(size), kind: cuda.PinnedMemory, host: b.Host, registered: true})
	return 0
}

func doMemHostUnregister(host unsafe.Pointer) C.CUresult {
	p := uint64(uintptr(host))
	a, ok := find(p)
	if !ok || a.base != p || !a.registered {
		return fail(cuda.ErrHostNotRegistered)
	}
	if err := a.release(); err != nil {
		return result(err)
	}
	a.c.device.memory.remove(p)
	return 0
}

// copyPageable is a copy of which one side is plain host memory. One to the device
// has read its source when it returns, one from there is over.
func (s *softStream) copyPageable(dst, src place, n C.size_t) C.CUresult {
	if r := s.submit(nil); r != 0 {
		return r
	}
	switch {
	case dst.host == nil:
		if err := s.c.sim.CopyIn(s.sim, cuda.DevicePtr(dst.addr), src.bytes(n)); err != nil || s != s.c.legacy {
			return result(err)
		}
		// What waits for the legacy stream's mark does not wait for the copy.
		return result(s.c.sim.SyncStream(bg, s.sim))
	case src.host == nil:
		return result(s.c.sim.CopyOut(s.sim, dst.bytes(n), cuda.DevicePtr(src.addr)))
	}
	if err := s.c.sim.SyncStream(bg, s.sim); err != nil {
		return result(err)
	}
	copy(dst.bytes(n), src.bytes(n))
	return 0
}
