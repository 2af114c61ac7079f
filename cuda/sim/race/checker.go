package race

import (
	"fmt"
	"slices"
)

// StreamKind says how a stream is ordered with the legacy default stream.
type StreamKind int

const (
	// NonBlocking streams have no order with it.
	NonBlocking StreamKind = iota
	// Blocking streams wait for it, and it for them.
	Blocking
	// Legacy is the legacy default stream of a device.
	Legacy
)

// Stream is a stream of a device.
type Stream struct {
	line   *timeline
	device int
	kind   StreamKind
}

// Event is an event; its zero value has not been recorded.
type Event struct{ record clock }

// Transfer is a transfer of a NIC that has been posted.
type Transfer struct {
	line *timeline
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

	lines   []*timeline
	host    *timeline
	free    []*timeline // of transfers that are over
	streams []*Stream
	memory  shadow
	seen    map[[2]opID]bool
}

type opID struct {
	line int
	tick uint64
}

func (c *Checker) newLine(name string) *timeline {
	l := &timeline{id: len(c.lines), name: name}
	c.lines = append(c.lines, l)
	return l
}

func (c *Checker) hostLine() *timeline {
	if c.host == nil {
		c.host = c.newLine("the host")
	}
	return c.host
}

// Stream adds a stream.
func (c *Checker) Stream(name string, device int, kind StreamKind) *Stream {
	c.hostLine()
	s := &Stream{line: c.newLine(name), device: device, kind: kind}
	c.streams = append(c.streams, s)
	return s
}

// Drop says that a stream has been destroyed: the legacy default stream does not wait
// for what is put into it later, as nothing can be.
func (c *Checker) Drop(s *Stream) {
	c.streams = slices.DeleteFunc(c.streams, func(x *Stream) bool { return x == s })
}

// follow orders what comes next in s behind what the legacy stream, or blocking
// streams where s is that one, hold.
func (c *Checker) follow(s *Stream) {
	for _, x := range c.streams {
		pair := s.kind == Legacy && x.kind == Blocking || s.kind == Blocking && x.kind == Legacy
		if pair && x.device == s.device {
			s.line.clock = s.line.clock.join(x.line.clock)
		}
	}
}

// Submit puts work into a stream.
func (c *Checker) Submit(s *Stream, what string, index int) *Op {
	s.line.clock = s.line.clock.join(c.hostLine().clock)
	c.follow(s)
	return s.line.next(what, index)
}

// Hold makes the host wait for an op.
func (c *Checker) Hold(op *Op) { c.host.clock = c.host.clock.join(op.clock) }

// Host is work of the host itself.
func (c *Checker) Host(what string, index int) *Op { return c.hostLine().next(what, index) }

// Record records an event in a stream.
func (c *Checker) Record(s *Stream, e *Event) {
	c.follow(s)
	e.record = slices.Clone(s.line.clock.join(c.hostLine().clock))
}

// Wait makes a stream wait for the record that an event has now.
func (c *Checker) Wait(s *Stream, e *Event) { s.line.clock = s.line.clock.join(e.record) }

// SyncEvent makes the host wait for it.
func (c *Checker) SyncEvent(e *Event) { c.hostLine().clock = c.hostLine().clock.join(e.record) }

// SyncStream makes the host wait for what a stream holds; for the legacy default stream
// also for what blocking ones do.
func (c *Checker) SyncStream(s *Stream) {
	if s.kind == Legacy {
		c.follow(s)
	}
	c.hostLine().clock = c.hostLine().clock.join(s.line.clock)
}

// SyncDevice makes the host wait for all streams of a device.
func (c *Checker) SyncDevice(device int) {
	for _, s := range c.streams {
		if s.device == device {
			c.hostLine().clock = c.hostLine().clock.join(s.line.clock)
		}
	}
}

// Post starts a transfer: from the host, or from an op of a stream where by is not nil.
func (c *Checker) Post(by *Op, what string, index int) *Transfer {
	from := c.hostLine().clock
	if by != nil {
		from = by.clock
	}
	var l *timeline
	for i, x := range c.free {
		if from.at(x.id) >= x.tick { // what it did is ordered before
			l, c.free = x, slices.Delete(c.free, i, i+1)
			break
		}
	}
	if l == nil {
		l = c.newLine("a NIC")
	}
	l.clock = slices.Clone(from)
	return &Transfer{line: l, Op: l.next(what, index)}
}

// Complete says that the host has seen the completion of a transfer.
func (c *Checker) Complete(t *Transfer) {
	c.hostLine().clock = c.hostLine().clock.join(t.line.clock)
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
