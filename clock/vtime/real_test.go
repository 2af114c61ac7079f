package vtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
)

func real(t testing.TB, slow float64) *World {
	w := NewReal(Options{}, slow)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

func TestRealSleepAndDeadline(t *testing.T) {
	w := real(t, 1)
	require.False(t, w.Virtual())
	start := time.Now()
	require.NoError(t, w.Sleep(bg, 20*time.Millisecond))
	require.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond-jitter)
	never := clock.Func("never", func() bool { return false })
	d := w.Now() + 10*time.Millisecond
	require.Equal(t, context.DeadlineExceeded, w.WaitUntil(bg, never, d))
	require.GreaterOrEqual(t, w.Now(), d)
	cause := errors.New("the cause")
	ctx, cancel := context.WithCancelCause(bg)
	w.Go("canceller", func() { cancel(cause) })
	require.Equal(t, cause, w.WaitUntil(ctx, never, clock.Never))
	require.Equal(t, cause, w.Sleep(ctx, time.Hour))
	w.Enter(0)
	require.Empty(t, w.events, "deadlines that are over must not stay")
	w.Exit()
}

func TestRealWakesAfterEventsAndNotify(t *testing.T) {
	w := real(t, 1)
	var fired, told atomic.Bool
	w.Enter(0)
	w.After(5*time.Millisecond, "e", func() { fired.Store(true) })
	w.Exit()
	require.NoError(t, w.WaitUntil(bg, clock.Func("fired", fired.Load), clock.Never))
	w.Go("notifier", func() {
		told.Store(true)
		w.Notify()
	})
	require.NoError(t, w.WaitUntil(bg, clock.Func("told", told.Load), clock.Never))
}

func TestRealLooksAgainWithoutAnEvent(t *testing.T) {
	w := real(t, 1)
	start := time.Now()
	later := clock.Func("later", func() bool { return time.Since(start) > 3*time.Millisecond })
	require.NoError(t, w.WaitUntil(bg, later, w.Now()+time.Minute))
}

// Device time stands still while an event's work takes longer than its model,
// and what was planned after it stays after it.
func TestRealTimeStretchesInsteadOfRunningAhead(t *testing.T) {
	w := real(t, 1)
	var order []string
	var seen atomic.Int64
	w.Enter(0)
	base := w.Time()
	slow := base + time.Millisecond
	w.At(slow, "slow", func() {
		for end := time.Now().Add(40 * time.Millisecond); time.Now().Before(end); {
			seen.Store(max(seen.Load(), int64(w.Now())))
		}
		order = append(order, "slow")
		w.After(2*time.Millisecond, "chained", func() { order = append(order, "chained") })
	})
	w.At(base+10*time.Millisecond, "deadline", func() { order = append(order, "deadline") })
	w.Exit()
	require.NoError(t, w.Sleep(bg, 15*time.Millisecond))
	w.Enter(0)
	defer w.Exit()
	require.Equal(t, []string{"slow", "chained", "deadline"}, order)
	require.LessOrEqual(t, seen.Load(), int64(slow), "time ran ahead of the machine")
	require.GreaterOrEqual(t, w.Lag(), 30*time.Millisecond)
	require.Less(t, w.Time(), time.Since(w.r.start)-30*time.Millisecond)
}

func TestRealTimeIsMonotoneForAllThreads(t *testing.T) {
	w := real(t, 2)
	require.Equal(t, 2.0, w.Slow())
	var wg sync.WaitGroup
	var ran atomic.Int64
	for range 4 {
		wg.Go(func() {
			last := time.Duration(0)
			for i := range 300 {
				w.Enter(0)
				if w.Time() < last {
					t.Errorf("%v after %v", w.Time(), last)
				}
				last = w.Time()
				if i%3 == 0 {
					at := last + time.Duration(i)*time.Microsecond
					w.At(at, "e", func() {
						if w.Time() != at {
							t.Errorf("event of %v ran at %v", at, w.Time())
						}
						ran.Add(1)
					})
				}
				w.Exit()
				if n := w.Now(); n < last {
					t.Errorf("%v after %v", n, last)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, w.WaitUntil(bg, clock.Func("all events", func() bool { return ran.Load() == 400 }), clock.Never))
}

func TestRealMutex(t *testing.T) {
	w := real(t, 1)
	mu := clock.NewMutex(w)
	n := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		w.Go("worker", func() {
			defer wg.Done()
			for range 10 {
				mu.Lock()
				n++
				_ = w.Sleep(bg, 10*time.Microsecond)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 40, n)
}
