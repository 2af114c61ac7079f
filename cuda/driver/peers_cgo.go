//go:build cgo && linux

package driver

/*
#include "peers.h"
*/
import "C"

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.Peers = (*Device)(nil)

func (d *Device) bound() *Device { return d }

// peer returns a device of this package's.
func (d *Device) peer(op string, other cuda.Device) (*Device, error) {
	o, ok := other.(interface{ bound() *Device })
	if !ok || o.bound() == nil {
		return nil, &cuda.Error{Code: cuda.ErrInvalidDevice, Op: op, Detail: "no device of a driver"}
	}
	return o.bound(), nil
}

// CanAccess implements [cuda.Peers].
func (d *Device) CanAccess(other cuda.Device) (bool, error) {
	const op = "ask for peer access"
	if err := d.enter(op); err != nil {
		return false, err
	}
	defer d.leave()
	x, err := d.peer(op, other)
	if err != nil || x.device == d.device {
		return false, err
	}
	var can C.int
	if code := cuda.Code(C.kvg_can_access(&d.c.t, d.device, x.device, &can)); code != cuda.Success {
		return false, &cuda.Error{Code: code, Op: op, Detail: "cuDeviceCanAccessPeer"}
	}
	return can != 0, nil
}

// EnableAccess implements [cuda.Peers], for this device's context and the other's:
// whoever else works in them has it, too.
func (d *Device) EnableAccess(other cuda.Device) error {
	return d.access("enable peer access", "cuCtxEnablePeerAccess", other, func(x *Device) C.kvg_result {
		return C.kvg_enable_access(d.c, C.uint64_t(x.context))
	})
}

// DisableAccess implements [cuda.Peers].
func (d *Device) DisableAccess(other cuda.Device) error {
	return d.access("disable peer access", "cuCtxDisablePeerAccess", other, func(x *Device) C.kvg_result {
		return C.kvg_disable_access(d.c, C.uint64_t(x.context))
	})
}

func (d *Device) access(op, symbol string, other cuda.Device, call func(*Device) C.kvg_result) error {
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	x, err := d.peer(op, other)
	if err != nil {
		return err
	}
	if x.device == d.device {
		return &cuda.Error{Code: cuda.ErrInvalidDevice, Op: op, Detail: fmt.Sprintf("device %d is no peer of itself", d.device)}
	}
	if err := x.enter(op); err != nil { // its context must not go meanwhile
		return err
	}
	defer x.leave()
	if r := call(x); r.why != C.KVG_OK {
		return d.lacking(op, r, fmt.Sprintf("of device %d to device %d", d.device, x.device), symbol)
	}
	return nil
}

// ImportEvent implements [cuda.Peers].
func (d *Device) ImportEvent(other cuda.Device, e cuda.Event) (cuda.Event, error) {
	const op = "import event"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	x, err := d.peer(op, other)
	if err != nil {
		return 0, err
	}
	raw, ok := x.find(C.KVG_EVENT, uint64(e))
	if !ok {
		return 0, badHandle(op, "event", uint64(e))
	}
	h, err := d.add(C.KVG_EVENT, raw.raw, true, 0)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	d.handles[C.KVG_EVENT].entries[index(h)].from = x
	d.mu.Unlock()
	return cuda.Event(h), nil
}

// failEvent is fail for a question after an event. A sticky result for one that was
// imported is of the device that it was imported from, unless this one's context
// gives it as well.
func (d *Device) failEvent(op string, r C.kvg_result, ev cuda.Event, detail string) error {
	e, ok := d.find(C.KVG_EVENT, uint64(ev))
	code := cuda.Code(r.code)
	if r.why != C.KVG_DRIVER || !code.Sticky() || !ok || e.from == nil {
		return d.fail(op, r, detail)
	}
	own, err := d.takeEvent(op)
	if err != nil {
		return err
	}
	defer d.giveEvent(own)
	if r := C.kvg_query(d.c, own); r.why != C.KVG_OK && cuda.Code(r.code) != cuda.ErrNotReady {
		return d.fail(op, r, detail)
	}
	return &cuda.Error{Code: cuda.ErrInvalidContext, Op: op,
		Detail: fmt.Sprintf("%s: it is of device %d, %s, which is dead: %s", detail, e.from.device, e.from.info.Name, code)}
}
