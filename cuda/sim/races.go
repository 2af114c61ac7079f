package sim

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda/sim/race"
)

// What the happens-before checker ([Options.Races]) is told. A stream is a timeline of
// it; what is ordered before a command is known when it begins: what the host had done
// when it asked for it, and what the commands before it waited for. A launch of a graph
// is one op, so that accesses of its nodes are not held against each other. All host
// code is one timeline; what it does to mapped memory by itself is not seen. Accesses
// of a kernel by which its threads synchronise (volatile, relaxed and stronger, atomic)
// neither race nor order anything.

// HostRead is what the checker is told of [Device.Read].
const HostRead = "read by the host"

// moment is what is ordered before the end of a command, once that is over.
type moment struct{ clock race.Clock }

// timeline returns the stream's, or nil where nobody checks.
func (s *stream) timeline() *race.Line {
	if s.hb == nil && s.d.races != nil {
		s.hb = s.d.races.Line(s.String())
	}
	return s.hb
}

// asked notes what the host had done when it asked for a command.
func (s *stream) asked(c *command) {
	if s.d.races == nil || s.lane {
		return
	}
	c.behind, c.end = s.d.races.HostLine().Now(), &moment{}
	for _, x := range s.d.order {
		if x != s && x.len == 0 && x.lastEnd != nil && s.ordered(x) {
			c.behind = c.behind.Join(x.lastEnd.clock)
		}
	}
	s.lastEnd = c.end
}

// begins makes the command at the head an op.
func (s *stream) begins(c *command) {
	l := s.timeline()
	if l == nil || c.by != nil || s.lane {
		return
	}
	l.Join(c.behind)
	if c.sees != nil {
		l.Join(c.sees.clock)
	}
	c.by = l.Next(c.String(), 0)
}

// ends fills in what waits for the end of the command.
func (s *stream) ends(c *command) {
	if s.d.races == nil || s.lane {
		return
	}
	s.begins(c)
	c.end.clock = s.timeline().Now()
	c.by, c.behind, c.sees, c.end = nil, nil, nil, nil
}

// seenByHost orders what the host does next behind a moment.
func (d *Device) seenByHost(m *moment) {
	if d.races != nil && m != nil {
		d.races.HostLine().Join(m.clock)
	}
}

// hostOp is something that the host does by itself.
func (d *Device) hostOp(what string) *race.Op {
	if d.races == nil {
		return nil
	}
	return d.races.Host(what, 0)
}

// observe tells of an access; nil stands for work that nobody checks.
func (m *Memory) observe(op *race.Op, addr, size uint64, write bool) {
	if op != nil && m.d.races != nil {
		m.d.races.Access(op, addr, size, write)
	}
}

// ended tells of memory that has been freed: a write of all of it.
func (m *Memory) ended(r *region) {
	if c := m.d.races; c != nil && !m.closed {
		c.Access(c.Host("free of "+r.name, 0), r.base, r.size, true)
		c.Forget(r.base, r.size)
	}
}

// Posted says that the host has posted a transfer that touches the memory.
func (m *Memory) Posted(id uint64) {
	if m.d.races == nil {
		return
	}
	if m.transfers == nil {
		m.transfers = map[uint64]*race.Transfer{}
	}
	if m.transfers[id] == nil {
		m.transfers[id] = m.d.races.Post(nil, fmt.Sprintf("transfer %d", id), 0)
	}
}

// Carries says of which transfer the next Read or Write is.
func (m *Memory) Carries(id uint64) {
	if t := m.transfers[id]; t != nil {
		m.by = t.Op
	}
}

// Ended says that the host has seen that a transfer is over.
func (m *Memory) Ended(id uint64) {
	if t := m.transfers[id]; t != nil {
		m.d.races.Complete(t)
		delete(m.transfers, id)
	}
}

// Posted is [Memory.Posted].
func (n *NIC) Posted(id uint64) { n.m.Posted(id) }

// Carries is [Memory.Carries].
func (n *NIC) Carries(id uint64) { n.m.Carries(id) }

// Ended is [Memory.Ended].
func (n *NIC) Ended(id uint64) { n.m.Ended(id) }
