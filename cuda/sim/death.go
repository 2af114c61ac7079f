package sim

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

// causedError is a driver error whose cause the simulator knows. errors.Is and
// errors.As find both.
type causedError struct {
	err   *cuda.Error
	cause error
}

func (e *causedError) Error() string   { return e.err.Error() }
func (e *causedError) Unwrap() []error { return []error{e.err, e.cause} }

// fail leaves the device dead because of a command that ran.
func (d *Device) fail(s *stream, c *command, cause error) {
	detail := fmt.Sprintf("%s in %s: %v", c, s, cause)
	var t *ptx.Trap
	if errors.As(cause, &t) && (t.Space == "global" || t.Space == "generic") {
		if _, _, err := d.mem.locate(t.Addr, uint64(t.Size), errors.Is(t.Kind, ptx.ErrReadOnly)); err != nil {
			var a *AccessError
			if errors.As(err, &a) && a.Name != "" {
				detail += fmt.Sprintf(" (%s)", a.where())
			}
		} else if r := d.mem.at(t.Addr); r != nil {
			detail += fmt.Sprintf(" (offset %#x of %q)", t.Addr-r.base, r.name)
		}
	}
	d.die(&causedError{&cuda.Error{Code: code(cause), Op: c.op.String(), Detail: detail}, cause})
}

func (d *Device) die(err error) {
	if d.stopped() {
		return
	}
	d.dead = err
	d.ended.Store(true)
	d.activity.Add(1)
	d.strand()
}

// Kill leaves the device dead with a sticky error, as a fault of the hardware
// does: work stops where it is, pending work never runs, every call from now on
// returns the error, and waits wake. The first error stays.
func (d *Device) Kill(c cuda.Code, why string) error {
	if !c.Sticky() {
		return invalid("kill", "%s leaves a device alive", c)
	}
	if err := d.enter("kill", 0); err != nil {
		return err
	}
	d.die(&cuda.Error{Code: c, Op: "device", Detail: why})
	d.world.Exit()
	d.world.Notify()
	return nil
}
