package event

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/fifo"
	"github.com/kvgate/kvgate/internal/leak"
	"github.com/kvgate/kvgate/memory/kv"
)

// eventChunk is how many events are made at a time when the pool is empty, so
// that a step does not cross into the device for each.
const eventChunk = 16

// Registry owns the events and timelines of one device. Methods are safe for
// use by several goroutines.
type Registry struct {
	dev   cuda.Device
	watch cuda.Watcher // nil: the device has none
	clk   clock.Clock

	firstSeq kv.Seq // see Options

	submitting *clock.Mutex // held across Device.Submit, so that marks of a timeline keep their order
	polling    *clock.Mutex // held across Device.Poll; guards marks and asked
	marks      []cuda.Mark
	asked      []askedMark

	open     atomic.Int64  // open marks of all timelines
	polledAt atomic.Uint64 // the watcher's counter before the last good poll
	again    atomic.Bool   // the last poll did not look at everything
	moves    atomic.Uint64 // counts advances of timelines
	dead     atomic.Bool

	mu        sync.Mutex // never held across a crossing or a wait
	timelines []*Timeline
	byID      map[kv.Timeline]*Timeline // closed ones too, so that their fences can be looked up
	feeds     []*Feed
	slots     []slot
	free      []int32
	ready     []call // scratch: callbacks to run
	err       error  // the first fatal error
	leak      *leak.Ticket
}

// slot is an event of the pool. It is free when it is neither in use by a mark
// nor waited for by a batch that has not been submitted yet.
type slot struct {
	event cuda.Event
	refs  int32
	used  bool
}

type askedMark struct {
	t     *Timeline
	seq   kv.Seq
	index int
}

type call struct {
	fn  func(error)
	err error
}

// NewRegistry returns a registry of dev, which must not be nil and must outlive
// it.
func NewRegistry(dev cuda.Device) *Registry { return NewRegistryWithOptions(dev, Options{}) }

// Options are the options of a registry. The zero value is a plain one.
type Options struct {
	// FirstSeq is how many marks each new timeline counts as past: the next one
	// is FirstSeq+1. For tests of what happens when numbers have grown large.
	FirstSeq kv.Seq
}

// NewRegistryWithOptions is [NewRegistry] with options.
func NewRegistryWithOptions(dev cuda.Device, o Options) *Registry {
	clk := clock.Clock(dev.Clock())
	r := &Registry{
		dev: dev, clk: clk, firstSeq: o.FirstSeq,
		submitting: clock.NewMutex(clk), polling: clock.NewMutex(clk),
		byID: map[kv.Timeline]*Timeline{}, leak: leak.Open("event registry", dev.Info().Name),
	}
	r.watch, _ = dev.(cuda.Watcher)
	return r
}

// Device returns the device.
func (r *Registry) Device() cuda.Device { return r.dev }

// Clock returns the device's clock.
func (r *Registry) Clock() clock.Clock { return r.clk }

// NewTimeline returns a timeline that counts the work of s. The name appears in
// errors and reports.
func (r *Registry) NewTimeline(name string, s cuda.Stream) (*Timeline, error) {
	if s == 0 {
		return nil, fmt.Errorf("event: timeline %q: the legacy default stream has no timeline: %w", name, cuda.ErrInvalidHandle)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, r.err
	}
	t := &Timeline{r: r, id: kv.Timeline(lastID.Add(1)), name: name, stream: s}
	if first := uint64(r.firstSeq); first > 0 {
		t.handed = r.firstSeq
		t.settled.Store(first)
		t.good.Store(first)
		t.completed.Store(first)
		t.moved = r.moves.Load() + 1
		r.moves.Store(t.moved)
	}
	r.timelines = append(r.timelines, t)
	r.byID[t.id] = t
	return t, nil
}

