package sim

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/race"
)

// command is a command in a stream.
type command struct {
	op     cuda.Op
	flags  uint8
	shared uint32
	grid   [3]uint32
	block  [3]uint16
	a      uint64 // as in cuda.Command
	b      uint64
	c      uint64
	pages  []byte        // the other side of a copy from or to pageable memory
	fn     *function     // of a launch
	exec   *graphExec    // of a graph launch
	behind race.Clock    // what is ordered before it when it is asked for; as the next three of races.go
	sees   *moment       // a wait: the end of what it waits for
	end    *moment       // its own
	by     *race.Op      // it, once it has begun
	lane   int           // of the graph, that the launch waits for
	begun  bool          // the graph's nodes are in its lanes
	args   []byte        // of a launch
	host   *hostFunc     // of a signal
	on     *stream       // a wait: for that stream
	until  uint64        // to have completed so many commands
	seen   time.Duration // when it was issued
}

// stream is a FIFO of commands. Positions count its commands from 1: the n-th
// command is over when completed has reached n, so an event is a stream and a
// position.
type stream struct {
	d    *Device
	id   cuda.Stream
	name string

	priority int
	blocking bool // it has an order with the legacy default stream
	// Up to where the legacy stream waits for this one, and this one for it.
	followed, sawLegacy uint64

	queue     []command // ring
	head, len int
	issued    uint64
	completed atomic.Uint64
	launches  atomic.Int64  // that are in the stream
	busy      bool          // the head runs, or waits for its time to start
	waiting   bool          // the head waits for another stream
	onWord    bool          // the head waits for a word
	ready     time.Duration // end of the last launch, copy or fill
	waiters   []*stream     // whose heads wait for this one
	lane      bool          // of a graph
	hb        *race.Line    // see races.go
	lastEnd   *moment       // of the last command
	destroyed bool

	capture *capture // nil: commands run
	tips    []int    // the nodes that the next one depends on

	// Bound once, so that planning an event allocates nothing.
	startFn, recordFn, resumeFn func()
	writeFn, reachedFn, callFn  func()
	wordFn                      func() bool
	room                        roomCond
}

func (d *Device) newStream(name string, priority int) *stream {
	s := &stream{d: d, name: name, priority: priority}
	s.startFn, s.recordFn, s.resumeFn = s.start, s.recorded, s.resume
	s.writeFn, s.reachedFn, s.callFn, s.wordFn = s.writeWord, s.wordReached, s.callHost, s.wordThere
	s.room = roomCond{s}
	return s
}

// push accepts a command: at the end of the stream, behind what the order with
// the legacy default stream asks for, or as a node of its capture.
func (s *stream) push(op cuda.Op) *command {
	s.d.commands[op]++
	if s.capture != nil {
		return s.capture.add(s, op)
	}
	s.follow()
	c := s.enqueue(op)
	s.d.stats.MaxQueued = max(s.d.stats.MaxQueued, s.len)
	return c
}

func (s *stream) enqueue(op cuda.Op) *command {
	if s.len == len(s.queue) {
		q := make([]command, max(16, 2*len(s.queue)))
		for i := range s.len {
			q[i] = s.queue[(s.head+i)%len(s.queue)]
		}
		s.queue, s.head = q, 0
	}
	c := &s.queue[(s.head+s.len)%len(s.queue)]
	s.len++
	s.issued++
	*c = command{op: op, args: c.args[:0], seen: s.d.world.Time()}
	s.asked(c)
	return c
}

// advance brings the head of the stream on its way, if it has one that is not.
func (s *stream) advance() {
	d := s.d
	if s.busy || s.waiting || s.len == 0 || d.stopped() {
		return
	}
	c := &s.queue[s.head]
	now := d.world.Time()
	switch c.op {
	case cuda.OpRecord:
		s.busy = true
		d.world.At(max(now, s.ready)+d.costs.EventLatency, "record", s.recordFn)
	case cuda.OpWaitEvent:
		if c.on != nil && c.on.completed.Load() < c.until {
			if c.on.d.stopped() {
				d.die(s.stranded())
				return
			}
			s.waiting = true
			c.on.waiters = append(c.on.waiters, s)
			return
		}
		s.busy = true
		d.world.At(max(now, s.ready), "wait is over", s.resumeFn)
	case cuda.OpLaunchGraph:
		s.busy = true
		d.world.At(max(now, s.ready), "graph", s.resumeFn)
	case cuda.OpWriteWord:
		s.busy = true
		d.world.At(max(now, s.ready)+d.costs.WordLatency, "write word", s.writeFn)
	case cuda.OpWaitWord:
		s.busy, s.onWord = true, true
		d.world.Watch("word", s.wordFn, s.reachedFn)
	case cuda.OpSignal:
		s.busy = true
		d.world.At(max(now, s.ready)+d.costs.HostFunc, "host function", s.callFn)
	case cuda.OpLaunch:
		s.busy = true
		d.world.At(max(c.seen+d.costs.LaunchLatency, s.ready+d.costs.KernelGap), "launch", s.startFn)
	default:
		s.busy = true
		d.world.At(max(c.seen+d.costs.CopyLatency, s.ready+d.costs.CopyGap), "transfer", s.startFn)
	}
}

