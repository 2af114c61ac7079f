package loadgate_test

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/stream"
)

// BenchmarkStepOnDevice is what a step of 32 requests of 4 blocks each costs the
// host's thread through the gate, on the device at hand: with nothing new, and with a
// request more, of 8 blocks to zero. The device is let to run empty every so often, so
// that no queue is measured. crossings are calls into C.
func BenchmarkStepOnDevice(b *testing.B) {
	const requests, each, fresh, drainEvery = 32, 4, 8, 32
	const blocks, page = requests*each + (drainEvery+2)*fresh*2, 4096
	dev, err := auto.Open(b.Output(), auto.Options{Sim: sim.Options{Real: true}})
	require.NoError(b, err)
	defer func() { require.NoError(b, dev.Close()) }()
	reg := event.NewRegistry(dev)
	set, err := kernels.Load(dev)
	require.NoError(b, err)
	compute, err := stream.New(reg, cuda.StreamOptions{Name: "compute"})
	require.NoError(b, err)
	base, err := dev.Alloc(8*blocks*page, cuda.AllocOptions{Name: "blocks"})
	require.NoError(b, err)
	table := layout.Table{Blocks: blocks}
	for i := range uint64(8) {
		table.Segments = append(table.Segments, layout.Segment{Base: uint64(base) + i*blocks*page, Stride: page, Page: page})
	}
	gate, err := loadgate.New(reg, set, loadgate.Options{Compute: compute, Agent: &noopAgent{},
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: table, NeedsZero: true}}})
	require.NoError(b, err)
	pool, err := gate.Pool(0)
	require.NoError(b, err)
	defer func() {
		require.NoError(b, gate.Close(context.Background()))
		require.NoError(b, compute.Close())
		require.NoError(b, set.Close())
		require.NoError(b, reg.Close())
	}()
	admit := func(n int) (loadgate.Holder, []kv.Tenancy, error) {
		ts, err := pool.Alloc(n, nil)
		if err != nil {
			return 0, nil, err
		}
		h, err := gate.Hold(0, ts)
		if err != nil {
			return 0, nil, err
		}
		return h, ts, gate.Zero(loadgate.ZeroRequest{Tenancies: ts})
	}
	var holders []loadgate.Holder
	for range requests {
		h, _, err := admit(each)
		require.NoError(b, err)
		holders = append(holders, h)
	}
	step := func(hs []loadgate.Holder) error {
		plan, err := gate.Plan(hs)
		if err != nil {
			return err
		}
		work := func(c *loadgate.Commands) error { c.Fill32(compute, base, 0, 1); return nil }
		if _, err := plan.Launch(work); err != nil {
			return err
		}
		if err := gate.EndStep(); err != nil {
			return err
		}
		_, err = gate.Progress(0)
		return err
	}
	var left []loadgate.Holder
	var theirs []kv.Tenancy
	drain := func() {
		require.NoError(b, dev.Sync(b.Context()))
		_, err := gate.Progress(0)
		require.NoError(b, err)
		for _, h := range left {
			require.NoError(b, gate.Drop(h))
		}
		require.NoError(b, pool.Free(theirs))
		left, theirs = left[:0], theirs[:0]
		_, err = gate.Progress(0)
		require.NoError(b, err)
	}
	n, label := 10_000, ""
	if dev.Info().Simulated {
		n, label = 200, "simulated-"
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"nothing_new", func() error { return step(holders) }},
		{"8_blocks_zeroed", func() error {
			h, ts, err := admit(fresh)
			if err != nil {
				return err
			}
			left, theirs = append(left, h), append(theirs, ts...)
			return step(append(holders[:requests:requests], h))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ns []int64
			crossings := int64(0)
			for b.Loop() {
				for i := range n + drainEvery { // the first are to warm up
					before, start := runtime.NumCgoCall(), dev.Clock().Now()
					err := c.do()
					took := dev.Clock().Now() - start
					if err != nil {
						b.Fatal(err)
					}
					if i >= drainEvery {
						ns = append(ns, int64(took))
						crossings += runtime.NumCgoCall() - before
					}
					if i%drainEvery == drainEvery-1 {
						drain()
					}
				}
				drain()
			}
			slices.Sort(ns)
			us := func(i int) float64 { return float64(ns[i]) / 1000 }
			b.ReportMetric(us(len(ns)/2), label+"p50-us")
			b.ReportMetric(us(len(ns)*99/100), label+"p99-us")
			b.ReportMetric(us(len(ns)-1), label+"max-us")
			b.ReportMetric(float64(crossings)/float64(len(ns)), "crossings")
			b.ReportMetric(0, "ns/op")
		})
	}
	left = append(left, holders...)
	drain()
}
