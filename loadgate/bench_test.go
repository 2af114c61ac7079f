package loadgate_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// noopAgent and noopTransfer cost nothing, so that what is timed is the gate.
type noopAgent struct {
	nixl.Agent
	activity atomic.Uint64
	done     atomic.Bool
}

func (a *noopAgent) Activity() uint64 { return a.activity.Load() }

type noopTransfer struct {
	posted atomic.Bool
	agent  *noopAgent
	spec   nixl.Spec
	local  [1]nixl.Descriptor
}

func (t *noopTransfer) Spec() *nixl.Spec { return &t.spec }
func (t *noopTransfer) Post() error      { t.posted.Store(true); return nil }
func (t *noopTransfer) Cancel()          {}
func (t *noopTransfer) Close() error     { t.posted.Store(false); return nil }
func (t *noopTransfer) Status() (nixl.Status, error) {
	if !t.posted.Load() {
		return nixl.Idle, nil
	}
	if t.agent.done.Load() {
		return nixl.Done, nil
	}
	return nixl.InProgress, nil
}

type benchRig struct {
	dev     *noopdev.Device
	reg     *event.Registry
	compute *stream.Stream
	agent   *noopAgent
	gate    *loadgate.Gate
	table   layout.Table
	ended   []loadgate.Ended
}

func newBenchRig(b testing.TB, blocks int, mode loadgate.Mode) *benchRig {
	r := &benchRig{dev: noopdev.New(noopdev.Options{}), agent: &noopAgent{}}
	r.reg = event.NewRegistry(r.dev)
	set, err := kernels.Load(r.dev)
	require.NoError(b, err)
	r.compute, err = stream.New(r.reg, cuda.StreamOptions{Name: "compute"})
	require.NoError(b, err)
	const page = 4096
	base, err := r.dev.Alloc(uint64(blocks)*page, cuda.AllocOptions{Name: "kv"})
	require.NoError(b, err)
	r.table = layout.Table{Blocks: blocks, Segments: []layout.Segment{{Base: uint64(base), Stride: page, Page: page}}}
	r.gate, err = loadgate.New(r.reg, set, loadgate.Options{Mode: mode, Compute: r.compute, Agent: r.agent,
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: r.table, NeedsZero: true}}})
	require.NoError(b, err)
	b.Cleanup(func() {
		r.dev.Hold(false)
		r.dev.FireAll()
		r.agent.done.Store(true)
		r.agent.activity.Add(1)
		require.NoError(b, r.gate.Close(context.Background()))
		require.NoError(b, r.compute.Close())
		require.NoError(b, r.reg.Close())
		require.NoError(b, set.Close())
		require.NoError(b, r.dev.Close())
	})
	return r
}

// arm zeroes blocks with marks that stay open until FireAll, so that loads into
// them are held.
func (r *benchRig) arm(b testing.TB, ts []kv.Tenancy) {
	r.dev.Hold(true)
	if err := r.gate.Zero(loadgate.ZeroRequest{Tenancies: ts}); err != nil {
		b.Fatal(err)
	}
	if err := r.gate.Flush(); err != nil {
		b.Fatal(err)
	}
}

// end brings posted loads to their end, and hears of it.
func (r *benchRig) end(b testing.TB) {
	r.agent.done.Store(true)
	for r.gate.Counters().InFlight > 0 {
		r.agent.activity.Add(1)
		if _, err := r.gate.Progress(0); err != nil {
			b.Fatal(err)
		}
		runtime.Gosched()
	}
	r.agent.done.Store(false)
	r.ended = r.gate.Ended(r.ended[:0])
}

func (r *benchRig) hold(b testing.TB, n int) (loadgate.Holder, []kv.Tenancy) {
	ts, err := r.gate.Alloc([]loadgate.Want{{Blocks: n}}, nil)
	require.NoError(b, err)
	h, err := r.gate.Hold(0, ts)
	require.NoError(b, err)
	require.NoError(b, r.gate.Zero(loadgate.ZeroRequest{Tenancies: ts}))
	require.NoError(b, r.gate.Flush())
	return h, ts
}

func (r *benchRig) transfer(t kv.Tenancy) *noopTransfer {
	tr := &noopTransfer{agent: r.agent}
	tr.local[0] = nixl.Descriptor{Addr: r.table.Segments[0].Address(t.Block), Len: 4096}
	tr.spec = nixl.Spec{Op: nixl.Read, Local: tr.local[:]}
	return tr
}

func noLaunch(*loadgate.Commands) error { return nil }

