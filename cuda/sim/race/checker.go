package race

import (
	"fmt"
	"slices"
)

// Transfer is a transfer of a NIC that has been posted.
type Transfer struct {
	line *Line
	Op   *Op
}

// Access is one side of a race.
type Access struct {
	What  string // the work
	Where string // its place: "op 3 of compute"
	Write bool
	Index int // of its op
	// After names the last op of each other timeline that is ordered before it.
	After []string
}

func (a Access) String() string {
	verb := "reads"
	if a.Write {
		verb = "writes"
	}
	s := fmt.Sprintf("%s (%s) %s", a.What, a.Where, verb)
	for i, x := range a.After {
		if i == 0 {
			s += ", behind "
		} else {
			s += ", "
		}
		s += x
	}
	return s
}

// Race is two accesses to the same bytes, one of them a write, that nothing orders.
type Race struct {
	Addr, Size    uint64
	First, Second Access // as they happened
}

func (r Race) String() string {
	return fmt.Sprintf("race over %d bytes at %#x: %s; %s", r.Size, r.Addr, r.First, r.Second)
}

// Checker keeps what happened. Its zero value is ready for use.
type Checker struct {
	// Found is called with each race, of a pair of ops once.
	Found func(Race)

	lines   []*Line
	host    *Line
	free    []*Line   // of transfers that are over
	streams []*stream // of scenarios
	memory  shadow
	seen    map[[2]opID]bool
}

type opID struct {
	line int
	tick uint64
}

// Line adds a timeline.
func (c *Checker) Line(name string) *Line {
	l := &Line{id: len(c.lines), name: name}
	c.lines = append(c.lines, l)
	return l
}

// HostLine returns the timeline of the host, which is the first.
func (c *Checker) HostLine() *Line {
	if c.host == nil {
		c.host = c.Line("the host")
	}
	return c.host
}

// Host is work of the host itself.
func (c *Checker) Host(what string, index int) *Op { return c.HostLine().Next(what, index) }

// Post starts a transfer: from the host, or from an op of a stream where by is not nil.
func (c *Checker) Post(by *Op, what string, index int) *Transfer {
	from := c.HostLine().clock
	if by != nil {
		from = by.clock
	}
	var l *Line
	for i, x := range c.free {
		if from.at(x.id) >= x.tick { // what it did is ordered before
			l, c.free = x, slices.Delete(c.free, i, i+1)
			break
		}
	}
	if l == nil {
		l = c.Line("a NIC")
	}
	l.clock = slices.Clone(from)
	return &Transfer{line: l, Op: l.Next(what, index)}
}

// Complete says that the host has seen the completion of a transfer.
func (c *Checker) Complete(t *Transfer) {
	c.HostLine().clock = c.HostLine().clock.join(t.line.clock)
	c.free = append(c.free, t.line)
}

// Access is called when an op touches [addr, addr+size).
func (c *Checker) Access(op *Op, addr, size uint64, write bool) {
	c.memory.access(op, addr, addr+size, write, func(earlier *Op, wrote bool, from, to uint64) {
		pair := [2]opID{{earlier.line, earlier.tick}, {op.line, op.tick}}
		if c.Found == nil || c.seen[pair] {
			return
		}
		if c.seen == nil {
			c.seen = map[[2]opID]bool{}
		}
		c.seen[pair] = true
		c.Found(Race{Addr: from, Size: to - from, First: c.side(earlier, wrote), Second: c.side(op, write)})
	})
}

// Forget drops what is known of memory that is given out anew.
func (c *Checker) Forget(addr, size uint64) { c.memory.forget(addr, addr+size) }

// side describes an op with its history: how far each other timeline is ordered before
// it.
func (c *Checker) side(op *Op, write bool) Access {
	a := Access{What: op.What, Where: fmt.Sprintf("op %d of %s", op.tick, c.lines[op.line].name), Write: write, Index: op.Index}
	for i, t := range op.clock {
		if i != op.line && t > 0 {
			a.After = append(a.After, fmt.Sprintf("op %d of %s", t, c.lines[i].name))
		}
	}
	return a
}
