package stream

import (
	"context"
	"fmt"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/leak"
	"github.com/kvgate/kvgate/memory/kv"
)

// The handles by which CUDA names its default streams (CUDA driver API,
// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD).
const (
	legacyStream    cuda.Stream = 1
	perThreadStream cuda.Stream = 2
)

// Stream is a stream of a device with the timeline that counts its work.
// Methods are safe for use by several goroutines.
type Stream struct {
	reg      *event.Registry
	handle   cuda.Stream
	timeline *event.Timeline
	owned    bool

	closing *clock.Mutex // held across crossings
	closed  bool
	leak    *leak.Ticket
}

// New makes a non-blocking stream. Close destroys it.
func New(reg *event.Registry, o cuda.StreamOptions) (*Stream, error) {
	h, err := reg.Device().NewStream(o)
	if err != nil {
		return nil, fmt.Errorf("stream: new %q: %w", o.Name, err)
	}
	t, err := reg.NewTimeline(o.Name, h)
	if err != nil {
		_ = reg.Device().DestroyStream(h) // the registry is dead: its error matters
		return nil, fmt.Errorf("stream: new %q: %w", o.Name, err)
	}
	return newStream(reg, h, t, true), nil
}

// Adopt takes a stream that someone else made and keeps owning, who must not
// destroy it before Close. h is the device's handle of it: the raw stream of an
// engine goes through the device first, as in the example of cuda/driver's
// AdoptStream. It records the stream's first mark, so that what
// was in the stream before is covered, and so that a handle which the device
// refuses (no stream, capturing) is an error here.
//
// CUDA's own names of its default streams (0, 1 and 2) are refused with
// [cuda.ErrInvalidHandle]. The legacy one has a handle of the device's for those
// whose work is there: see [cuda.Device.LegacyStream].
func Adopt(reg *event.Registry, h cuda.Stream, name string) (*Stream, error) {
	switch h {
	case 0, legacyStream:
		return nil, fmt.Errorf("stream: adopt %q: the legacy default stream: %w", name, cuda.ErrInvalidHandle)
	case perThreadStream:
		return nil, fmt.Errorf("stream: adopt %q: the per-thread default stream: %w", name, cuda.ErrInvalidHandle)
	}
	t, err := reg.NewTimeline(name, h)
	if err != nil {
		return nil, fmt.Errorf("stream: adopt %q: %w", name, err)
	}
	b := reg.NewBatch()
	b.Record(t)
	if err := b.Submit(); err != nil {
		b.Reset()
		t.Abandon()
		return nil, fmt.Errorf("stream: adopt %q (%#x): %w", name, uint64(h), err)
	}
	return newStream(reg, h, t, false), nil
}

func newStream(reg *event.Registry, h cuda.Stream, t *event.Timeline, owned bool) *Stream {
	return &Stream{reg: reg, handle: h, timeline: t, owned: owned, closing: clock.NewMutex(reg.Clock()),
		leak: leak.Open("stream", t.Name())}
}

// Handle returns the device's handle.
func (s *Stream) Handle() cuda.Stream { return s.handle }

// Registry returns the registry that the stream was made with.
func (s *Stream) Registry() *event.Registry { return s.reg }

// Closed reports whether Close has ended the stream.
func (s *Stream) Closed() bool { return s.timeline.Closed() }

// Timeline returns the timeline that counts the stream's work.
func (s *Stream) Timeline() *event.Timeline { return s.timeline }

// ID returns the id of the stream's timeline.
func (s *Stream) ID() kv.Timeline { return s.timeline.ID() }

// Name returns the name that the stream was made or adopted with.
func (s *Stream) Name() string { return s.timeline.Name() }

func (s *Stream) String() string { return fmt.Sprintf("stream %q", s.Name()) }

// Mark records a mark behind everything that is in the stream and returns its
// fence. It is a crossing of its own; in a step, use [Batch.Record].
func (s *Stream) Mark() (event.Fence, error) {
	b := s.reg.NewBatch()
	defer b.Reset()
	f := b.Record(s.timeline)
	return f, b.Submit()
}

// Sync blocks until everything that is in the stream is over. See
// [event.Fence.Wait] for its errors.
func (s *Stream) Sync(ctx context.Context) error {
	f, err := s.Mark()
	if err != nil {
		return err
	}
	return f.Wait(ctx)
}

// Close ends the stream's timeline, and destroys the stream if it was made by
// [New]. It returns [event.ErrBusy], and does nothing, while marks are open;
// call Sync before. It is idempotent.
func (s *Stream) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	if _, err := s.reg.Poll(); err != nil && s.reg.Err() == nil {
		return err
	}
	if err := s.timeline.Close(); err != nil {
		return err
	}
	s.closed = true
	s.leak.Close()
	if !s.owned {
		return nil
	}
	err := s.reg.Device().DestroyStream(s.handle)
	if s.reg.Err() != nil {
		return nil // on a dead device the stream went with it
	}
	return err
}

// AdoptEvent turns an event that someone else recorded into a fence: the join
// stream waits for the event's latest record as of now, and a mark is recorded
// behind that wait. The event is not looked at again and may be recorded anew
// or destroyed at once. Everything later in the join stream waits too, so use a
// stream of its own for this.
//
// CUDA does not tell an event that was never recorded from one that has fired:
// the fence of such an event fires at once. Adopt the stream where you can.
func AdoptEvent(join *Stream, e cuda.Event) (event.Fence, error) {
	if join == nil {
		return event.Fence{}, fmt.Errorf("stream: adopt event %#x: no join stream: %w", uint64(e), cuda.ErrInvalidHandle)
	}
	if e == 0 {
		return event.Fence{}, fmt.Errorf("stream: adopt event: no event: %w", cuda.ErrInvalidHandle)
	}
	b := join.reg.NewBatch()
	defer b.Reset()
	b.Raw().WaitEvent(join.handle, e)
	f := b.Record(join.timeline)
	if err := b.Submit(); err != nil {
		return f, fmt.Errorf("stream: adopt event %#x: %w", uint64(e), err)
	}
	return f, nil
}