func (r *benchRig) step(b testing.TB, holders []loadgate.Holder) {
	p, err := r.gate.Plan(holders)
	if err == nil {
		_, err = p.Launch(noLaunch)
	}
	if err == nil {
		err = r.gate.EndStep()
	}
	if err == nil {
		_, err = r.gate.Progress(0)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGate times the host side of the gate over a device and transfers
// that do nothing.
func BenchmarkGate(b *testing.B) {
	// A step that plans nothing and has nothing held: what an engine pays for
	// having a gate when there is nothing to do.
	b.Run("idle", func(b *testing.B) {
		r := newBenchRig(b, 64, core.PerBlock)
		b.ReportAllocs()
		for b.Loop() {
			if err := r.gate.EndStep(); err != nil {
				b.Fatal(err)
			}
			if _, err := r.gate.Progress(0); err != nil {
				b.Fatal(err)
			}
		}
	})

	// A decode step in which nothing is new, by what its requests hold. The
	// step's mark and its poll are crossings of the no-op device.
	for _, each := range []int{1, 1000} {
		b.Run(fmt.Sprintf("decode-256x%d", each), func(b *testing.B) {
			r := newBenchRig(b, 256*each+1, core.PerBlock)
			var hs []loadgate.Holder
			for range 256 {
				h, _ := r.hold(b, each)
				hs = append(hs, h)
			}
			r.step(b, hs)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				r.step(b, hs)
			}
		})
	}

	// A load that is held behind its zeroing, released by its mark and handed to
	// the posters. The device's part is in it: one mark fires, one poll. Loads
	// are readied in rounds, outside the time; reading the clock twice, which
	// costs as much as a fifth of it, is told beside and taken off.
	b.Run("defer-drain", func(b *testing.B) {
		const round = 16
		r := newBenchRig(b, round+1, core.PerBlock)
		h, ts := r.hold(b, round)
		var trs [round]*noopTransfer
		for i, t := range ts {
			trs[i] = r.transfer(t)
		}
		var spent time.Duration
		n := 0
		b.ReportAllocs()
		for b.Loop() {
			n++
			i := n % round
			if i == 0 {
				b.StopTimer()
				r.end(b)
				b.StartTimer()
			}
			r.arm(b, ts[i:i+1])
			start := time.Now()
			t, err := r.gate.Load(h, trs[i])
			if err != nil {
				b.Fatal(err)
			}
			held := time.Since(start)
			if t.Done() || r.gate.Counters().Held != 1 {
				b.Fatal("the load is not held")
			}
			r.dev.FireAll()
			start = time.Now()
			if _, err := r.gate.Progress(0); err != nil {
				b.Fatal(err)
			}
			spent += held + time.Since(start)
		}
		timer := time.Duration(0)
		for range 1000 {
			start := time.Now()
			timer += time.Since(start)
		}
		perOp := 2 * float64(timer.Nanoseconds()) / 1000
		b.ReportMetric(float64(spent.Nanoseconds())/float64(n)-perOp, "gate-ns/op")
		b.ReportMetric(perOp, "timer-ns/op")
		b.ReportMetric(0, "ns/op") // arming is in it
	})

	b.Run("drain-1000", func(b *testing.B) {
		r := newBenchRig(b, 1001, core.PerBlock)
		h, ts := r.hold(b, 1000)
		var trs []*noopTransfer
		for _, t := range ts {
			trs = append(trs, r.transfer(t))
		}
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			r.arm(b, ts)
			for _, tr := range trs {
				if _, err := r.gate.Load(h, tr); err != nil {
					b.Fatal(err)
				}
			}
			if n := r.gate.Counters().Held; n != 1000 {
				b.Fatal(n, "held")
			}
			r.dev.FireAll()
			b.StartTimer()
			if _, err := r.gate.Progress(0); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if n := r.gate.Counters().Held; n != 0 {
				b.Fatal(n, "held")
			}
			r.end(b)
			b.StartTimer()
		}
	})

	// Withdrawing one held load, by how many are held.
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("cancel-1-of-%d", n), func(b *testing.B) {
			r := newBenchRig(b, 1100, core.PerBlock)
			h, ts := r.hold(b, n)
			r.arm(b, ts)
			var trs []*noopTransfer
			var tickets []loadgate.Transfer
			for _, t := range ts {
				trs = append(trs, r.transfer(t))
				tk, err := r.gate.Load(h, trs[len(trs)-1])
				require.NoError(b, err)
				tickets = append(tickets, tk)
			}
			b.ReportAllocs()
			b.ResetTimer()
			i := 0
			for b.Loop() {
				withdrawn, err := tickets[i].Cancel()
				if err != nil || !withdrawn {
					b.Fatal(withdrawn, err)
				}
				r.ended = r.gate.Ended(r.ended[:0])
				if tickets[i], err = r.gate.Load(h, trs[i]); err != nil {
					b.Fatal(err)
				}
				i = (i + 7) % n
			}
		})
	}

	// A step while others' loads are held.
	for _, n := range []int{10, 100000} {
		b.Run(fmt.Sprintf("pending-%d", n), func(b *testing.B) {
			r := newBenchRig(b, n+64, core.PerBlock)
			h, ts := r.hold(b, n)
			r.arm(b, ts)
			for _, t := range ts {
				_, err := r.gate.Load(h, r.transfer(t))
				require.NoError(b, err)
			}
			mine, _ := r.hold(b, 1)
			hs := []loadgate.Holder{mine}
			r.dev.Hold(false)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				r.step(b, hs)
			}
			b.StopTimer()
			require.Equal(b, n, r.gate.Counters().Held)
		})
	}
}
