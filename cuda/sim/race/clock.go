package race

import "slices"

// clock is a vector clock: for each timeline, how many of its ops are ordered before.
type clock []uint64

func (c clock) at(line int) uint64 {
	if line < len(c) {
		return c[line]
	}
	return 0
}

// join returns a clock that has all that either has. It changes c where there is room.
func (c clock) join(o clock) clock {
	if n := len(o) - len(c); n > 0 {
		c = append(c, make(clock, n)...)
	}
	for i, t := range o {
		c[i] = max(c[i], t)
	}
	return c
}

// set makes the entry of a timeline t.
func (c clock) set(line int, t uint64) clock {
	if n := line + 1 - len(c); n > 0 {
		c = append(c, make(clock, n)...)
	}
	c[line] = t
	return c
}

// timeline is what is ordered in itself: the host, a stream, a transfer.
type timeline struct {
	id    int
	name  string
	tick  uint64 // of its last op
	clock clock
}

// Op is a piece of work: what is ordered before it, and its place in its timeline.
type Op struct {
	line  int
	tick  uint64
	clock clock
	// What describes it in reports, with where it was asked for.
	What string
	// Index is the caller's number for it.
	Index int
}

// before reports whether an op is ordered before the other, or is the same.
func (o *Op) before(x *Op) bool { return o.tick <= x.clock.at(o.line) }

// next makes the timeline's next op.
func (l *timeline) next(what string, index int) *Op {
	l.tick++
	l.clock = l.clock.set(l.id, l.tick)
	return &Op{line: l.id, tick: l.tick, clock: slices.Clone(l.clock), What: what, Index: index}
}
