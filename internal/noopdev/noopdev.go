// Package noopdev is a device that runs nothing: it accepts every command,
// counts commands and crossings, and completes records at once or when it is
// told to. Benchmarks use it to time the host side alone, and tests use it to
// choose the moment at which a mark fires or a call fails. It is not a
// simulator: kernels and copies have no effect, and waits among streams are
// counted but hold nothing back.
package noopdev

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// Options are the options of a device. The zero value completes everything at
// once and counts time by the wall clock.
type Options struct {
	Clock clock.Clock // nil: clock.Wall()
	// Hold keeps recorded events pending until [Device.Fire] or
	// [Device.FireAll].
	Hold bool
	// Memory is the capacity of device memory in bytes; 0 is 1 TiB. Addresses
	// of device memory are made up; nothing lies behind them.
	Memory uint64
}

// Counts says what a device has been asked for.
type Counts struct {
	Submits  uint64 // calls of Submit: one crossing each
	Polls    uint64 // calls of Poll: one crossing each
	Commands uint64 // accepted commands
	Launches uint64
	Records  uint64
	Waits    uint64
	Marks    uint64 // marks asked after
	Events   uint64 // events created
}

type eventState struct {
	live     bool
	recorded bool
	fired    bool
	turn     uint64 // counts records, so that an older record can not fire a newer one
}

type record struct {
	event cuda.Event
	turn  uint64
}

type streamState struct {
	live  bool
	queue []record // held records, oldest first
}

// Device implements [cuda.Device] and [cuda.Watcher]. Use [Plain] to hide the
// latter.
type Device struct {
	o        Options
	clk      clock.Clock
	activity atomic.Uint64

	mu      sync.Mutex
	counts  Counts
	err     error // sticky: the device is dead
	hold    bool
	events  []eventState  // by handle; 0 unused
	streams []streamState // by handle minus firstStream
	signals []uint64      // calls, by handle minus 1; gone: destroyed
	failAt  int           // command at which the next Submit fails; -1: none
	failErr error
	onBatch func(*cuda.Batch)

	memory allocator
}

// Stream handles start behind the values that CUDA reserves for the legacy and
// the per-thread default stream.
const firstStream = 16

// New returns a device.
func New(o Options) *Device {
	if o.Clock == nil {
		o.Clock = clock.Wall()
	}
	if o.Memory == 0 {
		o.Memory = 1 << 40
	}
	d := &Device{o: o, clk: o.Clock, hold: o.Hold, failAt: -1, events: make([]eventState, 1)}
	d.memory.init(o.Memory)
	return d
}

// Plain returns d without its [cuda.Watcher].
func Plain(d *Device) cuda.Device { return struct{ cuda.Device }{d} }

// Counts returns what the device has been asked for so far.
func (d *Device) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// Hold says whether records from now on stay pending until they are fired.
func (d *Device) Hold(hold bool) {
	d.mu.Lock()
	d.hold = hold
	d.mu.Unlock()
}

// Fire lets the next n held records of s fire, in order, and returns how many
// there were.
func (d *Device) Fire(s cuda.Stream, n int) int {
	d.mu.Lock()
	fired := 0
	if st := d.stream(s); st != nil {
		fired = d.fire(st, n)
	}
	d.mu.Unlock()
	d.clk.Notify()
	return fired
}

// FireAll lets every held record fire and returns how many there were.
func (d *Device) FireAll() int {
	d.mu.Lock()
	fired := 0
	for i := range d.streams {
		fired += d.fire(&d.streams[i], len(d.streams[i].queue))
	}
	d.mu.Unlock()
	d.clk.Notify()
	return fired
}

func (d *Device) fire(st *streamState, n int) int {
	n = min(n, len(st.queue))
	for _, r := range st.queue[:n] {
		if e := &d.events[r.event]; e.turn == r.turn {
			e.fired = true
		}
	}
	st.queue = st.queue[:copy(st.queue, st.queue[n:])]
	if n > 0 {
		d.activity.Add(1)
	}
	return n
}

// FailSubmit makes the next Submit that has more than index commands fail at
// that command with err.
func (d *Device) FailSubmit(index int, err error) {
	d.mu.Lock()
	d.failAt, d.failErr = index, err
	d.mu.Unlock()
}

// OnSubmit sets a function that sees each batch before it is counted. It must
// not call the device.
func (d *Device) OnSubmit(fn func(*cuda.Batch)) {
	d.mu.Lock()
	d.onBatch = fn
	d.mu.Unlock()
}

// Kill makes every later call return err, as after a sticky error.
func (d *Device) Kill(err error) {
	d.mu.Lock()
	d.err = err
	d.mu.Unlock()
	d.activity.Add(1)
	d.clk.Notify()
}

// Activity implements [cuda.Watcher].
func (d *Device) Activity() uint64 { return d.activity.Load() }

// Info describes the device.
func (d *Device) Info() cuda.Info {
	return cuda.Info{Backend: "noop", Name: "no-op device", Simulated: true, Capability: [2]int{9, 0},
		Memory: d.o.Memory, SMs: 132, MaxGrid: [3]uint32{1<<31 - 1, 65535, 65535},
		MaxBlock: [3]uint32{1024, 1024, 64}, MaxThreads: 1024, SharedMemory: 48 << 10, SharedOptIn: 48 << 10}
}

// Clock returns the clock of the options.
func (d *Device) Clock() clock.Clock { return d.clk }

func (d *Device) stream(s cuda.Stream) *streamState {
	if s < firstStream || uint64(s) >= firstStream+uint64(len(d.streams)) || !d.streams[s-firstStream].live {
		return nil
	}
	return &d.streams[s-firstStream]
}

