//go:build cgo && linux

package softcuda

/*
#include <stdlib.h>
#include "soft.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/internal/dl"
)

// Library is the driver's functions, by name. It satisfies the interface that
// cuda/driver takes.
type Library struct{}

// Symbol returns the address of a function, under its exact name with the
// version suffix. It wraps [dl.ErrNoSymbol] where there is none.
func (Library) Symbol(name string) (unsafe.Pointer, error) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	p := C.kvg_soft_symbol(c)
	if p == nil {
		return nil, fmt.Errorf("cuda/softcuda: symbol %s: %w", name, dl.ErrNoSymbol)
	}
	return p, nil
}

// Path says that this is no file.
func (Library) Path() string { return "softcuda" }

// machine is what the driver knows: like the driver's, its state is the
// process's.
var machine = struct {
	sync.RWMutex
	started bool
	devices []*Device // removed ones are nil
	objects map[uint64]any
	last    uint64

	version  atomic.Int64 // of the driver
	captures atomic.Int64 // under way
	hostFns  atomic.Int64 // that run
}{objects: map[uint64]any{}, last: 0x5c00_0000_0000}

func init() { machine.version.Store(12040) }

// SetVersion makes the driver be of another CUDA version, as CUDA counts, and
// returns the one before. The default is 12040.
func SetVersion(v int) (old int) { return int(machine.version.Swap(int64(v))) }

// Device is a simulated GPU that the driver interface serves.
type Device struct {
	ordinal int
	o       sim.Options
	info    cuda.Info

	mu       sync.Mutex
	sim      *sim.Device // while there are contexts
	contexts int
	primary  *softContext
	refs     int // of the primary context

	memory memory
}

// Add adds a device to the machine. Its options have to name the real pacer, or
// a world that is paced by it. The simulated device is opened with the first
// context, and closed with the last. Remove takes it away again.
func Add(o sim.Options) (*Device, error) {
	if o.World == nil && !o.Real || o.World != nil && o.World.Virtual() {
		return nil, errors.New("cuda/softcuda: a device needs the real pacer: C threads are not known to a virtual world")
	}
	o.Shareable = true // any memory of a driver's can be exported
	probe, err := sim.New(o)
	if err != nil {
		return nil, err
	}
	d := &Device{o: o, info: probe.Info()}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	machine.Lock()
	defer machine.Unlock()
	d.ordinal = len(machine.devices)
	machine.devices = append(machine.devices, d)
	return d, nil
}

// Ordinal returns what cuDeviceGet knows the device by. It is not used again
// when the device is removed.
func (d *Device) Ordinal() int { return d.ordinal }

// Sim returns the simulated device, or nil while there is no context.
func (d *Device) Sim() *sim.Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sim
}

// Remove takes the device away, with its contexts.
func (d *Device) Remove() error {
	machine.Lock()
	machine.devices[d.ordinal] = nil
	var left []*softContext
	for _, o := range machine.objects {
		if c, ok := o.(*softContext); ok && c.device == d {
			left = append(left, c)
		}
	}
	machine.Unlock()
	var errs []error
	for _, c := range left {
		errs = append(errs, c.destroy())
	}
	return errors.Join(errs...)
}

// register makes a handle. Handles look like pointers, and are none.
func register(o any) uint64 {
	machine.Lock()
	defer machine.Unlock()
	machine.last += 16
	machine.objects[machine.last] = o
	return machine.last
}

func unregister(h uint64) {
	machine.Lock()
	delete(machine.objects, h)
	machine.Unlock()
}

// lookup returns what a handle stands for, where it is of that type.
func lookup[T any](h uint64) (T, bool) {
	machine.RLock()
	o := machine.objects[h]
	machine.RUnlock()
	t, ok := o.(T)
	return t, ok
}

func deviceOf(d C.CUdevice) *Device {
	machine.RLock()
	defer machine.RUnlock()
	if d < 0 || int(d) >= len(machine.devices) {
		return nil
	}
	return machine.devices[d]
}

func started() bool {
	machine.RLock()
	defer machine.RUnlock()
	return machine.started
}
