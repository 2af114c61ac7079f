package clock

import (
	"context"
	"sync"
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
	start time.Time

	mu     sync.Mutex
	notify chan struct{} // closed and dropped by Notify; nil while nobody waits
}

func (w *wall) Now() time.Duration { return time.Since(w.start) }
func (w *wall) Virtual() bool      { return false }

func (w *wall) Go(_ string, fn func()) { go fn() }

func (w *wall) Notify() {
	w.mu.Lock()
	if w.notify != nil {
		close(w.notify)
		w.notify = nil
	}
	w.mu.Unlock()
}

func (w *wall) notified() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notify == nil {
		w.notify = make(chan struct{})
	}
	return w.notify
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
	var timer *time.Timer
	pause := minPause
	for {
		// Asked for before Done, so that a Notify between the two is not lost.
		again := w.notified()
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
		p := min(pause, left)
		if timer == nil {
			timer = time.NewTimer(p)
			defer timer.Stop()
		} else {
			timer.Reset(p)
		}
		select {
		case <-timer.C:
			pause = min(2*pause, maxPause)
		case <-again:
			pause = minPause
		case <-ctx.Done():
		}
	}
}
