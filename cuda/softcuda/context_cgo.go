//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"context"
	"sync"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

var bg = context.Background()

// softContext is a context: a set of handles of a device. As on hardware, the
// contexts of a device share its memory and its bandwidth; other than there an
// error that is sticky leaves all of them dead.
type softContext struct {
	handle uint64
	device *Device
	sim    *sim.Device
	flags  uint32
	batch  sync.Pool // of *cuda.Batch, for one command each

	mu       sync.Mutex
	streams  map[*softStream]bool
	blocking map[*softStream]bool        // that have an order with the legacy stream
	legacy   *softStream                 // made when first used
	captures map[*softStream]softCapture // by the stream that each was begun on
	hostFns  hostFns
	settings map[int]uint64 // limits by their number, cache and bank size by theirs below
}

// newContext makes a context. d.mu is held.
func (d *Device) newContext(flags uint32) (*softContext, error) {
	if d.sim == nil {
		s, err := sim.New(d.o)
		if err != nil {
			return nil, err
		}
		d.sim = s
	}
	d.contexts++
	c := &softContext{device: d, sim: d.sim, flags: flags, streams: map[*softStream]bool{},
		blocking: map[*softStream]bool{}, captures: map[*softStream]softCapture{}, settings: defaultSettings()}
	c.batch.New = func() any { return new(cuda.Batch) }
	c.handle = register(c)
	return c, nil
}

// destroy ends the context with every handle of it, and waits for its work.
// The last context of a device takes the simulated one with it, work and all.
func (c *softContext) destroy() error {
	machine.Lock()
	for h, o := range machine.objects {
		var owner *softContext
		switch o := o.(type) {
		case *softContext:
			owner = o
		case *softStream:
			owner = o.c
		case *softEvent:
			owner = o.c
		case *softModule:
			owner = o.c
		case *softFunction:
			owner = o.c
		case *softLink:
			owner = o.c
		case interface{ owner() *softContext }:
			owner = o.owner()
		}
		if owner == c {
			delete(machine.objects, h)
		}
	}
	machine.Unlock()
	d := c.device
	d.mu.Lock()
	d.contexts--
	last := d.contexts == 0
	if last {
		d.sim = nil
	}
	d.mu.Unlock()
	gone := d.memory.drop(c)
	c.mu.Lock()
	for s := range c.captures {
		c.forgetCapture(s)
	}
	c.mu.Unlock()
	if last {
		return c.sim.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.legacy != nil {
		c.streams[c.legacy] = true
	}
	for s := range c.streams {
		_ = c.sim.SyncStream(bg, s.sim) // on a dead device there is nothing to wait for
		_ = c.sim.DestroyStream(s.sim)
	}
	for _, a := range gone {
		_ = a.release()
	}
	return nil
}

// current returns the calling thread's context.
func current() (*softContext, C.CUresult) {
	if !started() {
		return nil, fail(cuda.ErrNotInitialized)
	}
	h := uint64(C.kvg_soft_current())
	if h == 0 {
		return nil, fail(cuda.ErrInvalidContext)
	}
	c, ok := lookup[*softContext](h)
	if !ok {
		return nil, fail(cuda.ErrContextDestroyed)
	}
	return c, 0
}

func doDevicePrimaryCtxRetain(out *C.CUcontext, device C.CUdevice) C.CUresult {
	d := deviceOf(device)
	switch {
	case !started():
		return fail(cuda.ErrNotInitialized)
	case d == nil:
		return fail(cuda.ErrInvalidDevice)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.primary == nil {
		c, err := d.newContext(0)
		if err != nil {
			return fail(cuda.ErrOutOfMemory)
		}
		d.primary = c
	}
	d.refs++
	*out = C.CUcontext(d.primary.handle)
	return 0
}

func doDevicePrimaryCtxReleaseV2(device C.CUdevice) C.CUresult {
	d := deviceOf(device)
	if d == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	d.mu.Lock()
	if d.refs == 0 {
		d.mu.Unlock()
		return fail(cuda.ErrInvalidContext)
	}
	d.refs--
	var last *softContext
	if d.refs == 0 {
		last, d.primary = d.primary, nil
	}
	d.mu.Unlock()
	if last != nil {
		return result(last.destroy())
	}
	return 0
}

func doCtxCreateV2(out *C.CUcontext, flags C.uint, device C.CUdevice) C.CUresult {
	d := deviceOf(device)
	switch {
	case !started():
		return fail(cuda.ErrNotInitialized)
	case d == nil:
		return fail(cuda.ErrInvalidDevice)
	}
	d.mu.Lock()
	c, err := d.newContext(uint32(flags))
	d.mu.Unlock()
	if err != nil {
		return fail(cuda.ErrOutOfMemory)
	}
	if C.kvg_soft_push(C.uint64_t(c.handle)) == 0 {
		_ = c.destroy()
		return fail(cuda.ErrOutOfMemory)
	}
	*out = C.CUcontext(c.handle)
	return 0
}

func doCtxDestroyV2(h C.CUcontext) C.CUresult {
	c, ok := lookup[*softContext](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidContext)
	}
	c.device.mu.Lock()
	primary := c.device.primary == c
	c.device.mu.Unlock()
	if primary {
		return fail(cuda.ErrInvalidContext)
	}
	if uint64(C.kvg_soft_current()) == c.handle {
		var old C.uint64_t
		C.kvg_soft_pop(&old)
	}
	return result(c.destroy())
}

func doCtxPushCurrentV2(h C.CUcontext) C.CUresult {
	if _, ok := lookup[*softContext](uint64(h)); !ok {
		return fail(cuda.ErrInvalidContext)
	}
	if C.kvg_soft_push(h) == 0 {
		return fail(cuda.ErrInvalidContext)
	}
	return 0
}

func doCtxPopCurrentV2(out *C.CUcontext) C.CUresult {
	var old C.uint64_t
	if C.kvg_soft_pop(&old) == 0 {
		return fail(cuda.ErrInvalidContext)
	}
	if out != nil {
		*out = C.CUcontext(old)
	}
	return 0
}

func doCtxGetCurrent(out *C.CUcontext) C.CUresult {
	*out = C.CUcontext(C.kvg_soft_current())
	return 0
}

func doCtxSetCurrent(h C.CUcontext) C.CUresult {
	if _, ok := lookup[*softContext](uint64(h)); !ok && h != 0 {
		return fail(cuda.ErrInvalidContext)
	}
	C.kvg_soft_set_current(C.uint64_t(h))
	return 0
}

func doCtxGetDevice(out *C.CUdevice) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	*out = C.CUdevice(c.device.ordinal)
	return 0
}

