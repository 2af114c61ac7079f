package vtime

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSharedDividesMaxMin(t *testing.T) {
	w := virtual(t, Options{})
	w.Enter(0)
	defer w.Exit()
	s := NewShared(w, "hbm", 100)
	a := s.Start(1e6, 0, "a", nil)
	require.Equal(t, 100.0, a.rate)
	b := s.Start(1e6, 10, "b", nil)
	c := s.Start(1e6, 0, "c", nil)
	require.Equal(t, []float64{45, 10, 45}, []float64{a.rate, b.rate, c.rate})
	require.Equal(t, 3, s.Busy())
}

func TestSharedTakesTheTimeOfItsBytes(t *testing.T) {
	w := virtual(t, Options{})
	s := NewShared(w, "link", 1e9)
	var at []string
	w.Enter(0)
	for i, n := range []float64{100, 300, 0} {
		s.Start(n, 0, fmt.Sprint("flow ", i), func() { at = append(at, fmt.Sprint(i, "@", int(w.Time()))) })
	}
	w.Exit()
	require.NoError(t, w.Sleep(bg, 1000))
	require.Equal(t, []string{"2@0", "0@200", "1@400"}, at)
}

func TestFlowMemoryIsUsedAgain(t *testing.T) {
	w := virtual(t, Options{})
	s := NewShared(w, "link", 1e9)
	var f Flow
	left := 3
	var again func()
	again = func() {
		if left--; left > 0 {
			s.StartIn(&f, 100, 0, "f", again)
			require.Panics(t, func() { s.StartIn(&f, 1, 0, "f", nil) })
		}
	}
	w.Enter(0)
	s.StartIn(&f, 100, 0, "f", again)
	w.Exit()
	require.NoError(t, w.Sleep(bg, 300))
	require.Zero(t, left)
}

func TestSharedConserves(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := NewVirtual(Options{Seed: rapid.Uint64().Draw(r, "seed")})
		defer w.Close()
		const rate = 1e9
		const grain = 0.5e-9 // s: a flow may end that much early when another ends
		s := NewShared(w, "hbm", rate)
		type sent struct {
			f          *Flow
			bytes, cap float64
			start, end time.Duration
			ended      bool
		}
		var all []*sent
		check := func() {
			total, shareless := 0.0, math.Inf(1)
			for _, x := range all {
				if x.ended || x.f.rate == 0 { // 0: about to be told of its end
					continue
				}
				total += x.f.rate
				if x.cap > 0 && x.f.rate > x.cap*(1+1e-9) {
					r.Fatalf("rate %g above the cap %g", x.f.rate, x.cap)
				}
				if x.cap == 0 || x.f.rate < x.cap*(1-1e-9) {
					shareless = min(shareless, x.f.rate) // not held by its cap
				}
			}
			if total > rate*(1+1e-9) {
				r.Fatalf("%g bytes/s through %g", total, rate)
			}
			if !math.IsInf(shareless, 1) {
				if total < rate*(1-1e-9) {
					r.Fatalf("rate left over: %g of %g", total, rate)
				}
				for _, x := range all {
					if !x.ended && x.f.rate > shareless*(1+1e-9) {
						r.Fatalf("a flow gets %g while another gets %g below its cap", x.f.rate, shareless)
					}
				}
			}
		}
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			w.Enter(time.Duration(rapid.IntRange(0, 500).Draw(r, "pause")))
			x := &sent{bytes: float64(rapid.IntRange(0, 2000).Draw(r, "bytes")), start: w.Time()}
			if rapid.Bool().Draw(r, "capped") {
				x.cap = float64(rapid.IntRange(1, 20).Draw(r, "cap")) * 1e8
			}
			x.f = s.Start(x.bytes, x.cap, "flow", func() { x.ended, x.end = true, w.Time() })
			all = append(all, x)
			check()
			w.Exit()
		}
		if err := w.Sleep(bg, time.Second); err != nil {
			r.Fatal(err)
		}
		moved, last := 0.0, time.Duration(0)
		for i, x := range all {
			if !x.ended {
				r.Fatalf("flow %d never ended", i)
			}
			moved += x.bytes
			last = max(last, x.end)
			took := (x.end - x.start).Seconds()
			if x.cap > 0 && (took+grain)*x.cap < x.bytes-1e-6 {
				r.Fatalf("flow %d: %g bytes in %g s pass its cap %g", i, x.bytes, took, x.cap)
			}
			if (took+grain)*rate < x.bytes-1e-6 {
				r.Fatalf("flow %d: %g bytes in %g s", i, x.bytes, took)
			}
		}
		if moved > rate*(last.Seconds()+grain*float64(len(all)))+1e-6 {
			r.Fatalf("%g bytes in %v", moved, last)
		}
		if s.Busy() != 0 {
			r.Fatalf("%d flows left", s.Busy())
		}
	})
}