// resume ends a wait at the head, or of the head.
func (s *stream) resume() {
	if s.d.stopped() {
		return
	}
	if s.queue[s.head].op == cuda.OpLaunchGraph {
		s.begins(&s.queue[s.head])
		s.stepGraph()
		return
	}
	s.complete()
}

func (s *stream) recorded() {
	if s.d.stopped() {
		return
	}
	s.d.activity.Add(1)
	s.complete()
}

// complete ends the head and what waited for it.
func (s *stream) complete() {
	d := s.d
	c := &s.queue[s.head]
	if c.op == cuda.OpLaunch {
		s.launches.Add(-1)
	}
	if c.op != cuda.OpRecord && c.op != cuda.OpWaitEvent {
		s.ready = d.world.Time()
	}
	s.ends(c)
	c.fn, c.on, c.host, c.exec, c.pages = nil, nil, nil, nil, nil
	s.head = (s.head + 1) % len(s.queue)
	s.len--
	s.busy = false
	n := s.completed.Add(1)
	kept := s.waiters[:0]
	for _, o := range s.waiters {
		if h := &o.queue[o.head]; h.until > n {
			kept = append(kept, o)
			continue
		}
		o.waiting, o.busy = false, true
		d.world.After(d.costs.StreamWait, "wait is over", o.resumeFn)
	}
	clear(s.waiters[len(kept):])
	s.waiters = kept
	s.forget()
	s.advance()
}

func (s *stream) String() string {
	if s.name != "" {
		return s.name
	}
	return fmt.Sprintf("stream %#x", uint64(s.id))
}

func (s *stream) explain(w io.Writer) {
	if s.len == 0 {
		return
	}
	c := &s.queue[s.head]
	fmt.Fprintf(w, "  %s: %d commands; the first, %s, ", s, s.len, c)
	switch {
	case s.waiting:
		fmt.Fprintf(w, "waits for command %d of %s, which has done %d\n", c.until, c.on, c.on.completed.Load())
	case s.onWord:
		fmt.Fprintf(w, "finds %s there\n", s.d.mem.wordText(c.a))
	case s.busy:
		fmt.Fprintln(w, "is under way")
	default:
		fmt.Fprintln(w, "has not started")
	}
	if c.begun {
		for i, l := range c.exec.lanes {
			if l.len > 0 {
				fmt.Fprintf(w, "  lane %d of the graph in", i)
				l.explain(w)
			}
		}
	}
}

func (c *command) String() string {
	switch c.op {
	case cuda.OpLaunch:
		return fmt.Sprintf("launch of %s", c.fn.name)
	case cuda.OpRecord, cuda.OpWaitEvent:
		return fmt.Sprintf("%s %#x", c.op, c.a)
	case cuda.OpCopy:
		switch {
		case c.pages == nil:
			return fmt.Sprintf("copy of %d bytes from %#x to %#x", c.c, c.b, c.a)
		case c.a != 0:
			return fmt.Sprintf("copy of %d bytes from pageable memory to %#x", c.c, c.a)
		}
		return fmt.Sprintf("copy of %d bytes from %#x to pageable memory", c.c, c.b)
	case cuda.OpFill:
		return fmt.Sprintf("fill of %d bytes at %#x", c.c<<c.flags, c.a)
	case cuda.OpLaunchGraph:
		return fmt.Sprintf("launch of a %s", c.exec)
	case cuda.OpWriteWord, cuda.OpWaitWord:
		return fmt.Sprintf("%s %#x at %#x", c.op, c.b, c.a)
	case cuda.OpSignal:
		return fmt.Sprintf("call of %s", c.host.name)
	}
	return c.op.String()
}

// what names the work for [Ran].
func (c *command) what() string {
	if c.op == cuda.OpLaunch {
		return c.fn.name
	}
	return c.op.String()
}

// roomCond: the stream takes another launch.
type roomCond struct{ s *stream }

func (c *roomCond) Done() bool {
	return c.s.launches.Load() < int64(c.s.d.costs.PendingLaunches) || c.s.d.ended.Load()
}

func (c *roomCond) String() string { return fmt.Sprintf("room for a launch in %s", c.s) }

// event is the newest record of an event: a place in a stream. on is nil while
// there was none.
type event struct {
	end     *moment // of the record
	d       *Device
	on      *stream
	until   uint64
	sleep   bool     // who synchronises with it gives the processor away
	capture *capture // of the record; nil: it was none, or there was no record
	tips    []int    // the nodes that the record covers
}

func (e *event) fired() bool { return e.on == nil || e.on.completed.Load() >= e.until }
