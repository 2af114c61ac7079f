package race

import (
	"fmt"
	"strconv"
	"strings"
)

// program is a scenario that runs.
type program struct {
	s         *Scenario
	c         Checker
	streams   map[string]*stream
	events    map[string]*event
	buffers   map[string]uint64 // addresses
	transfers map[string]*Transfer
}

func (p *program) declare() error {
	for name, kind := range p.s.Streams {
		device := 0
		if _, number, ok := strings.Cut(name, "@"); ok {
			n, err := strconv.Atoi(number)
			if err != nil {
				return fmt.Errorf("stream %q: no number of a device behind the @", name)
			}
			device = n
		}
		kinds := map[string]streamKind{"blocking": blocking, "nonblocking": nonBlocking, "legacy default": legacy}
		k, ok := kinds[kind]
		if !ok {
			return fmt.Errorf("stream %q is %q", name, kind)
		}
		p.streams[name] = p.c.stream(name, device, k)
	}
	for name := range p.s.Events {
		p.events[name] = &event{}
	}
	next := uint64(1) << 32
	for name, b := range p.s.Buffers {
		switch b.Kind {
		case "device", "managed", "pinned", "pageable":
		default:
			return fmt.Errorf("buffer %q is %q", name, b.Kind)
		}
		if b.Bytes >= 1<<40 {
			return fmt.Errorf("buffer %q of %d bytes", name, b.Bytes)
		}
		p.buffers[name] = next
		next += b.Bytes + 1
	}
	return nil
}

// touch makes op access a buffer, all of it, a range, or rows a pitch apart.
func (p *program) touch(op *Op, name string, r *[2]uint64, rows *Rows, pitch uint64, write bool) error {
	b, ok := p.s.Buffers[name]
	if !ok {
		return fmt.Errorf("unknown buffer %q", name)
	}
	off, n := uint64(0), b.Bytes
	if r != nil {
		if off, n = r[0], r[1]; off > b.Bytes || n > b.Bytes-off {
			return fmt.Errorf("%d bytes at %d of %q, which has %d", n, off, name, b.Bytes)
		}
	}
	at := p.buffers[name] + off
	if rows == nil {
		p.c.Access(op, at, n, write)
		return nil
	}
	if pitch == 0 {
		pitch = rows.Width
	}
	const most = 1 << 16
	if rows.Height > most || rows.Width > pitch || pitch > n || rows.Height > 0 && (rows.Height-1)*pitch+rows.Width > n {
		return fmt.Errorf("%d rows of %d bytes, %d apart, in %d bytes of %q", rows.Height, rows.Width, pitch, n, name)
	}
	for i := range rows.Height {
		p.c.Access(op, at+i*pitch, rows.Width, write)
	}
	return nil
}

