package race

import "slices"

// streamKind says how a stream is ordered with the legacy default stream.
type streamKind int

const (
	// nonBlocking streams have no order with it.
	nonBlocking streamKind = iota
	// blocking streams wait for it, and it for them.
	blocking
	// legacy is the legacy default stream of a device.
	legacy
)

// stream is a stream of a device.
type stream struct {
	line   *Line
	device int
	kind   streamKind
}

// event is an event; its zero value has not been recorded.
type event struct{ recorded Clock }

// stream adds a stream.
func (c *Checker) stream(name string, device int, kind streamKind) *stream {
	c.HostLine()
	s := &stream{line: c.Line(name), device: device, kind: kind}
	c.streams = append(c.streams, s)
	return s
}

// follow orders what comes next in s behind what the legacy stream, or blocking
// streams where s is that one, hold.
func (c *Checker) follow(s *stream) {
	for _, x := range c.streams {
		pair := s.kind == legacy && x.kind == blocking || s.kind == blocking && x.kind == legacy
		if pair && x.device == s.device {
			s.line.clock = s.line.clock.join(x.line.clock)
		}
	}
}

// submit puts work into a stream.
func (c *Checker) submit(s *stream, what string, index int) *Op {
	s.line.clock = s.line.clock.join(c.HostLine().clock)
	c.follow(s)
	return s.line.Next(what, index)
}

// hold makes the host wait for an op.
func (c *Checker) hold(op *Op) { c.host.clock = c.host.clock.join(op.clock) }

// record records an event in a stream.
func (c *Checker) record(s *stream, e *event) {
	c.follow(s)
	e.recorded = slices.Clone(s.line.clock.join(c.HostLine().clock))
}

// wait makes a stream wait for the record that an event has now.
func (c *Checker) wait(s *stream, e *event) { s.line.clock = s.line.clock.join(e.recorded) }

// syncEvent makes the host wait for it.
func (c *Checker) syncEvent(e *event) { c.HostLine().clock = c.HostLine().clock.join(e.recorded) }

// syncStream makes the host wait for what a stream holds; for the legacy default stream
// also for what blocking ones do.
func (c *Checker) syncStream(s *stream) {
	if s.kind == legacy {
		c.follow(s)
	}
	c.HostLine().clock = c.HostLine().clock.join(s.line.clock)
}

// syncDevice makes the host wait for all streams of a device.
func (c *Checker) syncDevice(device int) {
	for _, s := range c.streams {
		if s.device == device {
			c.HostLine().clock = c.HostLine().clock.join(s.line.clock)
		}
	}
}
