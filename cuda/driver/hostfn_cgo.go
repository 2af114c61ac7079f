//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

func signalOf(raw C.uint64_t) *C.kvg_signal { return *(**C.kvg_signal)(unsafe.Pointer(&raw)) }

// hostFuncs refuses where the driver calls none.
func (d *Device) hostFuncs(op string) error {
	if d.c.t.cuLaunchHostFunc == nil {
		return d.fail(op, C.kvg_result{why: C.KVG_MISSING}, "cuLaunchHostFunc")
	}
	return nil
}

// NewHostFunc makes fn what [cuda.Batch.Signal] calls, with the command's
// argument: a C function void (*)(void *), on a thread of the driver's. It must
// not call CUDA, nor Go, nor wait for anything that a stream has still to do.
func (d *Device) NewHostFunc(fn unsafe.Pointer) (cuda.HostFunc, error) {
	const op = "make host function"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	if fn == nil {
		return 0, &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: "no function"}
	}
	if err := d.hostFuncs(op); err != nil {
		return 0, err
	}
	h, err := d.add(C.KVG_HOST_FN, uint64(uintptr(fn)), true, 0)
	return cuda.HostFunc(h), err
}

// NewSignal returns a host function in C that counts its calls, and moves the
// counter of a device that is watched.
func (d *Device) NewSignal() (cuda.HostFunc, error) {
	const op = "make signal"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	if err := d.hostFuncs(op); err != nil {
		return 0, err
	}
	g := C.kvg_signal_new()
	if g == nil {
		return 0, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op}
	}
	h, err := d.add(C.KVG_HOST_FN, uint64(uintptr(unsafe.Pointer(g))), false, 0)
	if err != nil {
		C.kvg_signal_drop(g)
	}
	return cuda.HostFunc(h), err
}

// SignalCount returns how often a function of [Device.NewSignal] was called.
func (d *Device) SignalCount(f cuda.HostFunc) (uint64, error) {
	const op = "count signals"
	d.calls.Add(1)
	defer d.leave()
	if d.closed.Load() {
		return 0, fmt.Errorf("cuda/driver: %s: %w", op, cuda.ErrClosed)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.handles[C.KVG_HOST_FN].find(uint64(f))
	switch {
	case !ok:
		return 0, badHandle(op, "host function", uint64(f))
	case e.foreign:
		return 0, &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("%#x is a function of the caller's", uint64(f))}
	}
	return uint64(C.kvg_signal_count(signalOf(C.uint64_t(e.raw)))), nil
}

// DestroyHostFunc makes the handle invalid. Calls that are in streams still
// come.
func (d *Device) DestroyHostFunc(f cuda.HostFunc) error {
	const op = "destroy host function"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	e, ok := d.take(C.KVG_HOST_FN, uint64(f))
	if !ok {
		return badHandle(op, "host function", uint64(f))
	}
	if !e.foreign {
		C.kvg_signal_drop(signalOf(C.uint64_t(e.raw)))
	}
	return nil
}
