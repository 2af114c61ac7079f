package clock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Wall returns the clock of the machine. Its epoch is the moment of the call.
func Wall() Clock { return &wall{start: time.Now()} }

// The wall clock cannot see what a condition depends on, so it looks again
// after each pause. The first looks follow each other closely, because most
// waits of this library are for events microseconds away; later ones back off
// to maxPause, which bounds what a wake-up without Notify costs.
const (
	minPause = 5 * time.Microsecond
	maxPause = 200 * time.Microsecond
)

type wall struct {
	start   time.Time
	waiting atomic.Int64 // len(waiters), so that Notify costs a load when nobody waits

	mu      sync.Mutex
	waiters []*waiter
}

// waiter is one wait. They are kept, so that a wait allocates nothing.
type waiter struct {
	again chan struct{} // of capacity 1
	timer *time.Timer
}

var waiters = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &waiter{again: make(chan struct{}, 1), timer: t}
}}

func (w *wall) Now() time.Duration { return time.Since(w.start) }
func (w *wall) Virtual() bool      { return false }

func (w *wall) Go(_ string, fn func()) { go fn() }

func (w *wall) Notify() {
	if w.waiting.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.waiters {
		select {
		case x.again <- struct{}{}:
		default: // it has been told and did not look yet
		}
	}
}

func (w *wall) enter() *waiter {
	x := waiters.Get().(*waiter)
	w.mu.Lock()
	w.waiters = append(w.waiters, x)
	w.mu.Unlock()
	w.waiting.Add(1)
	return x
}

func (w *wall) leave(x *waiter) {
	w.waiting.Add(-1)
	w.mu.Lock()
	i := slices.Index(w.waiters, x)
	last := len(w.waiters) - 1
	w.waiters[i], w.waiters[last] = w.waiters[last], nil
	w.waiters = w.waiters[:last]
	w.mu.Unlock()
	x.timer.Stop()
	select {
	case <-x.again:
	default:
	}
	waiters.Put(x)
}

func (w *wall) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *wall) WaitUntil(ctx context.Context, c Cond, deadline time.Duration) error {
	if c.Done() {
		return nil
	}
	// Known to Notify before Done is asked again, so that nothing is lost
	// between the two.
	x := w.enter()
	defer w.leave(x)
	pause := minPause
	for {
		if c.Done() {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		left := deadline - w.Now()
		if left <= 0 {
			return context.DeadlineExceeded
		}
		x.timer.Reset(min(pause, left))
		select {
		case <-x.timer.C:
			pause = min(2*pause, maxPause)
		case <-x.again:
			pause = minPause
		case <-ctx.Done():
		}
	}
}