// step runs the op of that index; by is the stream's op that it is the body of.
func (p *program) step(i int, x *Step, by *Op) error {
	var s *stream
	if x.Stream != "" {
		if s = p.streams[x.Stream]; s == nil {
			return fmt.Errorf("unknown stream %q", x.Stream)
		}
	}
	var e *event
	if x.Event != "" {
		if e = p.events[x.Event]; e == nil {
			return fmt.Errorf("unknown event %q", x.Event)
		}
	}
	needs, ok := map[string]struct{ stream, event, body bool }{
		"kernel": {stream: true}, "memset": {stream: true}, "memcpy": {stream: true}, "callback": {stream: true},
		"record": {stream: true, event: true}, "stream_wait": {stream: true, event: true},
		"event_sync": {event: true}, "event_query_until_done": {event: true},
		"stream_sync": {stream: true}, "stream_query_until_done": {stream: true},
		"device_sync": {}, "set_device": {}, "host_read": {body: true}, "host_write": {body: true},
		"nic_post": {body: true}, "nic_wait": {}, "nic_cancel": {}, "free": {}, "alloc_implicit_sync": {}, "recycle": {},
	}[x.Op]
	switch {
	case !ok || by != nil && !needs.body:
		return fmt.Errorf("no such op here")
	case needs.stream && s == nil:
		return fmt.Errorf("lacks a stream")
	case needs.event && e == nil:
		return fmt.Errorf("lacks an event")
	}
	switch x.Op {
	case "kernel":
		return p.kernel(i, x, s)
	case "memset":
		op := p.c.submit(s, "memset", i)
		if !x.Async && p.s.Buffers[x.Buf].Kind == "pinned" {
			p.c.hold(op)
		}
		pitch := uint64(0)
		if x.Rows != nil {
			pitch = x.Rows.DstPitch
		}
		return p.touch(op, x.Buf, x.Range, x.Rows, pitch, true)
	case "memcpy":
		return p.copy(i, x, s)
	case "callback":
		op := p.c.submit(s, "callback", i)
		for k := range x.Body {
			if err := p.step(i, &x.Body[k], op); err != nil {
				return fmt.Errorf("%s in its body: %w", x.Body[k].Op, err)
			}
		}
	case "record":
		p.c.record(s, e)
	case "stream_wait":
		p.c.wait(s, e)
	case "event_sync", "event_query_until_done":
		p.c.syncEvent(e)
	case "stream_sync", "stream_query_until_done":
		p.c.syncStream(s)
	case "device_sync":
		p.c.syncDevice(x.Device)
	case "host_read", "host_write", "free":
		op := by
		if op == nil {
			op = p.c.Host(x.Op, i)
		}
		return p.touch(op, x.Buf, x.Range, nil, 0, x.Op != "host_read")
	case "nic_post", "nic_wait", "nic_cancel":
		return p.transfer(i, x, by)
	}
	return nil
}

func (p *program) kernel(i int, x *Step, s *stream) error {
	op := p.c.submit(s, "kernel", i)
	for _, u := range x.Reads {
		if err := p.touch(op, u.Buffer, u.Range, nil, 0, false); err != nil {
			return err
		}
	}
	for _, u := range x.Writes {
		if err := p.touch(op, u.Buffer, u.Range, nil, 0, true); err != nil {
			return err
		}
	}
	return nil
}

// copy is two ops where the host waits until the source has been read, and not for
// what is written.
func (p *program) copy(i int, x *Step, s *stream) error {
	var dst, src uint64
	if x.Rows != nil {
		dst, src = x.Rows.DstPitch, x.Rows.SrcPitch
	}
	switch x.Kind {
	case "H2D", "D2H", "D2D", "H2H":
	default:
		return fmt.Errorf("kind %q", x.Kind)
	}
	read := p.c.submit(s, "memcpy "+x.Kind, i)
	write := read
	staged := !x.Async && x.Kind == "H2D" && p.s.Buffers[x.Src].Kind == "pageable"
	switch {
	case staged:
		p.c.hold(read)
		write = p.c.submit(s, "memcpy "+x.Kind, i)
	case x.Kind == "H2H", !x.Async && x.Kind != "D2D":
		p.c.hold(read)
	}
	if err := p.touch(read, x.Src, x.SrcRange, x.Rows, src, false); err != nil {
		return err
	}
	return p.touch(write, x.Dst, x.DstRange, x.Rows, dst, true)
}

func (p *program) transfer(i int, x *Step, by *Op) error {
	t := p.transfers[x.ID]
	if x.Op != "nic_post" {
		if t == nil {
			return fmt.Errorf("unknown transfer %q", x.ID)
		}
		if x.Op == "nic_wait" {
			p.c.Complete(t)
		}
		return nil
	}
	if x.Dir != "send" && x.Dir != "recv" {
		return fmt.Errorf("direction %q", x.Dir)
	}
	t = p.c.Post(by, "transfer "+x.ID, i)
	p.transfers[x.ID] = t
	return p.touch(t.Op, x.Buf, x.Range, nil, 0, x.Dir == "recv")
}
