package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/fifo"
	"github.com/kvgate/kvgate/internal/leak"
)

// slotAlign is the alignment of staging slots in bytes: a cache line, and more
// than the widest access of a kernel.
const slotAlign = 64

// Slot is a piece of a staging ring. Write Host, let commands read Device, and
// give the slot back with [Staging.Release].
type Slot struct {
	Host   []byte
	Device cuda.DevicePtr
	number uint64
}

// Staging is a ring of pinned memory for what a step sends to the device: ids,
// tables, counts. The device reads it with asynchronous copies or from
// kernels, in the stream of the work that needs it, so a slot is used again
// only when the fence that it was released with has fired. Slots come back in
// the order in which they were taken.
//
// Methods are safe for use by several goroutines. Once the ring has grown its
// books, they allocate nothing.
type Staging struct {
	reg  *event.Registry
	name string
	leak *leak.Ticket

	mu     sync.Mutex
	buf    cuda.PinnedBuffer
	size   int
	tail   int // where the next slot begins
	used   int // bytes from the oldest slot to tail, padding included
	slots  fifo.Queue[slotState]
	oldest uint64 // number of the oldest slot; the first is 1, so that the zero Slot is none
	closed bool
}

type slotState struct {
	bytes    int // with padding in front, where the slot did not fit at the end
	fence    event.Fence
	released bool
}

// NewStaging allocates a ring of size bytes, rounded up to 64. The name appears
// in errors and reports.
func NewStaging(reg *event.Registry, name string, size int) (*Staging, error) {
	if size <= 0 {
		return nil, fmt.Errorf("memory: staging %q: %d bytes: %w", name, size, ErrOutOfRange)
	}
	size = roundUp(size)
	buf, err := reg.Device().AllocPinned(uint64(size), cuda.AllocOptions{Name: name})
	if err != nil {
		return nil, fmt.Errorf("memory: staging %q: %w", name, err)
	}
	return &Staging{reg: reg, name: name, buf: buf, size: size, oldest: 1,
		leak: leak.Open("staging ring", name)}, nil
}

func roundUp(n int) int { return (n + slotAlign - 1) &^ (slotAlign - 1) }

// Size returns the bytes of the ring.
func (s *Staging) Size() int { return s.size }

// Used returns the bytes that are not free, padding included.
func (s *Staging) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reap()
	return s.used
}

// Take returns a slot of n bytes with undefined content. It returns [ErrFull]
// if none is free: fences that fired count once [event.Registry.Poll] has seen
// them. It never waits and never crosses into the device.
func (s *Staging) Take(n int) (Slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(n); err != nil {
		return Slot{}, err
	}
	if slot, ok := s.take(n); ok {
		return slot, nil
	}
	return Slot{}, fmt.Errorf("memory: staging %q: %d bytes wanted, %d of %d used: %w", s.name, n, s.used, s.size, ErrFull)
}

// TakeWait is Take that waits for fences to fire until n bytes are free. It
// returns the device's error once that died, and ctx's cause when ctx is done
// first; then nothing is taken. Slots that nobody releases are waited for as
// long as ctx lives.
func (s *Staging) TakeWait(ctx context.Context, n int) (Slot, error) {
	slot, err := s.Take(n)
	if err == nil || s.checkLocked(n) != nil {
		return slot, err
	}
	w := takeCond{s: s, n: n}
	// The slot is taken by the condition itself; a wait that returns an error
	// has taken none.
	if err := s.reg.WaitUntil(ctx, &w, clock.Never); err != nil {
		return Slot{}, fmt.Errorf("memory: staging %q: %d bytes: %w", s.name, n, err)
	}
	return w.slot, w.err
}

type takeCond struct {
	s    *Staging
	n    int
	slot Slot
	err  error
}

func (w *takeCond) Done() bool {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.err = w.s.check(w.n); w.err != nil {
		return true
	}
	var ok bool
	w.slot, ok = w.s.take(w.n)
	return ok
}

func (w *takeCond) String() string { return fmt.Sprintf("%d bytes of staging %q", w.n, w.s.name) }

func (s *Staging) checkLocked(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check(n)
}

func (s *Staging) check(n int) error {
	switch {
	case s.closed:
		return fmt.Errorf("memory: staging %q: %w", s.name, cuda.ErrClosed)
	case n < 0:
		return fmt.Errorf("memory: staging %q: %d bytes: %w", s.name, n, ErrOutOfRange)
	case n > s.size:
		return fmt.Errorf("memory: staging %q: %d of %d bytes: %w", s.name, n, s.size, ErrTooLarge)
	}
	return nil
}

func (s *Staging) take(n int) (Slot, bool) {
	s.reap()
	need := max(roundUp(n), slotAlign) // an empty slot has a place, too
	at, bytes := s.tail, need
	if at+need > s.size {
		bytes += s.size - at // the rest at the end is padding
		at = 0
	}
	if s.used+bytes > s.size {
		return Slot{}, false
	}
	number := s.oldest + uint64(s.slots.Len())
	s.slots.Push(slotState{bytes: bytes})
	s.used += bytes
	s.tail = at + need
	return Slot{
		Host:   s.buf.Host[at : at+n : at+n],
		Device: s.buf.Device + cuda.DevicePtr(at),
		number: number,
	}, true
}

// reap gives back the oldest slots whose fences have fired.
func (s *Staging) reap() {
	n := 0
	for n < s.slots.Len() {
		slot := s.slots.At(n)
		if !slot.released || !slot.fence.Done() {
			break
		}
		s.used -= slot.bytes
		n++
	}
	if n > 0 {
		s.slots.Pop(n)
		s.oldest += uint64(n)
	}
	if s.used == 0 {
		s.tail = 0
	}
}

// Release gives a slot back for the time when f has fired. f covers the last
// command that reads the slot; the zero Fence says that no command does. A lost
// fence holds the slot until a good mark covers it.
func (s *Staging) Release(slot Slot, f event.Fence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slot.number - s.oldest
	if slot.number < s.oldest || i >= uint64(s.slots.Len()) || s.slots.At(int(i)).released {
		return fmt.Errorf("memory: staging %q: slot %d: %w", s.name, slot.number, ErrReleased)
	}
	st := s.slots.At(int(i))
	st.fence, st.released = f, true
	return nil
}

// Close frees the ring. It returns [ErrBusy], and does nothing, while slots are
// taken or their fences have not fired, unless the device is dead. It is
// idempotent.
func (s *Staging) Close() error {
	buf, err := s.end()
	if err != nil || buf.Host == nil {
		return err
	}
	err = s.reg.Device().FreePinned(buf)
	if s.reg.Err() != nil {
		return nil // the device may be closed already
	}
	return err
}

// end closes the ring and returns the memory to free, if any.
func (s *Staging) end() (cuda.PinnedBuffer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return cuda.PinnedBuffer{}, nil
	}
	s.reap()
	cause := s.reg.Err()
	if n := s.slots.Len(); n > 0 && cause == nil {
		return cuda.PinnedBuffer{}, fmt.Errorf("memory: staging %q: %d slots: %w", s.name, n, ErrBusy)
	}
	s.closed = true
	s.leak.Close()
	buf := s.buf
	s.buf = cuda.PinnedBuffer{}
	if cause != nil && !errors.Is(cause, cuda.ErrClosed) {
		// Work may be under way still; the device takes the memory with it when
		// it is closed.
		return cuda.PinnedBuffer{}, nil
	}
	return buf, nil
}
