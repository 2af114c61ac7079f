package clock_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

func never() clock.Cond { return clock.Func("never", func() bool { return false }) }

func TestWallTime(t *testing.T) {
	w := clock.Wall()
	require.False(t, w.Virtual())
	a := w.Now()
	require.Less(t, a, time.Minute, "the epoch is the call")
	require.NoError(t, w.Sleep(bg, 3*time.Millisecond))
	require.GreaterOrEqual(t, w.Now()-a, 3*time.Millisecond)
	require.NoError(t, w.Sleep(bg, 0))
	require.NoError(t, w.Sleep(bg, -1))
}

func TestWallWaitSeesWhatNobodyToldOf(t *testing.T) {
	w := clock.Wall()
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Add(1)
	w.Go("setter", func() {
		defer wg.Done()
		_ = w.Sleep(bg, 2*time.Millisecond)
		done.Store(true)
	})
	require.NoError(t, w.WaitUntil(bg, clock.Func("done", done.Load), clock.Never))
	wg.Wait()
}

func TestWallNotifyWakes(t *testing.T) {
	w := clock.Wall()
	var looks, told atomic.Int64
	c := clock.Func("told", func() bool { looks.Add(1); return told.Load() == 1 })
	errs := make(chan error, 4)
	for range 4 {
		w.Go("waiter", func() { errs <- w.WaitUntil(bg, c, clock.Never) })
	}
	looked := clock.Func("all have looked", func() bool { return looks.Load() >= 4 })
	require.NoError(t, w.WaitUntil(bg, looked, clock.Never))
	told.Store(1)
	w.Notify()
	for range 4 {
		require.NoError(t, <-errs)
	}
	w.Notify() // nobody waits
	require.Greater(t, looks.Load(), int64(4))
}

func TestWallDeadlineAndContext(t *testing.T) {
	w := clock.Wall()
	d := w.Now() + 2*time.Millisecond
	require.Equal(t, context.DeadlineExceeded, w.WaitUntil(bg, never(), d))
	require.GreaterOrEqual(t, w.Now(), d)
	require.Equal(t, context.DeadlineExceeded, w.WaitUntil(bg, never(), 0))

	cause := errors.New("the cause")
	ctx, cancel := context.WithCancelCause(bg)
	got := make(chan error, 2)
	w.Go("waiter", func() { got <- w.WaitUntil(ctx, never(), clock.Never) })
	w.Go("sleeper", func() { got <- w.Sleep(ctx, time.Hour) })
	require.NoError(t, w.Sleep(bg, time.Millisecond))
	cancel(cause)
	require.Equal(t, cause, <-got)
	require.Equal(t, cause, <-got)
	yes := clock.Func("yes", func() bool { return true })
	require.NoError(t, w.WaitUntil(ctx, yes, 0), "done wins over context and deadline")
	require.Equal(t, "yes", yes.String())
}

func TestMutexOnTheWallClock(t *testing.T) {
	m := clock.NewMutex(clock.Wall())
	n := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				m.Lock()
				n++
				m.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1600, n)
}

// Within ends what it runs at the deadline or with the context, and says what that
// returned.
func TestWithin(t *testing.T) {
	clk := clock.Wall()
	wait := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	require.ErrorIs(t, clock.Within(context.Background(), clk, "wait", clk.Now()+time.Millisecond, wait), context.DeadlineExceeded)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(io.ErrClosedPipe)
	require.ErrorIs(t, clock.Within(ctx, clk, "wait", clock.Never, wait), io.ErrClosedPipe)
	require.NoError(t, clock.Within(context.Background(), clk, "nothing", clock.Never, func(context.Context) error { return nil }))
	require.ErrorIs(t, clock.Within(context.Background(), clk, "fails", clk.Now(), func(context.Context) error { return io.EOF }), io.EOF)
}
