//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"github.com/kvgate/kvgate/cuda"
)

// peer reports whether two devices can reach each other's memory: they have to be
// of one world.
func (d *Device) peer(other *Device) bool {
	return d != other && d.o.World != nil && d.o.World == other.o.World
}

func doDeviceCanAccessPeer(can *C.int, device, peer C.CUdevice) C.CUresult {
	a, b := deviceOf(device), deviceOf(peer)
	if a == nil || b == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	if *can = 0; a.peer(b) {
		*can = 1
	}
	return 0
}

func doDeviceGetP2PAttribute(value *C.int, attribute C.int, from, to C.CUdevice) C.CUresult {
	const rank, access, arrays = 1, 2, 4 // CU_DEVICE_P2P_ATTRIBUTE_*; 3: atomics
	if attribute < rank || attribute > arrays || value == nil {
		return fail(cuda.ErrInvalidValue)
	}
	if from == to {
		return fail(cuda.ErrInvalidDevice)
	}
	r := doDeviceCanAccessPeer(value, from, to)
	if attribute != access {
		*value = 0
	}
	return r
}

// peers returns the thread's context and the one of the handle.
func peers(h C.CUcontext) (mine, other *softContext, r C.CUresult) {
	if mine, r = current(); mine == nil {
		return nil, nil, r
	}
	other, ok := lookup[*softContext](uint64(h))
	if !ok {
		return nil, nil, fail(cuda.ErrInvalidContext)
	}
	return mine, other, 0
}

// Contexts of a device share what it has access to.
func doCtxEnablePeerAccess(h C.CUcontext, flags C.uint) C.CUresult {
	mine, other, r := peers(h)
	switch {
	case r != 0:
		return r
	case flags != 0:
		return fail(cuda.ErrInvalidValue)
	}
	return result(mine.sim.EnableAccess(other.sim))
}

func doCtxDisablePeerAccess(h C.CUcontext) C.CUresult {
	mine, other, r := peers(h)
	if r != 0 {
		return r
	}
	return result(mine.sim.DisableAccess(other.sim))
}

// inContext reports whether an address is memory of a context's device.
func inContext(p C.CUdeviceptr, h C.CUcontext) bool {
	c, ok := lookup[*softContext](uint64(h))
	if !ok {
		return false
	}
	a, ok := find(uint64(p))
	return ok && a.c.device == c.device
}

func doMemcpyPeerAsync(dst C.CUdeviceptr, to C.CUcontext, src C.CUdeviceptr, from C.CUcontext, n C.size_t, h C.CUstream) C.CUresult {
	if n > 0 && (!inContext(dst, to) || !inContext(src, from)) {
		return fail(cuda.ErrInvalidValue)
	}
	return copyIn(h, onDevice(dst), onDevice(src), n)
}

func doMemcpyPeer(dst C.CUdeviceptr, to C.CUcontext, src C.CUdeviceptr, from C.CUcontext, n C.size_t) C.CUresult {
	if n > 0 && (!inContext(dst, to) || !inContext(src, from)) {
		return fail(cuda.ErrInvalidValue)
	}
	return copyNow(onDevice(dst), onDevice(src), n)
}

// waitPeer has a stream wait for an event of another device.
func (s *softStream) waitPeer(x *softEvent) C.CUresult {
	if s.c.device == x.c.device {
		return s.submit(func(b *cuda.Batch, h cuda.Stream) { b.WaitEvent(h, x.sim) })
	}
	e, err := s.c.sim.ImportEvent(x.c.sim, x.sim)
	if err != nil {
		return result(err)
	}
	defer func() { _ = s.c.sim.DestroyEvent(e) }() // the wait has taken its record
	return s.submit(func(b *cuda.Batch, h cuda.Stream) { b.WaitEvent(h, e) })
}