func (d *Device) event(e cuda.Event) *eventState {
	if e == 0 || uint64(e) >= uint64(len(d.events)) || !d.events[e].live {
		return nil
	}
	return &d.events[e]
}

// Submit accepts the batch; see [Device.FailSubmit].
func (d *Device) Submit(b *cuda.Batch) error {
	if b == nil {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: "submit", Detail: "no batch"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Submits++
	if d.onBatch != nil {
		d.onBatch(b)
	}
	commands, streams := b.Commands(), b.Streams()
	if d.err != nil {
		return d.submitError(b, 0, d.err)
	}
	fired := false
	for i := range commands {
		c := &commands[i]
		if i == d.failAt {
			d.failAt = -1
			if cuda.Sticky(d.failErr) {
				d.err = d.failErr
				d.activity.Add(1)
			}
			return d.submitError(b, i, d.failErr)
		}
		st := d.stream(streams[c.Stream])
		if st == nil {
			return d.submitError(b, i, &cuda.Error{Code: cuda.ErrInvalidHandle, Op: c.Op.String(),
				Detail: fmt.Sprintf("stream %#x", uint64(streams[c.Stream]))})
		}
		switch c.Op {
		case cuda.OpLaunch:
			d.counts.Launches++
		case cuda.OpSignal:
			n := d.signal(cuda.HostFunc(c.A))
			if n == nil {
				return d.submitError(b, i, &cuda.Error{Code: cuda.ErrInvalidHandle, Op: c.Op.String(),
					Detail: fmt.Sprintf("host function %#x", c.A)})
			}
			*n++
		case cuda.OpRecord, cuda.OpWaitEvent:
			e := d.event(cuda.Event(c.A))
			if e == nil {
				return d.submitError(b, i, &cuda.Error{Code: cuda.ErrInvalidHandle, Op: c.Op.String(),
					Detail: fmt.Sprintf("event %#x", c.A)})
			}
			if c.Op == cuda.OpWaitEvent {
				d.counts.Waits++
				break
			}
			d.counts.Records++
			e.recorded, e.fired = true, !d.hold
			e.turn++
			if d.hold {
				st.queue = append(st.queue, record{cuda.Event(c.A), e.turn})
			} else {
				fired = true
			}
		}
		d.counts.Commands++
	}
	if fired {
		d.activity.Add(1)
	}
	return nil
}

func (d *Device) submitError(b *cuda.Batch, index int, err error) error {
	commands := b.Commands()
	se := &cuda.SubmitError{Index: index, Done: make([]int, len(b.Streams())), Err: err}
	if index < len(commands) {
		se.Op = commands[index].Op
	}
	for _, c := range commands[:index] {
		se.Done[c.Stream]++
	}
	return se
}

// Poll answers the marks. As in CUDA, an event that was never recorded counts
// as fired.
func (d *Device) Poll(marks []cuda.Mark) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Polls++
	d.counts.Marks += uint64(len(marks))
	if d.err != nil {
		return d.err
	}
	for i := range marks {
		e := d.event(marks[i].Event)
		if e == nil {
			return &cuda.Error{Code: cuda.ErrInvalidHandle, Op: "poll", Detail: fmt.Sprintf("event %#x", uint64(marks[i].Event))}
		}
		marks[i].State = cuda.MarkPending
		if !e.recorded || e.fired {
			marks[i].State = cuda.MarkFired
		}
	}
	return nil
}

// NewStream returns a stream.
func (d *Device) NewStream(cuda.StreamOptions) (cuda.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return 0, d.err
	}
	d.streams = append(d.streams, streamState{live: true})
	return firstStream + cuda.Stream(len(d.streams)-1), nil
}

// DestroyStream forgets s; its held records fire.
func (d *Device) DestroyStream(s cuda.Stream) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.stream(s)
	if st == nil {
		return &cuda.Error{Code: cuda.ErrInvalidHandle, Op: "destroy stream", Detail: fmt.Sprintf("%#x", uint64(s))}
	}
	d.fire(st, len(st.queue))
	st.live = false
	return nil
}

// NewEvent returns an event.
func (d *Device) NewEvent() (cuda.Event, error) { return d.NewEventWithOptions(cuda.EventOptions{}) }

// NewEventWithOptions returns an event.
func (d *Device) NewEventWithOptions(cuda.EventOptions) (cuda.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return 0, d.err
	}
	d.counts.Events++
	d.events = append(d.events, eventState{live: true})
	return cuda.Event(len(d.events) - 1), nil
}

// DestroyEvent forgets e.
func (d *Device) DestroyEvent(e cuda.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.event(e)
	if st == nil {
		return &cuda.Error{Code: cuda.ErrInvalidHandle, Op: "destroy event", Detail: fmt.Sprintf("%#x", uint64(e))}
	}
	st.live = false
	return nil
}

// LiveEvents returns how many events exist.
func (d *Device) LiveEvents() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, e := range d.events {
		if e.live {
			n++
		}
	}
	return n
}

// SyncStream waits until s has no held records.
func (d *Device) SyncStream(ctx context.Context, s cuda.Stream) error {
	return d.clk.WaitUntil(ctx, clock.Func("no-op stream to drain", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		st := d.stream(s)
		return d.err != nil || st == nil || len(st.queue) == 0
	}), clock.Never)
}

// Sync waits until no stream has held records.
func (d *Device) Sync(ctx context.Context) error {
	return d.clk.WaitUntil(ctx, clock.Func("no-op device to drain", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		for i := range d.streams {
			if len(d.streams[i].queue) > 0 {
				return d.err != nil
			}
		}
		return true
	}), clock.Never)
}

// Close makes every later call fail with [cuda.ErrClosed].
func (d *Device) Close() error {
	d.Kill(cuda.ErrClosed)
	return nil
}
