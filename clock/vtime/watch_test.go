package vtime

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
)

// What an actor changes without a word to anybody is seen when it gives way, and
// at that time.
func TestWatchOnVirtualTime(t *testing.T) {
	w := NewVirtual(Options{})
	defer func() { require.NoError(t, w.Close()) }()
	n, seen := 0, time.Duration(-1)
	w.Enter(0)
	w.Watch("n", func() bool { return n > 2 }, func() { seen = w.Time() })
	w.Exit()
	for range 3 {
		require.NoError(t, w.Sleep(context.Background(), time.Microsecond))
		n++
	}
	require.Negative(t, seen, "the third time was not yet given away")
	require.NoError(t, w.Sleep(context.Background(), time.Microsecond))
	require.Equal(t, 3*time.Microsecond, seen)
	n = 0
	seen = -1
	require.NoError(t, w.Sleep(context.Background(), time.Microsecond))
	require.Negative(t, seen, "it runs once")
}

func TestWatchSeesWhatEventsDo(t *testing.T) {
	w := NewVirtual(Options{})
	defer func() { require.NoError(t, w.Close()) }()
	n, done := 0, false
	w.Enter(0)
	w.At(time.Second, "write", func() { n = 1 })
	w.Watch("first", func() bool { return n == 1 }, func() { n = 2 })
	w.Watch("second", func() bool { return n == 2 }, func() { done = true })
	w.Exit()
	require.NoError(t, w.WaitUntil(context.Background(), clock.Func("both", func() bool { return done }), clock.Never))
	require.Equal(t, time.Second, w.Now())
}

func TestWatchKeepsNoDeadlockFromBeingFound(t *testing.T) {
	w := NewVirtual(Options{})
	defer func() { require.NoError(t, w.Close()) }()
	w.Enter(0)
	w.Watch("never", func() bool { return false }, func() {})
	w.Exit()
	var d *DeadlockError
	require.ErrorAs(t, w.WaitUntil(context.Background(), clock.Func("nothing", func() bool { return false }), clock.Never), &d)
}

func TestWatchUnderTheRealPacer(t *testing.T) {
	w := NewReal(Options{}, 1)
	defer func() { require.NoError(t, w.Close()) }()
	var n, done atomic.Int64
	w.Enter(0)
	for i := range int64(2) {
		w.Watch("n", func() bool { return n.Load() > i }, func() { done.Add(1) })
	}
	w.Exit()
	for i := range int64(2) {
		require.NoError(t, w.Sleep(context.Background(), 2*time.Millisecond))
		require.Equal(t, i, done.Load())
		n.Add(1) // without a Notify
		require.NoError(t, w.WaitUntil(context.Background(), clock.Func("it", func() bool { return done.Load() == i+1 }), clock.Never))
	}
	require.NoError(t, w.Sleep(context.Background(), 5*lookEvery))
	w.Enter(0)
	require.Empty(t, w.watches)
	require.Zero(t, w.looking, "nobody looks when there is nothing to see")
	w.Exit()
}
