package race

import "slices"

// Clock is a vector clock: for each timeline, how many of its ops are ordered before.
type Clock []uint64

func (c Clock) at(line int) uint64 {
	if line < len(c) {
		return c[line]
	}
	return 0
}

// join returns a clock that has all that either has. It changes c where there is room.
func (c Clock) join(o Clock) Clock {
	if n := len(o) - len(c); n > 0 {
		c = append(c, make(Clock, n)...)
	}
	for i, t := range o {
		c[i] = max(c[i], t)
	}
	return c
}

// Join returns a clock that has all that either has.
func (c Clock) Join(o Clock) Clock { return slices.Clone(c).join(o) }

// set makes the entry of a timeline t.
func (c Clock) set(line int, t uint64) Clock {
	if n := line + 1 - len(c); n > 0 {
		c = append(c, make(Clock, n)...)
	}
	c[line] = t
	return c
}

// Line is a timeline: what is ordered in itself, as the host, a stream, or a transfer.
// What runs tells a line of it: [Line.Join] before an op, of all that the op waits for.
type Line struct {
	id    int
	name  string
	tick  uint64 // of its last op
	clock Clock
}

// Now returns what is ordered before the line's next op.
func (l *Line) Now() Clock { return slices.Clone(l.clock) }

// Join orders the line's next op behind what k has.
func (l *Line) Join(k Clock) { l.clock = l.clock.join(k) }

// Op is a piece of work: what is ordered before it, and its place in its timeline.
type Op struct {
	line  int
	tick  uint64
	clock Clock
	// What describes it in reports, with where it was asked for.
	What string
	// Index is the caller's number for it.
	Index int
}

// before reports whether an op is ordered before the other, or is the same.
func (o *Op) before(x *Op) bool { return o.tick <= x.clock.at(o.line) }

// Clock returns what is ordered before what waits for the op.
func (o *Op) Clock() Clock { return o.clock }

// Next makes the line's next op.
func (l *Line) Next(what string, index int) *Op {
	l.tick++
	l.clock = l.clock.set(l.id, l.tick)
	return &Op{line: l.id, tick: l.tick, clock: slices.Clone(l.clock), What: what, Index: index}
}
