package event

import (
	"context"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
)

// Fence is a point on a timeline. It is a small comparable value that needs no
// release. The zero Fence has always fired. Methods are safe for use by
// several goroutines.
type Fence struct {
	t   *Timeline
	seq kv.Seq
}

// State says how far a fence has got.
type State uint8

const (
	// Created: its batch has not been submitted.
	Created State = iota
	// Recorded: its mark, or a later good one that covers it, is in the stream.
	Recorded
	// Lost: its record failed, or its batch was dropped, and no good mark of
	// its timeline covers it so far.
	Lost
	// Fired: all work before it is over.
	Fired
	// Dead: the device died before it fired.
	Dead
	stateEnd
)

var stateNames = [stateEnd]string{"created", "recorded", "lost", "fired", "dead"}

func (s State) String() string {
	if s < stateEnd {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Point returns the fence as plain numbers; the zero Point for the zero Fence.
func (f Fence) Point() kv.Point {
	if f.t == nil {
		return kv.Point{}
	}
	return kv.Point{Timeline: f.t.id, Seq: f.seq}
}

func (f Fence) String() string {
	if f.t == nil {
		return "no fence"
	}
	return fmt.Sprintf("mark %d of %v, %v", f.seq, f.t, f.State())
}

// Done reports whether the fence is known to have fired. It never crosses into
// the device: [Registry.Poll] brings news. On a dead device a fence that had
// not fired stays undone; see [Fence.Err].
func (f Fence) Done() bool { return f.t == nil || uint64(f.seq) <= f.t.completed.Load() }

// State returns how far the fence has got, as far as is known.
func (f Fence) State() State {
	switch {
	case f.Done():
		return Fired
	case f.t.r.dead.Load():
		return Dead
	case f.t.lost(f.seq):
		return Lost
	case uint64(f.seq) <= f.t.settled.Load():
		return Recorded
	}
	return Created
}

// Err returns why the fence will not fire: the device's first error, or
// [cuda.ErrNotRecorded] while the fence is lost. It is nil otherwise.
func (f Fence) Err() error {
	switch f.State() {
	case Dead:
		return f.t.r.Err()
	case Lost:
		return f.notRecorded()
	}
	return nil
}

func (f Fence) notRecorded() error {
	return fmt.Errorf("event: mark %d of %v: %w", f.seq, f.t, cuda.ErrNotRecorded)
}

// Wait blocks until the fence has fired, polling the device as it goes. It
// returns [cuda.ErrNotRecorded] for a lost fence, the device's error once that
// died, and ctx's cause when ctx is done first. A fence whose batch is not
// submitted yet is waited for.
func (f Fence) Wait(ctx context.Context) error {
	if f.Done() {
		return nil
	}
	if err := f.t.r.WaitUntil(ctx, fenceCond{f}, clock.Never); err != nil && !f.Done() {
		return err
	}
	if f.Done() {
		return nil
	}
	return f.Err()
}

type fenceCond struct{ f Fence }

func (c fenceCond) Done() bool     { return c.f.Done() || c.f.t.lost(c.f.seq) }
func (c fenceCond) String() string { return c.f.String() }

// OnDone calls fn once: with nil when the fence fires, or with the cause when
// the device dies or the registry is closed before. If that is known already,
// fn runs before OnDone returns; else on the goroutine whose [Registry.Poll]
// or [Batch.Submit] found out. fn must not block. A lost fence calls fn when a
// later mark of its timeline fires.
func (f Fence) OnDone(fn func(error)) {
	if f.t == nil {
		fn(nil)
		return
	}
	r := f.t.r
	r.mu.Lock()
	if !f.Done() && r.err == nil {
		w := f.t.waiters
		i := len(w)
		for i > 0 && w[i-1].seq > f.seq {
			i--
		}
		f.t.waiters = slices.Insert(w, i, waiter{f.seq, fn})
		r.mu.Unlock()
		return
	}
	err := r.err
	r.mu.Unlock()
	if f.Done() {
		err = nil
	}
	fn(err)
}
