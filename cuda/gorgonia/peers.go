//go:build gorgonia

package gorgonia

import (
	"gorgonia.org/cu"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.Peers = (*Device)(nil)

func (d *Device) bound() *Device { return d }

// peer returns another device of this package's.
func (d *Device) peer(op string, other cuda.Device) (*Device, error) {
	o, ok := other.(interface{ bound() *Device })
	if !ok || o.bound() == nil {
		return nil, refuse(cuda.ErrInvalidDevice, op, "no device of gorgonia.org/cu")
	}
	return o.bound(), nil
}

// CanAccess implements [cuda.Peers].
func (d *Device) CanAccess(other cuda.Device) (can bool, err error) {
	const op = "ask for peer access"
	err = d.within(op, func() error {
		x, err := d.peer(op, other)
		if err != nil || x.dev == d.dev {
			return err
		}
		yes, err := d.dev.CanAccessPeer(x.dev)
		can = yes != 0
		return err
	})
	return can, err
}

// EnableAccess implements [cuda.Peers].
func (d *Device) EnableAccess(other cuda.Device) error {
	return d.access("enable peer access", other, func(ctx cu.CUContext) error { return ctx.EnablePeerAccess(0) })
}

// DisableAccess implements [cuda.Peers].
func (d *Device) DisableAccess(other cuda.Device) error {
	return d.access("disable peer access", other, cu.CUContext.DisablePeerAccess)
}

func (d *Device) access(op string, other cuda.Device, call func(cu.CUContext) error) error {
	return d.within(op, func() error {
		x, err := d.peer(op, other)
		if err != nil {
			return err
		}
		if x.dev == d.dev {
			return refuse(cuda.ErrInvalidDevice, op, "device %d is no peer of itself", d.dev)
		}
		return call(x.ctx)
	})
}

// ImportEvent implements [cuda.Peers].
func (d *Device) ImportEvent(other cuda.Device, e cuda.Event) (h cuda.Event, err error) {
	const op = "import event"
	err = d.within(op, func() error {
		x, err := d.peer(op, other)
		if err != nil {
			return err
		}
		raw, ok := get(x, x.events, e)
		if !ok {
			return badHandle(op, "event", uint64(e))
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		h = cuda.Event(d.handle())
		d.events[h], d.imported[h] = raw, x
		return nil
	})
	return h, err
}

// failEvent is fail for a question after an event. A sticky result for one that was
// imported is of the device that it was imported from, unless this one's context
// gives it as well. It is called with the context current.
func (d *Device) failEvent(op string, h cuda.Event, err error) error {
	code, ok := result(err)
	if !ok || !code.Sticky() {
		return d.fail(op, err)
	}
	from, ok := get(d, d.imported, h)
	if !ok {
		return d.fail(op, err)
	}
	own, err := cu.MakeEvent(cu.DisableTiming)
	if err == nil {
		err = cu.DestroyEvent(&own)
	}
	if err != nil {
		return d.fail(op, err)
	}
	return refuse(cuda.ErrInvalidContext, op, "event %#x is of device %d, %s, which is dead: %s", uint64(h), from.dev, from.info.Name, code)
}
