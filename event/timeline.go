package event

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/fifo"
	"github.com/kvgate/kvgate/memory/kv"
)

// Errors of this package.
var (
	// ErrBusy: marks are open, so what was asked for can not be done yet.
	ErrBusy = errors.New("marks are open")
	// ErrOrder: a batch was submitted before another one that recorded an
	// earlier mark on the same timeline. Nothing was submitted.
	ErrOrder = errors.New("submitted out of order")
	// ErrSpent: the batch was submitted already and not reset since.
	ErrSpent = errors.New("batch already submitted")
	// ErrForeign: a timeline or fence of another registry.
	ErrForeign = errors.New("belongs to another registry")
	// ErrUnknownTimeline: the registry has no such timeline.
	ErrUnknownTimeline = errors.New("unknown timeline")
)

var lastID atomic.Uint32 // timeline ids are unique in the process and never reused

// Timeline counts the marks of one stream. Make one with
// [Registry.NewTimeline]. Its methods are safe for use by several goroutines.
type Timeline struct {
	r      *Registry
	id     kv.Timeline
	name   string
	stream cuda.Stream

	completed atomic.Uint64 // every mark up to it has fired
	settled   atomic.Uint64 // every mark up to it was submitted, failed or dropped
	good      atomic.Uint64 // the newest mark that is known to be recorded

	// The rest is guarded by r.mu.
	handed  kv.Seq               // the newest mark that Record gave out
	open    fifo.Queue[openMark] // recorded and not known to have fired, ascending
	dropped []kv.Seq             // marks of batches that were reset, not yet settled
	check   kv.Seq               // scratch of Batch.checkOrder
	waiters []waiter             // ascending by seq
	moved   uint64               // value of r.moves when completed last changed
	closed  bool
}

type openMark struct {
	seq  kv.Seq
	slot int32
}

type waiter struct {
	seq kv.Seq
	fn  func(error)
}

// ID returns the timeline's id.
func (t *Timeline) ID() kv.Timeline { return t.id }

// Name returns the name it was made with.
func (t *Timeline) Name() string { return t.name }

// Stream returns the stream whose work it counts.
func (t *Timeline) Stream() cuda.Stream { return t.stream }

// Completed returns the newest mark that is known to have fired. It never
// crosses into the device.
func (t *Timeline) Completed() kv.Seq { return kv.Seq(t.completed.Load()) }

// Last returns the fence of the newest good mark, which covers all work whose
// records succeeded; the zero Fence if there is none.
func (t *Timeline) Last() Fence {
	if seq := t.good.Load(); seq > 0 {
		return Fence{t, kv.Seq(seq)}
	}
	return Fence{}
}

func (t *Timeline) String() string { return fmt.Sprintf("timeline %d (%s)", t.id, t.name) }

// Closed reports whether Close or Abandon has ended the timeline.
func (t *Timeline) Closed() bool {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	return t.closed
}

// Close takes the timeline out of its registry. It returns [ErrBusy] while
// marks are unsubmitted, unfired or lost, except on a dead registry. It is
// idempotent. Fences of a closed timeline keep their answers.
func (t *Timeline) Close() error {
	r := t.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.closed {
		return nil
	}
	if r.err == nil && kv.Seq(t.completed.Load()) < t.handed {
		return fmt.Errorf("event: close %v: %d of %d marks have fired: %w", t, t.completed.Load(), t.handed, ErrBusy)
	}
	t.end()
	return nil
}

// Abandon takes out of the registry a timeline none of whose marks was ever
// recorded, because its stream turned out to be unusable. It does nothing to
// any other timeline.
func (t *Timeline) Abandon() {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if t.good.Load() == 0 && !t.closed {
		t.end()
	}
}

func (t *Timeline) end() {
	t.closed = true
	t.open, t.dropped, t.waiters = fifo.Queue[openMark]{}, nil, nil
	t.r.prune()
}

// covering returns the oldest open mark that covers seq. r.mu is held.
func (t *Timeline) covering(seq kv.Seq) (openMark, bool) {
	n := t.open.Len()
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi) / 2
		if t.open.At(mid).seq < seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == n {
		return openMark{}, false
	}
	return *t.open.At(lo), true
}

// after returns the first mark behind seq that was not dropped.
func (t *Timeline) after(seq kv.Seq) kv.Seq {
	seq++
	for slices.Contains(t.dropped, seq) {
		seq++
	}
	return seq
}

// settle moves settled up to seq, and on over marks that were dropped.
func (t *Timeline) settle(seq kv.Seq) {
	if len(t.dropped) > 0 {
		seq = t.after(seq) - 1
		t.dropped = slices.DeleteFunc(t.dropped, func(d kv.Seq) bool { return d <= seq })
	}
	t.settled.Store(uint64(seq))
}

// drop gives up a mark that was never submitted.
func (t *Timeline) drop(seq kv.Seq) {
	t.dropped = append(t.dropped, seq)
	t.settle(kv.Seq(t.settled.Load()))
}

// lost reports whether seq's record failed and no good mark covers it so far.
func (t *Timeline) lost(seq kv.Seq) bool {
	// In this order: good is stored before settled.
	return uint64(seq) <= t.settled.Load() && uint64(seq) > t.good.Load()
}