// Fence returns the fence at p. It returns [ErrUnknownTimeline], or
// [cuda.ErrNotRecorded] for a mark that nobody has asked for yet.
func (r *Registry) Fence(p kv.Point) (Fence, error) {
	if p == (kv.Point{}) {
		return Fence{}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.byID[p.Timeline]
	if t == nil {
		return Fence{}, fmt.Errorf("event: point %v: %w", p, ErrUnknownTimeline)
	}
	if p.Seq > t.handed {
		return Fence{}, fmt.Errorf("event: point %v: %v has %d marks: %w", p, t, t.handed, cuda.ErrNotRecorded)
	}
	return Fence{t, p.Seq}, nil
}

// Completed returns how far the timeline has got; 0 for an unknown one.
func (r *Registry) Completed(id kv.Timeline) kv.Seq {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.byID[id]; t != nil {
		return t.Completed()
	}
	return 0
}

// Open returns how many marks are recorded and not known to have fired.
func (r *Registry) Open() int { return int(r.open.Load()) }

// Err returns the error that killed the registry, or nil.
func (r *Registry) Err() error {
	if !r.dead.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close destroys the registry's events. Waiters are told [cuda.ErrClosed]. It
// returns [ErrBusy], and does nothing, while marks are open on a device that
// works. On a dead or closed device the events are gone already. It is
// idempotent.
func (r *Registry) Close() error {
	slots, calls, err := r.shut()
	if err != nil {
		return err
	}
	r.leak.Close()
	r.tell(calls)
	var errs error
	for _, s := range slots {
		if err := r.dev.DestroyEvent(s.event); err != nil && !fatal(err) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// shut ends the registry and returns the events to destroy. On a dead device
// there are none: they went with it.
func (r *Registry) shut() ([]slot, []call, error) {
	r.submitting.Lock()
	defer r.submitting.Unlock()
	r.polling.Lock()
	defer r.polling.Unlock()
	if n := r.Open(); n > 0 && !r.dead.Load() {
		return nil, nil, fmt.Errorf("event: close registry: %d %w", n, ErrBusy)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	slots := r.slots
	if r.err != nil {
		slots = nil
	}
	calls := r.closeWith(cuda.ErrClosed)
	r.slots, r.free = nil, nil
	return slots, calls, nil
}

// fatal reports whether err says that the device is gone.
func fatal(err error) bool {
	return cuda.Sticky(err) || errors.Is(err, cuda.ErrClosed) || errors.Is(err, cuda.ErrDeinitialized)
}

// kill ends the registry: the first cause is kept and told to all waiters.
func (r *Registry) kill(err error) {
	r.mu.Lock()
	calls := r.closeWith(err)
	r.mu.Unlock()
	r.tell(calls)
}

// closeWith records the first error that ends the registry, and returns the callbacks
// to run.
// r.mu is held.
func (r *Registry) closeWith(err error) []call {
	if r.err == nil {
		r.err = err
		r.moves.Add(1)
		r.dead.Store(true)
	}
	var calls []call
	for _, t := range r.timelines {
		for _, w := range t.waiters {
			calls = append(calls, call{w.fn, r.err})
		}
		t.waiters = nil
		r.open.Add(-int64(t.open.Len()))
		t.open = fifo.Queue[openMark]{}
	}
	return calls
}

func (r *Registry) tell(calls []call) {
	for _, c := range calls {
		c.fn(c.err)
	}
	r.clk.Notify()
}

// takeSlot takes an event from the pool, or makes some.
func (r *Registry) takeSlot() (int32, error) {
	for {
		r.mu.Lock()
		if r.err != nil {
			err := r.err
			r.mu.Unlock()
			return 0, err
		}
		if n := len(r.free); n > 0 {
			i := r.free[n-1]
			r.free = r.free[:n-1]
			r.slots[i].used = true
			r.mu.Unlock()
			return i, nil
		}
		r.mu.Unlock()
		if err := r.grow(); err != nil {
			return 0, err
		}
	}
}

func (r *Registry) grow() error {
	var made [eventChunk]cuda.Event
	n := 0
	var err error
	for n < len(made) {
		if made[n], err = r.dev.NewEvent(); err != nil {
			break
		}
		n++
	}
	if err != nil && fatal(err) {
		r.kill(err)
	}
	if n == 0 {
		return fmt.Errorf("event: new event: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range made[:n] {
		r.free = append(r.free, int32(len(r.slots)))
		r.slots = append(r.slots, slot{event: e})
	}
	return nil
}

// freeSlot gives an event back that no mark uses any more. r.mu is held.
func (r *Registry) freeSlot(i int32) {
	if int(i) >= len(r.slots) {
		return // closed
	}
	s := &r.slots[i]
	s.used = false
	if s.refs == 0 {
		r.free = append(r.free, i)
	}
}

// unrefSlot ends a batch's interest in an event. r.mu is held.
func (r *Registry) unrefSlot(i int32) {
	if int(i) >= len(r.slots) {
		return // closed
	}
	s := &r.slots[i]
	s.refs--
	if s.refs == 0 && !s.used {
		r.free = append(r.free, i)
	}
}

// prune forgets closed timelines that every feed has seen the end of.
func (r *Registry) prune() {
	r.timelines = slices.DeleteFunc(r.timelines, func(t *Timeline) bool {
		if !t.closed {
			return false
		}
		for _, f := range r.feeds {
			if f.seen.Load() < t.moved {
				return false
			}
		}
		return true
	})
}