func doCtxSynchronize() C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	if r := c.safe(); r != 0 {
		return r
	}
	return result(c.sim.Sync(bg))
}

func doCtxGetStreamPriorityRange(least, greatest *C.int) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	if least != nil {
		*least = C.int(c.device.info.Priorities[0])
	}
	if greatest != nil {
		*greatest = C.int(c.device.info.Priorities[1])
	}
	return 0
}

func doCtxGetApiVersion(h C.CUcontext, version *C.uint) C.CUresult {
	if _, ok := lookup[*softContext](uint64(h)); !ok && h != 0 {
		return fail(cuda.ErrInvalidContext)
	}
	*version = 3020
	return 0
}

func doCtxGetFlags(flags *C.uint) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*flags = C.uint(c.flags)
	return 0
}

// Numbers of CUlimit, and beside them the settings that are not limits.
const (
	limitStack = iota
	limitPrintf
	limitHeap
	limits

	settingCache = iota + 100
	settingBanks
)

// The settings of a fresh context on hardware. They change nothing here.
func defaultSettings() map[int]uint64 {
	return map[int]uint64{limitStack: 1024, limitPrintf: 1 << 20, limitHeap: 8 << 20, settingCache: 0, settingBanks: 1}
}

func setting(number int, value *uint64, set bool) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.settings[number]; !ok {
		return fail(cuda.ErrNotSupported)
	}
	if set {
		c.settings[number] = *value
	} else {
		*value = c.settings[number]
	}
	return 0
}

func doCtxGetLimit(value *C.size_t, limit C.int) C.CUresult {
	if limit >= limits {
		return fail(cuda.ErrNotSupported)
	}
	return setting(int(limit), (*uint64)(value), false)
}

func doCtxSetLimit(limit C.int, value C.size_t) C.CUresult {
	v := uint64(value)
	if limit >= limits {
		return fail(cuda.ErrNotSupported)
	}
	return setting(int(limit), &v, true)
}

func getSetting(number int, value *C.int) C.CUresult {
	var v uint64
	r := setting(number, &v, false)
	if r == 0 {
		*value = C.int(v)
	}
	return r
}

func setSetting(number int, value C.int) C.CUresult {
	v := uint64(value)
	return setting(number, &v, true)
}

func doCtxGetCacheConfig(value *C.int) C.CUresult     { return getSetting(settingCache, value) }
func doCtxSetCacheConfig(value C.int) C.CUresult      { return setSetting(settingCache, value) }
func doCtxGetSharedMemConfig(value *C.int) C.CUresult { return getSetting(settingBanks, value) }
func doCtxSetSharedMemConfig(value C.int) C.CUresult  { return setSetting(settingBanks, value) }
