package core

import (
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// set is a fence set: points on timelines, at most one for each, that all have
// to fire. 0 is the empty set. Most sets have one point and hold it themselves,
// the timeline above the sequence number; others, with the top bit set, name an
// entry of the fence table. Sets are immutable: every block of a request that
// was stamped by one step has the same one.
type set uint64

const (
	manyPoints set = 1 << 63
	seqBits        = 43 // a mark every microsecond for a hundred days
	lineBits       = 20
)

func point(s set) kv.Point {
	return kv.Point{Timeline: kv.Timeline(s >> seqBits), Seq: kv.Seq(s & (1<<seqBits - 1))}
}

// pack is the set of one point.
func pack(p kv.Point) set { return set(p.Timeline)<<seqBits | set(p.Seq) }

// timeline is what the core knows of one stream's counted work.
type timeline struct {
	done kv.Seq
	// waiters[i] are the tickets that wait for the mark done+1+i.
	waiters deque
}

// fenceTable holds the sets of more than one point. Those that nothing names
// any more are found by marking and sweeping, which costs a pass over the
// blocks once in as many new sets as there are blocks: constant work for each.
type fenceTable struct {
	points [][]kv.Point // sorted by timeline
	free   []int32
	memo   [64]unionMemo
	made   int // sets made since the last sweep
	marks  []bool
}

type unionMemo struct{ a, b, r set }

func (c *Core) line(id kv.Timeline) *timeline {
	for int(id) >= len(c.lines) {
		c.lines = append(c.lines, timeline{})
	}
	return &c.lines[id]
}

func (c *Core) pointFired(p kv.Point) bool {
	return p.Timeline == 0 || int(p.Timeline) < len(c.lines) && p.Seq <= c.lines[p.Timeline].done
}

// pointsOf returns the points of a set; one is where a single one is put.
func (c *Core) pointsOf(s set, one *[1]kv.Point) []kv.Point {
	switch {
	case s == 0:
		return nil
	case s&manyPoints == 0:
		one[0] = point(s)
		return one[:]
	}
	return c.fences.points[s&^manyPoints]
}

// unfired returns the first point of s that has not fired.
func (c *Core) unfired(s set) (kv.Point, bool) {
	var one [1]kv.Point
	for _, p := range c.pointsOf(s, &one) {
		if !c.pointFired(p) {
			return p, true
		}
	}
	return kv.Point{}, false
}

func (c *Core) fired(s set) bool {
	if s == 0 {
		return true
	}
	_, wait := c.unfired(s)
	return !wait
}

// newSet makes a set of points, which are sorted by timeline.
func (c *Core) newSet(points []kv.Point) set {
	if len(points) == 1 {
		return pack(points[0])
	}
	f := &c.fences
	f.made++
	if n := len(f.free); n > 0 {
		i := f.free[n-1]
		f.free = f.free[:n-1]
		f.points[i] = append(f.points[i][:0], points...)
		return manyPoints | set(i)
	}
	f.points = append(f.points, append(make([]kv.Point, 0, 4), points...))
	return manyPoints | set(len(f.points)-1)
}

// single returns the set of one point; the empty set when it has fired.
func (c *Core) single(p kv.Point) set {
	if p.Timeline == 0 || p.Seq <= c.line(p.Timeline).done {
		return 0
	}
	return pack(p)
}

// union returns a set that has fired exactly when a and b have. Fired points
// are left out, and of one timeline only the newest is kept.
func (c *Core) union(a, b set) set {
	switch {
	case a == b || b == 0:
		return a
	case a == 0:
		return b
	case (a|b)&manyPoints == 0 && a>>seqBits == b>>seqBits:
		return max(a, b)
	}
	m := &c.fences.memo[uint64(a*31^b*17)%uint64(len(c.fences.memo))]
	if m.a == a && m.b == b {
		return m.r
	}
	r := c.merge(a, b)
	*m = unionMemo{a, b, r}
	return r
}

func (c *Core) merge(a, b set) set {
	var oneA, oneB [1]kv.Point
	pa, pb := c.pointsOf(a, &oneA), c.pointsOf(b, &oneB)
	out := c.scratch[:0]
	allA, allB := true, true // whether the result is still just a, or just b
	take := func(p kv.Point, fromA, fromB bool) {
		if c.pointFired(p) {
			return
		}
		out = append(out, p)
		allA, allB = allA && fromA, allB && fromB
	}
	for len(pa) > 0 || len(pb) > 0 {
		switch {
		case len(pb) == 0 || len(pa) > 0 && pa[0].Timeline < pb[0].Timeline:
			take(pa[0], true, false)
			pa = pa[1:]
		case len(pa) == 0 || pb[0].Timeline < pa[0].Timeline:
			take(pb[0], false, true)
			pb = pb[1:]
		default:
			take(kv.Point{Timeline: pa[0].Timeline, Seq: max(pa[0].Seq, pb[0].Seq)},
				pa[0].Seq >= pb[0].Seq, pb[0].Seq >= pa[0].Seq)
			pa, pb = pa[1:], pb[1:]
		}
	}
	c.scratch = out
	switch {
	case len(out) == 0:
		return 0
	case allB: // every unfired point is one of b's, and a adds nothing unfired
		return b
	case allA:
		return a
	}
	return c.newSet(out)
}

// setOf returns the set of the given points, in any order.
func (c *Core) setOf(points []kv.Point) set {
	var s set
	for _, p := range points {
		s = c.union(s, c.single(p))
	}
	return s
}

// sweep frees the sets that nothing names, when enough have been made for the
// pass to be worth it.
func (c *Core) sweep() {
	f := &c.fences
	if f.made < max(1024, len(c.blocks)+len(c.holders)) {
		return
	}
	f.made = 0
	f.marks = slices.Grow(f.marks[:0], len(f.points))[:len(f.points)]
	clear(f.marks)
	keep := func(s *set) {
		switch {
		case *s&manyPoints == 0:
		case c.fired(*s):
			*s = 0
		default:
			f.marks[*s&^manyPoints] = true
		}
	}
	for i := range c.blocks {
		keep(&c.blocks[i].stamp)
		keep(&c.blocks[i].zeroed)
	}
	for i := range c.holders {
		keep(&c.holders[i].last)
		keep(&c.holders[i].ready)
	}
	for i := range c.tickets {
		keep(&c.tickets[i].fences)
	}
	for i := range c.steps.entries {
		keep(&c.steps.entries[i].fences)
	}
	keep(&c.steps.current.fences)
	f.memo = [64]unionMemo{}
	f.free = f.free[:0]
	for i := len(f.points) - 1; i >= 0; i-- {
		if !f.marks[i] {
			f.free = append(f.free, int32(i))
		}
	}
}

// Fired tells the core that the marks of a timeline up to seq have fired.
func (c *Core) Fired(id kv.Timeline, seq kv.Seq) error {
	if id == 0 || id >= 1<<lineBits {
		return refuse("fired", fmt.Sprintf("timeline %d", id), ErrInvalid)
	}
	l := c.line(id)
	if seq < l.done {
		return refuse("fired", kv.Point{Timeline: id, Seq: seq}.String(), ErrBackwards)
	}
	var woken list
	for n := min(uint64(seq-l.done), uint64(l.waiters.len())); n > 0; n-- {
		c.concat(&woken, l.waiters.pop())
	}
	l.done = seq
	c.wakeAll(woken)
	if c.steps.urgent > 0 {
		c.drainSteps()
	}
	c.sweep()
	return nil
}

// Completed returns how far a timeline has got, as the core was told.
func (c *Core) Completed(id kv.Timeline) kv.Seq {
	if int(id) >= len(c.lines) {
		return 0
	}
	return c.lines[id].done
}

// maxOpenMarks bounds how far ahead of a timeline's progress a mark may be. A
// stream blocks its host at about a thousand pending launches, so no honest
// mark comes near.
const maxOpenMarks = 1 << 20

// CheckLine refuses a timeline on which no mark could be told to the core, before
// anything is launched on its stream: ids from 2^20 on, and sequences from 2^43.
func (c *Core) CheckLine(id kv.Timeline) error {
	if id == 0 || id >= 1<<lineBits || c.Completed(id) >= 1<<seqBits-maxOpenMarks {
		return refuse("launch", fmt.Sprintf("timeline %d at mark %d", id, c.Completed(id)), ErrInvalid)
	}
	return nil
}

func (c *Core) checkMark(op string, m kv.Point) error {
	if m.Timeline == 0 || m.Timeline >= 1<<lineBits || m.Seq == 0 || m.Seq >= 1<<seqBits || m.Seq > c.Completed(m.Timeline)+maxOpenMarks {
		return refuse(op, "mark "+m.String(), ErrInvalid)
	}
	return nil
}
