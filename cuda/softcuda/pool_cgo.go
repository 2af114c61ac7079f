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

// softPool is a pool of a device. Here it lives no longer than the device's
// contexts: with the last one its memory and its settings go.
type softPool struct {
	device *Device
	handle uint64
	sim    cuda.Pool // 0: the default one
}

// poolSet is the pools that a device has beside those that were made. It is
// guarded by the device's mu.
type poolSet struct {
	base    *softPool // made when first asked after
	current *softPool // nil: the default one
}

func (d *Device) defaultPool() *softPool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pools.base == nil {
		d.pools.base = &softPool{device: d}
		d.pools.base.handle = register(d.pools.base)
	}
	return d.pools.base
}

func (d *Device) currentPool() *softPool {
	d.mu.Lock()
	p := d.pools.current
	d.mu.Unlock()
	if p != nil {
		return p
	}
	return d.defaultPool()
}

// onPool makes a call of the simulated device for a pool, which it has while
// there is a context.
func onPool(h C.CUmemoryPool, call func(p *softPool) error) C.CUresult {
	p, ok := lookup[*softPool](uint64(h))
	switch {
	case !ok:
		return fail(cuda.ErrInvalidValue)
	case p.device.Sim() == nil:
		return fail(cuda.ErrInvalidContext)
	}
	return result(call(p))
}

func poolOfDevice(out *C.CUmemoryPool, h C.CUdevice, which func(d *Device) *softPool) C.CUresult {
	d := deviceOf(h)
	if d == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	*out = C.CUmemoryPool(which(d).handle)
	return 0
}

func doDeviceGetDefaultMemPool(out *C.CUmemoryPool, h C.CUdevice) C.CUresult {
	return poolOfDevice(out, h, (*Device).defaultPool)
}

func doDeviceGetMemPool(out *C.CUmemoryPool, h C.CUdevice) C.CUresult {
	return poolOfDevice(out, h, (*Device).currentPool)
}

func doDeviceSetMemPool(h C.CUdevice, pool C.CUmemoryPool) C.CUresult {
	d := deviceOf(h)
	p, ok := lookup[*softPool](uint64(pool))
	switch {
	case d == nil:
		return fail(cuda.ErrInvalidDevice)
	case !ok || p.device != d:
		return fail(cuda.ErrInvalidValue)
	}
	d.mu.Lock()
	d.pools.current = p
	d.mu.Unlock()
	return 0
}

// A pool is of memory on a device, and not to be shared with other processes.
func doMemPoolCreate(out *C.CUmemoryPool, props *C.CUmemPoolProps) C.CUresult {
	const pinned, onDevice = 1, 1 // CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE
	if props == nil || props.allocation != pinned || props.location._type != onDevice {
		return fail(cuda.ErrInvalidValue)
	}
	if props.handles != 0 || props.rest != [64]C.char{} {
		return fail(cuda.ErrNotSupported)
	}
	d := deviceOf(C.CUdevice(props.location.id))
	if d == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	s := d.Sim()
	if s == nil {
		return fail(cuda.ErrInvalidContext)
	}
	h, err := s.NewPool("")
	if err != nil {
		return result(err)
	}
	p := &softPool{device: d, sim: h}
	p.handle = register(p)
	*out = C.CUmemoryPool(p.handle)
	return 0
}

func doMemPoolDestroy(h C.CUmemoryPool) C.CUresult {
	return onPool(h, func(p *softPool) error {
		if err := p.device.Sim().DestroyPool(p.sim); err != nil {
			return err
		}
		unregister(p.handle)
		p.device.mu.Lock()
		defer p.device.mu.Unlock()
		if p.device.pools.current == p {
			p.device.pools.current = nil
		}
		return nil
	})
}

// Settings that are on or off are an int, the others 64 bits.
func doMemPoolGetAttribute(h C.CUmemoryPool, attribute C.int, value unsafe.Pointer) C.CUresult {
	return onPool(h, func(p *softPool) error {
		v, err := p.device.Sim().PoolAttribute(p.sim, attributeOf(attribute))
		switch {
		case err != nil:
			return err
		case attributeOf(attribute) <= cuda.PoolInternalWaits:
			*(*int32)(value) = int32(v)
		default:
			*(*uint64)(value) = v
		}
		return nil
	})
}

func doMemPoolSetAttribute(h C.CUmemoryPool, attribute C.int, value unsafe.Pointer) C.CUresult {
	return onPool(h, func(p *softPool) error {
		a := attributeOf(attribute)
		var v uint64
		switch {
		case a == 0 || value == nil:
			return cuda.ErrInvalidValue
		case a <= cuda.PoolInternalWaits:
			v = min(uint64(uint32(*(*int32)(value))), 1)
		default:
			v = *(*uint64)(value)
		}
		return p.device.Sim().SetPoolAttribute(p.sim, a, v)
	})
}

// attributeOf returns 0 for a number that is none.
func attributeOf(n C.int) cuda.PoolAttribute {
	if n < 0 || n > C.int(cuda.PoolUsedHigh) {
		return 0
	}
	return cuda.PoolAttribute(n)
}

func doMemPoolTrimTo(h C.CUmemoryPool, keep C.size_t) C.CUresult {
	return onPool(h, func(p *softPool) error { return p.device.Sim().TrimPool(p.sim, uint64(keep)) })
}

func doMemAllocAsync(out *C.CUdeviceptr, size C.size_t, h C.CUstream) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	return s.allocate(out, size, s.c.device.currentPool())
}

func doMemAllocFromPoolAsync(out *C.CUdeviceptr, size C.size_t, pool C.CUmemoryPool, h C.CUstream) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	p, ok := lookup[*softPool](uint64(pool))
	if !ok {
		return fail(cuda.ErrInvalidValue)
	}
	return s.allocate(out, size, p)
}

// allocate refuses what is captured: there are no nodes for memory.
func (s *softStream) allocate(out *C.CUdeviceptr, size C.size_t, p *softPool) C.CUresult {
	c := s.c
	if p.device != c.device {
		return fail(cuda.ErrNotSupported) // memory of another device
	}
	return s.around(func() C.CUresult {
		ptr, err := c.sim.AllocAsync(s.sim, uint64(size), p.sim, cuda.AllocOptions{})
		if err != nil {
			return result(err)
		}
		c.device.memory.add(allocation{c: c, base: uint64(ptr), size: uint64(size), kind: cuda.DeviceMemory})
		*out = C.CUdeviceptr(ptr)
		return 0
	})
}

// Memory of cuMemAlloc is not freed in stream order here.
func doMemFreeAsync(ptr C.CUdeviceptr, h C.CUstream) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	a, ok := find(uint64(ptr))
	if !ok || a.base != uint64(ptr) || a.c.sim != s.c.sim {
		return fail(cuda.ErrInvalidValue)
	}
	return s.around(func() C.CUresult {
		// The simulator may give the address away again at once.
		a.c.device.memory.remove(a.base)
		if err := s.c.sim.FreeAsync(s.sim, cuda.DevicePtr(a.base)); err != nil {
			a.c.device.memory.add(a)
			return result(err)
		}
		return 0
	})
}

// around makes a call whose work goes into the stream by itself, in its order
// with the legacy stream: that one's mark is renewed behind it.
func (s *softStream) around(call func() C.CUresult) C.CUresult {
	if r := s.submit(nil); r != 0 {
		return r
	}
	r := call()
	if r == 0 && s.handle == 0 {
		return s.submit(nil)
	}
	return r
}
