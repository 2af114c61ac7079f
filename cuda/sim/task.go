package sim

import (
	"time"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

// task is a command that runs: a launch, a fill or a copy, chunk by chunk. The
// bytes of a chunk are counted, take their time in the memory's bandwidth, and
// then the next one follows.
type task struct {
	d      *Device
	s      *stream
	engine *engine
	work   work
	cap    float64
	begun  time.Duration
	floor  time.Duration // no chunk ends sooner after its start
	least  time.Duration // nor the whole
	at     time.Duration // when the chunk started
	last   bool

	link               *vtime.Shared // of a copy between devices, beside the memory
	parts              int           // of the chunk that have not passed
	flow, over         vtime.Flow
	passedFn, finishFn func()
	stepFn             func()

	bulk bulk // of fills and copies
}

// work is what a task does, one chunk after the other.
type work interface {
	// step does the next chunk. It returns the bytes that count against the
	// memory's bandwidth and whether it was the last one.
	step() (bytes float64, last bool, err error)
}

func (d *Device) newTask(s *stream) *task {
	var t *task
	if n := len(d.tasks); n > 0 {
		t, d.tasks = d.tasks[n-1], d.tasks[:n-1]
	} else {
		t = &task{d: d}
		t.stepFn, t.passedFn, t.finishFn = t.step, t.passed, t.finish
	}
	t.s, t.engine, t.work, t.link, t.cap, t.floor, t.least = s, nil, nil, nil, 0, 0, 0
	return t
}

// start runs when the head of s may start, all latencies over.
func (s *stream) start() {
	d := s.d
	if d.stopped() {
		return
	}
	c := &s.queue[s.head]
	t := d.newTask(s)
	s.begins(c)
	switch c.op {
	case cuda.OpLaunch:
		if d.resident >= d.costs.ResidentGrids {
			d.held = append(d.held, t)
			return
		}
		t.launch()
	case cuda.OpFill:
		t.bulk = bulk{d: d, c: c, who: s.name, total: c.c << c.flags, unit: uint64(d.costs.Chunks)}
		t.work = &t.bulk
		t.begin()
	case cuda.OpCopy:
		t.bulk = bulk{d: d, c: c, who: s.name, total: c.c, unit: uint64(d.costs.Chunks)}
		t.work = &t.bulk
		t.link = d.linkFor(c)
		if e := d.engineFor(c); e != nil {
			t.cap, t.engine = d.costs.HostLink, e
			if e.busy {
				e.queue = append(e.queue, t)
				return
			}
			e.busy = true
		}
		t.begin()
	}
}

// launch takes a place among the resident grids.
func (t *task) launch() {
	d := t.d
	c := &t.s.queue[t.s.head]
	d.resident++
	blocks := float64(c.grid[0]) * float64(c.grid[1]) * float64(c.grid[2])
	t.cap = min(blocks, float64(d.sms)) * d.costs.SMBandwidth
	t.least = d.costs.KernelMin
	var err error
	if t.work, err = c.fn.begin(t, c); err != nil {
		d.fail(t.s, c, err)
		return
	}
	t.begin()
}

func (t *task) begin() {
	t.begun = t.d.world.Time()
	t.step()
}

func (t *task) step() {
	d := t.d
	if d.stopped() {
		return
	}
	t.at = d.world.Time()
	bytes, last, err := t.work.step()
	if err != nil {
		d.fail(t.s, &t.s.queue[t.s.head], err)
		return
	}
	t.last, t.parts = last, 1
	d.mem.hbm.StartIn(&t.flow, bytes, t.cap, "chunk", t.passedFn)
	if t.link != nil {
		t.parts++
		t.link.StartIn(&t.over, bytes, 0, "chunk", t.passedFn)
	}
}

// passed runs when the bytes of a chunk have passed.
func (t *task) passed() {
	d := t.d
	if t.parts--; d.stopped() || t.parts > 0 {
		return
	}
	end := t.at + t.floor
	next := t.stepFn
	if k, ok := t.work.(*kernelWork); ok && k.stuck {
		k.await()
		return
	}
	if t.last {
		end, next = max(end, t.begun+t.least), t.finishFn
	}
	if end > d.world.Time() {
		d.world.At(end, "chunk", next)
		return
	}
	next()
}

func (t *task) finish() {
	d := t.d
	if d.stopped() {
		return
	}
	s, e := t.s, t.engine
	launch := s.queue[s.head].op == cuda.OpLaunch
	if d.ran != nil {
		d.ran(Ran{Stream: s.String(), What: s.queue[s.head].what(), Begun: t.begun, Ended: d.world.Time()})
	}
	if k, ok := t.work.(*ModelLaunch); ok {
		f := s.queue[s.head].fn
		f.launches = append(f.launches, k)
	}
	t.s, t.work, t.bulk = nil, nil, bulk{}
	d.tasks = append(d.tasks, t)
	s.complete()
	switch {
	case launch:
		d.resident--
		d.admit()
	case e != nil:
		e.busy = false
		if len(e.queue) > 0 {
			next := e.queue[0]
			e.queue = append(e.queue[:0], e.queue[1:]...)
			e.busy = true
			next.begin()
		}
	}
}

// admit starts a launch that the limit of resident grids held back: of those of
// the greatest priority, the first.
func (d *Device) admit() {
	if len(d.held) == 0 || d.resident >= d.costs.ResidentGrids {
		return
	}
	k := 0
	for i, t := range d.held {
		if t.s.priority < d.held[k].s.priority {
			k = i
		}
	}
	t := d.held[k]
	d.held = append(d.held[:k], d.held[k+1:]...)
	t.launch()
}
