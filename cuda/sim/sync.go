package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

var bg = context.Background()

// mark is a place in a stream that a host thread waits for.
type mark struct {
	s     *stream
	until uint64
}

// drainCond: the streams have reached their marks, or the device is gone, or the
// one whose mark is waited for.
type drainCond struct {
	d     *Device
	marks []mark
	ends  []*moment // of the last commands, for who checks
}

func (c *drainCond) Done() bool {
	for len(c.marks) > 0 && c.marks[0].s.completed.Load() >= c.marks[0].until {
		c.marks = c.marks[1:]
	}
	return len(c.marks) == 0 || c.d.ended.Load() || c.marks[0].s.d.ended.Load()
}

func (c *drainCond) String() string {
	var b strings.Builder
	b.WriteString("the end of ")
	for i, m := range c.marks {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "command %d of %s", m.until, m.s)
	}
	return b.String()
}

// drained returns what waits for all that is in s and all that comes before its
// later work, or for all that is in all streams.
func (d *Device) drained(s *stream) *drainCond {
	c := &drainCond{d: d}
	for _, x := range d.order {
		if s != nil && !s.ordered(x) {
			continue
		}
		if x.lastEnd != nil && (s == nil || s == x || s == d.legacy) {
			c.ends = append(c.ends, x.lastEnd)
		}
		if x.len > 0 {
			c.marks = append(c.marks, mark{x, x.issued})
		}
	}
	return c
}

// await blocks until c is done, then lets wake pass.
func (d *Device) await(ctx context.Context, op string, c clock.Cond, wake time.Duration) error {
	if err := d.world.WaitUntil(ctx, c, clock.Never); err != nil {
		return fmt.Errorf("cuda/sim: %s: %w", op, err)
	}
	if err := d.enter(op, wake); err != nil {
		return err
	}
	defer d.world.Exit()
	if c, ok := c.(*drainCond); ok {
		for _, m := range c.ends {
			d.seenByHost(m)
		}
	}
	return d.allowManaged(op)
}

// SyncStream blocks until all work submitted to h has run.
func (d *Device) SyncStream(ctx context.Context, h cuda.Stream) error {
	const op = "synchronise stream"
	if err := d.call(op, d.costs.Query); err != nil {
		return err
	}
	s := d.streams[h]
	if s == nil {
		d.world.Exit()
		return badHandle(op, "stream", uint64(h))
	}
	if s.capture != nil {
		defer d.world.Exit()
		return refuse(cuda.ErrStreamCapturing, op, s.String(), s.capture)
	}
	c := d.drained(s)
	d.world.Exit()
	return d.await(ctx, op, c, d.costs.Wake)
}

// SyncEvent blocks until the newest record of h has fired.
func (d *Device) SyncEvent(ctx context.Context, h cuda.Event) error {
	const op = "synchronise event"
	if err := d.call(op, d.costs.Query); err != nil {
		return err
	}
	e := d.events[h]
	if e == nil {
		d.world.Exit()
		return badHandle(op, "event", uint64(h))
	}
	err := d.askable(op, e, h)
	if err == nil {
		err = e.captured(op, h)
	}
	if err != nil {
		d.world.Exit()
		return err
	}
	c := &drainCond{d: d}
	if e.on != nil {
		c.marks = []mark{{e.on, e.until}}
	}
	if e.end != nil {
		c.ends = []*moment{e.end}
	}
	fired := c.Done() // in here, where the device is not dead: later it also means its end
	if fired {
		d.seenByHost(e.end)
	}
	wake := d.costs.Wake
	if e.sleep {
		wake = d.costs.BlockingWake
	}
	d.world.Exit()
	if fired {
		return nil
	}
	if err := d.await(ctx, op, c, wake); err != nil {
		return err
	}
	if len(c.marks) > 0 {
		return e.gone(op, h)
	}
	return nil
}

// Sync blocks until all work submitted to the device has run.
func (d *Device) Sync(ctx context.Context) error {
	const op = "synchronise device"
	if err := d.call(op, d.costs.Query); err != nil {
		return err
	}
	if len(d.captures) > 0 {
		defer d.world.Exit()
		return refuse(cuda.ErrStreamCapturing, op, "a stream is captured", d.captures...)
	}
	c := d.drained(nil)
	d.world.Exit()
	return d.await(ctx, op, c, d.costs.Wake)
}
