package vtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
)

var bg = context.Background()

func virtual(t testing.TB, o Options) *World {
	w := NewVirtual(o)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

func TestSleepMovesTimeByExactlyThat(t *testing.T) {
	w := virtual(t, Options{})
	require.NoError(t, w.Sleep(bg, 5*time.Millisecond))
	require.Equal(t, 5*time.Millisecond, w.Now())
	w.Enter(3 * time.Microsecond)
	require.Equal(t, 5003*time.Microsecond, w.Time())
	w.Exit()
}

func TestEventsRunInOrderOfTimeThenArrival(t *testing.T) {
	w := virtual(t, Options{})
	var got []string
	w.Enter(0)
	for _, e := range []struct {
		at time.Duration
		s  string
	}{{3, "c"}, {1, "a"}, {3, "d"}, {2, "b"}, {-5, "at once"}} {
		w.At(e.at, e.s, func() { got = append(got, fmt.Sprint(e.s, "@", int(w.Time()))) })
	}
	w.Exit()
	require.NoError(t, w.Sleep(bg, 10))
	require.Equal(t, []string{"at once@0", "a@1", "b@2", "c@3", "d@3"}, got)
}

func TestCancelledEventNeverRuns(t *testing.T) {
	w := virtual(t, Options{})
	ran := 0
	w.Enter(0)
	e := w.At(5, "e", func() { ran++ })
	tie := Event{}
	w.At(7, "canceller", func() { require.True(t, w.Cancel(tie)) })
	tie = w.At(7, "due already", func() { ran++ })
	require.True(t, w.Cancel(e))
	require.False(t, w.Cancel(e))
	again := w.At(6, "uses the same memory", func() {})
	require.False(t, w.Cancel(e), "an old handle must not cancel a new event")
	w.Exit()
	require.NoError(t, w.Sleep(bg, 10))
	w.Enter(0)
	require.False(t, w.Cancel(again), "it has run")
	w.Exit()
	require.Zero(t, ran)
}

func TestDeadlineAndContext(t *testing.T) {
	w := virtual(t, Options{})
	never := clock.Func("never", func() bool { return false })
	require.Equal(t, context.DeadlineExceeded, w.WaitUntil(bg, never, 7))
	require.Equal(t, time.Duration(7), w.Now())
	require.Equal(t, context.DeadlineExceeded, w.WaitUntil(bg, never, 3), "a deadline that has passed")

	cause := errors.New("the cause")
	ctx, cancel := context.WithCancelCause(bg)
	w.Go("canceller", func() {
		_ = w.Sleep(bg, 5)
		cancel(cause)
	})
	require.Equal(t, cause, w.WaitUntil(ctx, never, clock.Never))
	require.Equal(t, time.Duration(12), w.Now())
	require.Equal(t, cause, w.Sleep(ctx, time.Hour))
	require.Equal(t, cause, w.WaitUntil(ctx, never, clock.Never))
	require.NoError(t, w.WaitUntil(ctx, clock.Func("yes", func() bool { return true }), 0), "done wins")
}

func TestSleepEndsWithItsContext(t *testing.T) {
	w := virtual(t, Options{})
	ctx, cancel := context.WithCancel(bg)
	w.Go("canceller", func() {
		_ = w.Sleep(bg, 5)
		cancel()
	})
	require.Equal(t, context.Canceled, w.Sleep(ctx, time.Hour))
	require.Equal(t, time.Duration(5), w.Now())
}

func TestEventAtTheDeadlineComesFirst(t *testing.T) {
	w := virtual(t, Options{})
	done := false
	w.Enter(0)
	w.At(10, "e", func() { done = true })
	w.Exit()
	require.NoError(t, w.WaitUntil(bg, clock.Func("e", func() bool { return done }), 10))
}

func TestActorsRunOneAtATime(t *testing.T) {
	w := virtual(t, Options{Seed: 3})
	counter, done := 0, 0 // no lock: the race detector watches the baton
	for i := range 8 {
		w.Go(fmt.Sprint("actor ", i), func() {
			for range 50 {
				c := counter
				w.Enter(time.Duration(i))
				w.Exit()
				counter++
				_ = w.Sleep(bg, time.Duration(c%3))
			}
			done++
		})
	}
	require.NoError(t, w.WaitUntil(bg, clock.Func("all", func() bool { return done == 8 }), clock.Never))
	require.Equal(t, 400, counter)
}

func TestGoStartsWhenTheCallerGivesWay(t *testing.T) {
	w := virtual(t, Options{})
	var order []string
	w.Go("child", func() {
		order = append(order, "child")
		w.Go("grandchild", func() { order = append(order, "grandchild") })
		order = append(order, "child ends")
	})
	order = append(order, "main")
	require.NoError(t, w.Sleep(bg, 0))
	require.NoError(t, w.Sleep(bg, 0))
	require.Equal(t, []string{"main", "child", "child ends", "grandchild"}, order)
}

func TestMutexHeldAcrossSleep(t *testing.T) {
	for seed := range uint64(200) {
		w := NewVirtual(Options{Seed: seed})
		mu := clock.NewMutex(w)
		inside, most, done := 0, 0, 0
		for i := range 4 {
			w.Go("worker", func() {
				for range 5 {
					mu.Lock()
					inside++
					most = max(most, inside)
					_ = w.Sleep(bg, time.Duration(i))
					inside--
					mu.Unlock()
					_ = w.Sleep(bg, 1)
				}
				done++
			})
		}
		require.NoError(t, w.WaitUntil(bg, clock.Func("all", func() bool { return done == 4 }), clock.Never))
		require.Equal(t, 1, most, "seed %d", seed)
		require.NoError(t, w.Close())
	}
}

func TestMutexWaitersAreServedInTurn(t *testing.T) {
	w := virtual(t, Options{Seed: 9})
	mu := clock.NewMutex(w)
	mu.Lock()
	var got []int
	for i := range 5 {
		w.Go("waiter", func() {
			_ = w.Sleep(bg, time.Duration(i+1))
			mu.Lock()
			got = append(got, i)
			_ = w.Sleep(bg, 3)
			mu.Unlock()
		})
	}
	_ = w.Sleep(bg, 100)
	mu.Unlock()
	_ = w.Sleep(bg, 100)
	require.Equal(t, []int{0, 1, 2, 3, 4}, got)
}

func TestDeadlockIsReported(t *testing.T) {
	w := virtual(t, Options{})
	remove := w.Explain("device 0", func(o io.Writer) { fmt.Fprintln(o, "  stream compute: head waits for event 3") })
	gone := w.Explain("device 1", func(o io.Writer) { fmt.Fprintln(o, "gone") })
	gone()
	defer remove()
	mu := clock.NewMutex(w)
	mu.Lock()
	var other error
	w.Go("poster", func() {
		other = w.WaitUntil(bg, clock.Func("transfer 7", func() bool { return false }), clock.Never)
	})
	w.Go("locker", func() { // must not hang though its holder never unlocks in time
		mu.Lock()
		defer mu.Unlock()
	})
	_ = w.Sleep(bg, 20)
	err := w.WaitUntil(bg, clock.Func("fence 1:5", func() bool { return false }), clock.Never)
	mu.Unlock()
	var d *DeadlockError
	require.ErrorAs(t, err, &d)
	require.Equal(t, strings.TrimLeft(`
deadlock at 20ns: every actor waits and nothing is due
  actor poster waits for transfer 7
  actor locker waits for mutex
  actor main waits for fence 1:5
device 0:
  stream compute: head waits for event 3
`, "\n"), d.Report)
	require.Equal(t, err, w.Sleep(bg, 1), "the world has stopped")
	w.actors.Wait()
	require.Equal(t, err, other)
	require.NoError(t, w.Close())
	require.Equal(t, ErrClosed, w.Sleep(bg, 1))
}

func TestCloseEndsWaits(t *testing.T) {
	for _, real := range []bool{false, true} {
		t.Run(fmt.Sprint("real=", real), func(t *testing.T) {
			w := NewVirtual(Options{})
			if real {
				_ = w.Close()
				w = NewReal(Options{}, 1)
			}
			mu := clock.NewMutex(w)
			errs := make(chan error, 3)
			w.Go("waits", func() {
				errs <- w.WaitUntil(bg, clock.Func("never", func() bool { return false }), clock.Never)
			})
			w.Go("holds", func() {
				mu.Lock()
				defer mu.Unlock()
				errs <- w.Sleep(bg, time.Hour)
			})
			w.Go("wants", func() {
				_ = w.Sleep(bg, time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				errs <- ErrClosed
			})
			require.NoError(t, w.Sleep(bg, 10*time.Millisecond))
			require.NoError(t, w.Close())
			require.NoError(t, w.Close())
			for range 3 {
				require.Equal(t, ErrClosed, <-errs)
			}
			w.Go("too late", func() { t.Error("started after Close") })
			w.Enter(5)
			w.At(0, "too late", func() { t.Error("ran after Close") })
			w.Exit()
			require.Equal(t, ErrClosed, w.WaitUntil(bg, clock.Func("never", func() bool { return false }), 5))
			require.NoError(t, w.WaitUntil(bg, clock.Func("yes", func() bool { return true }), 5))
		})
	}
}

// Whatever the actors are doing when the world is closed, they end.
func TestCloseAtAnyTime(t *testing.T) {
	for seed := range uint64(200) {
		w := NewVirtual(Options{Seed: seed})
		mu := clock.NewMutex(w)
		hbm := NewShared(w, "hbm", 1e9)
		for range 4 {
			w.Go("actor", func() {
				for i := 0; ; i++ {
					mu.Lock()
					arrived := false
					w.Enter(time.Duration(i % 3))
					hbm.Start(float64(i%7), 0, "flow", func() { arrived = true })
					w.Exit()
					err := w.WaitUntil(bg, clock.Func("flow", func() bool { return arrived }), clock.Never)
					mu.Unlock()
					if err == nil {
						err = w.Sleep(bg, time.Duration(i%2))
					}
					if err != nil {
						if err != ErrClosed {
							t.Errorf("seed %d: %v", seed, err)
						}
						return
					}
				}
			})
		}
		require.NoError(t, w.Sleep(bg, time.Duration(seed)))
		require.NoError(t, w.Close())
	}
}

func TestEnteringTwiceIsToldAtOnce(t *testing.T) {
	w := virtual(t, Options{})
	w.Enter(0)
	require.Panics(t, func() { w.Enter(0) })
	require.Panics(t, func() { _ = w.Sleep(bg, 1) })
	w.Exit()
}

func TestGoexitPassesTheBatonOn(t *testing.T) {
	w := virtual(t, Options{})
	w.Go("gives up", func() {
		inner := &testing.T{}
		_ = w.Sleep(bg, 3)
		inner.FailNow() // runtime.Goexit
	})
	require.NoError(t, w.Sleep(bg, 10))
	require.Equal(t, time.Duration(10), w.Now())
}

// program is a random run of actors, events, locks and shared bandwidth. It
// returns its log.
func program(o Options) string {
	var log strings.Builder
	o.Observe = func(t time.Duration, what string) { fmt.Fprintln(&log, int64(t), what) }
	w := NewVirtual(o)
	mu := clock.NewMutex(w)
	hbm := NewShared(w, "hbm", 1e9)
	done := 0
	for i := range 5 {
		w.Go(fmt.Sprint("actor ", i), func() {
			for j := range 6 {
				w.Enter(time.Duration(w.Rand().IntN(4)))
				arrived := false
				hbm.Start(float64(w.Rand().IntN(20)), 0, fmt.Sprint("flow ", i, j), func() { arrived = true })
				w.After(time.Duration(w.Rand().IntN(3)), fmt.Sprint("event ", i, j), func() {})
				w.Exit()
				mu.Lock()
				_ = w.WaitUntil(bg, clock.Func("flow", func() bool { return arrived }), w.Now()+5)
				mu.Unlock()
			}
			done++
		})
	}
	err := w.WaitUntil(bg, clock.Func("all", func() bool { return done == 5 }), clock.Never)
	fmt.Fprintln(&log, "end", int64(w.Now()), err)
	_ = w.Close()
	return log.String()
}

func TestSameSeedSameRun(t *testing.T) {
	runs := map[string]bool{}
	for seed := range uint64(300) {
		a := program(Options{Seed: seed})
		require.Equal(t, a, program(Options{Seed: seed}), "seed %d", seed)
		require.Contains(t, a, "<nil>")
		runs[a] = true
	}
	require.Greater(t, len(runs), 290, "seeds must differ in what they do")
}

func TestScriptReachesEveryOrder(t *testing.T) {
	run := func(answers []uint) (string, []Choice) {
		s := &Script{Answers: answers}
		w := NewVirtual(Options{Chooser: s})
		defer w.Close()
		var got strings.Builder
		w.Enter(0)
		for _, n := range []string{"a", "b", "c"} {
			w.At(5, n, func() { got.WriteString(n) })
		}
		w.Exit()
		_ = w.Sleep(bg, 6)
		return got.String(), s.Taken
	}
	seen := map[string]bool{}
	var explore func(prefix []uint)
	explore = func(prefix []uint) {
		got, taken := run(prefix)
		seen[got] = true
		for i := len(prefix); i < len(taken); i++ {
			for k := 1; k < taken[i].Of; k++ {
				next := append([]uint(nil), prefix...)
				for len(next) < i {
					next = append(next, 0)
				}
				explore(append(next, uint(k)))
			}
		}
	}
	explore(nil)
	require.Len(t, seen, 6)
}

func BenchmarkEnter(b *testing.B) {
	w := virtual(b, Options{})
	b.ReportAllocs()
	for b.Loop() {
		w.Enter(1)
		w.Exit()
	}
}

func BenchmarkSwitch(b *testing.B) {
	w := NewVirtual(Options{})
	defer w.Close()
	w.Go("other", func() {
		for w.Sleep(bg, 2) == nil {
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		_ = w.Sleep(bg, 2)
	}
}
