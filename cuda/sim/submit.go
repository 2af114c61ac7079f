package sim

import (
	"fmt"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// Submit puts the commands of b into their streams. Each is checked when it is
// reached and is visible to its stream from then on; the ones before it are in
// by then. A stream with too many pending launches makes Submit wait.
func (d *Device) Submit(b *cuda.Batch) error {
	if b == nil {
		return invalid("submit", "no batch")
	}
	if err := d.call("submit", 0); err != nil {
		if b.Len() == 0 {
			return err
		}
		return d.submitError(b, 0, err)
	}
	err := d.wanted(b)
	d.world.Exit()
	commands := b.Commands()
	if err != nil && len(commands) > 0 {
		return d.submitError(b, 0, err)
	}
	for i := range commands {
		if err := d.submit(b, &commands[i]); err != nil {
			return d.submitError(b, i, err)
		}
	}
	return nil
}

// wanted refuses a batch that does not want to be captured.
func (d *Device) wanted(b *cuda.Batch) error {
	if !b.RefusesCapture() || len(d.captures) == 0 {
		return nil
	}
	for _, h := range b.Streams() {
		if s := d.streams[h]; s != nil {
			if err := s.capturing("submit", true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Device) submitError(b *cuda.Batch, i int, err error) error {
	commands := b.Commands()
	e := &cuda.SubmitError{Index: i, Op: commands[i].Op, Done: make([]int, len(b.Streams())), Err: err}
	for _, c := range commands[:i] {
		e.Done[c.Stream]++
	}
	return e
}

func (d *Device) submit(b *cuda.Batch, c *cuda.Command) error {
	cost := d.costs.Record
	switch c.Op {
	case cuda.OpLaunch:
		cost = d.costs.Launch
	case cuda.OpCopy:
		cost = d.costs.Copy
	case cuda.OpFill:
		cost = d.costs.Fill
	case cuda.OpWaitEvent:
		cost = d.costs.WaitEvent
	case cuda.OpLaunchGraph:
		cost = d.graphCost(cuda.GraphExec(c.A))
	case cuda.OpWriteWord, cuda.OpWaitWord:
		cost = d.costs.WordOp
	case cuda.OpSignal:
		cost = d.costs.Signal
	}
	if err := d.enter(c.Op.String(), cost); err != nil {
		return err
	}
	defer d.world.Exit()
	op := c.Op.String()
	if int(c.Stream) >= len(b.Streams()) {
		return invalid(op, "stream %d of %d in the batch", c.Stream, len(b.Streams()))
	}
	h := b.Streams()[c.Stream]
	s := d.streams[h]
	if s == nil {
		return badHandle(op, "stream", uint64(h))
	}
	if err := s.capturing(op, b.RefusesCapture()); err != nil {
		return err
	}
	switch c.Op {
	case cuda.OpLaunch:
		return d.submitLaunch(b, c, s)
	case cuda.OpCopy:
		return d.submitCopy(c, s)
	case cuda.OpFill:
		return d.submitFill(c, s)
	case cuda.OpRecord:
		e := d.events[cuda.Event(c.A)]
		if e == nil {
			return badHandle(op, "event", c.A)
		}
		if e.d != d {
			return &cuda.Error{Code: cuda.ErrInvalidHandle, Op: op, Detail: fmt.Sprintf("event %#x is of device %s", c.A, e.d.name)}
		}
		if s.captureRecord(e) {
			d.commands[c.Op]++
			return nil
		}
		n := s.push(c.Op)
		n.a = c.A
		e.on, e.until, e.end = s, s.issued, s.lastEnd
	case cuda.OpWaitEvent:
		e := d.events[cuda.Event(c.A)]
		if e == nil {
			return badHandle(op, "event", c.A)
		}
		if e.capture != nil && e.d != d {
			return &cuda.Error{Code: cuda.ErrNotSupported, Op: op, Detail: "a capture over several devices"}
		}
		if taken, err := s.captureWait(op, e); taken {
			if err == nil {
				d.commands[c.Op]++
			}
			return err
		}
		n := s.push(c.Op)
		n.a = c.A
		n.on, n.until, n.sees = e.on, e.until, e.end
	case cuda.OpLaunchGraph:
		return d.submitGraph(c, s)
	case cuda.OpWriteWord, cuda.OpWaitWord:
		return d.submitWord(c, s)
	case cuda.OpSignal:
		return d.submitSignal(c, s)
	default:
		return invalid(op, "no such command")
	}
	s.advance()
	return nil
}

func (d *Device) submitLaunch(b *cuda.Batch, c *cuda.Command, s *stream) error {
	op := c.Op.String()
	f := d.functions[cuda.Function(c.A)]
	if f == nil {
		return badHandle(op, "function", c.A)
	}
	if err := f.checkShape(op, c); err != nil {
		return err
	}
	arena := b.Arena()
	if end := uint64(c.Off) + uint64(c.Len); c.Len > cuda.MaxArgBytes || end > uint64(len(arena)) {
		return invalid(op, "%s: %d bytes of arguments at %d of an arena of %d, may be %d", f.name, c.Len, c.Off, len(arena), cuda.MaxArgBytes)
	}
	if f.params >= 0 && int(c.Len) != f.params {
		return invalid(op, "%s: %d bytes of arguments, the kernel takes %d", f.name, c.Len, f.params)
	}
	if s.capture == nil && !s.room.Done() {
		d.world.Exit()
		err := d.world.WaitUntil(bg, &s.room, clock.Never)
		d.world.Enter(0)
		if err != nil {
			return fmt.Errorf("cuda/sim: %s: %w", op, err)
		}
		if err := d.gone(op); err != nil {
			return err
		}
		if s.destroyed {
			return badHandle(op, "stream", uint64(s.id))
		}
		if err := s.capturing(op, b.RefusesCapture()); err != nil {
			return err
		}
	}
	if err := d.forbidManaged(op, s); err != nil {
		return err
	}
	n := s.push(c.Op)
	n.fn, n.grid, n.block, n.shared = f, c.Grid, c.Block, c.Shared
	n.args = append(n.args, arena[c.Off:c.Off+c.Len]...)
	if s.capture == nil {
		s.launches.Add(1)
	}
	s.advance()
	return nil
}

func (d *Device) submitCopy(c *cuda.Command, s *stream) error {
	op := c.Op.String()
	if err := d.mem.knownAny(c.B, c.C, false); err != nil && c.C > 0 {
		return invalid(op, "source: %v", err)
	}
	if err := d.mem.knownAny(c.A, c.C, true); err != nil && c.C > 0 {
		return invalid(op, "destination: %v", err)
	}
	n := s.push(c.Op)
	n.a, n.b, n.c = c.A, c.B, c.C
	s.advance()
	return nil
}

func (d *Device) submitFill(c *cuda.Command, s *stream) error {
	op := c.Op.String()
	if c.Flags > 2 {
		return invalid(op, "elements of 2^%d bytes", c.Flags)
	}
	size := uint64(1) << c.Flags
	if c.A%size != 0 {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("%#x is not a multiple of %d", c.A, size)}
	}
	if c.B>>(8*size) != 0 {
		return invalid(op, "value %#x in elements of %d bytes", c.B, size)
	}
	if c.C > 1<<48 {
		return invalid(op, "%d elements", c.C)
	}
	if err := d.mem.known(c.A, c.C*size, true); err != nil && c.C > 0 {
		return invalid(op, "%v", err)
	}
	n := s.push(c.Op)
	n.flags, n.a, n.b, n.c = c.Flags, c.A, c.B, c.C
	s.advance()
	return nil
}
