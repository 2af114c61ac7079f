package sim

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.Peers = (*Device)(nil)

// peer returns another device of the world. It may be wrapped by its embedding.
func (d *Device) peer(op string, other cuda.Device) (*Device, error) {
	o, ok := other.(interface{ simulated() *Device })
	if !ok {
		return nil, &cuda.Error{Code: cuda.ErrInvalidDevice, Op: op, Detail: "no simulated device"}
	}
	x := o.simulated()
	switch {
	case x == nil || x == d:
		return nil, &cuda.Error{Code: cuda.ErrInvalidDevice, Op: op, Detail: fmt.Sprintf("%s is no peer of itself", d.name)}
	case x.group != d.group:
		return nil, &cuda.Error{Code: cuda.ErrPeerUnsupported, Op: op, Detail: fmt.Sprintf("%s and %s are in two worlds", d.name, x.name)}
	}
	return x, nil
}

func (d *Device) simulated() *Device { return d }

// CanAccess implements [cuda.Peers]: devices of a world reach each other.
func (d *Device) CanAccess(other cuda.Device) (bool, error) {
	const op = "ask for peer access"
	if err := d.call(op, 0); err != nil {
		return false, err
	}
	defer d.world.Exit()
	if o, ok := other.(interface{ simulated() *Device }); !ok || o.simulated() == nil {
		return false, &cuda.Error{Code: cuda.ErrInvalidDevice, Op: op, Detail: "no simulated device"}
	}
	_, err := d.peer(op, other)
	return err == nil, nil
}

// EnableAccess implements [cuda.Peers].
func (d *Device) EnableAccess(other cuda.Device) error {
	const op = "enable peer access"
	if err := d.call(op, d.costs.Handle); err != nil {
		return err
	}
	defer d.world.Exit()
	x, err := d.peer(op, other)
	switch {
	case err != nil:
		return err
	case x.closed:
		return &cuda.Error{Code: cuda.ErrInvalidContext, Op: op, Detail: x.name + " has been closed"}
	case d.access[x]:
		return &cuda.Error{Code: cuda.ErrPeerEnabled, Op: op, Detail: fmt.Sprintf("%s to %s", d.name, x.name)}
	}
	if d.access == nil {
		d.access = map[*Device]bool{}
	}
	d.access[x] = true
	return nil
}

// DisableAccess implements [cuda.Peers].
func (d *Device) DisableAccess(other cuda.Device) error {
	const op = "disable peer access"
	if err := d.call(op, d.costs.Handle); err != nil {
		return err
	}
	defer d.world.Exit()
	x, err := d.peer(op, other)
	if err != nil {
		return err
	}
	if !d.access[x] {
		return &cuda.Error{Code: cuda.ErrPeerNotEnabled, Op: op, Detail: fmt.Sprintf("%s to %s", d.name, x.name)}
	}
	delete(d.access, x)
	return nil
}

// askable refuses an imported event of a device that has gone.
func (d *Device) askable(op string, e *event, h cuda.Event) error {
	if e.d != d && e.d.stopped() {
		return e.gone(op, h)
	}
	return nil
}

func (e *event) gone(op string, h cuda.Event) error {
	return &cuda.Error{Code: cuda.ErrInvalidContext, Op: op,
		Detail: fmt.Sprintf("event %#x is of device %s, which is dead or closed", uint64(h), e.d.name)}
}

// ImportEvent implements [cuda.Peers]. Where a stream waits for a device that
// dies or is closed, its own dies as well: what it waits for never happens.
func (d *Device) ImportEvent(other cuda.Device, h cuda.Event) (cuda.Event, error) {
	const op = "import event"
	if err := d.call(op, d.costs.Handle); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	x, err := d.peer(op, other)
	if err != nil {
		return 0, err
	}
	e := x.events[h]
	if e == nil {
		return 0, badHandle(op, "event", uint64(h))
	}
	own := cuda.Event(d.handle(kindEvent))
	d.events[own] = e
	return own, nil
}
