package sim

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

// The published zero-fill times of a B200 (sglang #22688), 8 TB/s: the model
// was fitted to them and must stay within a tenth.
func TestZeroFillTimesAsPublished(t *testing.T) {
	r := newRig(t, Options{Name: "B200", Bandwidth: 8e12, SMs: 148})
	s := r.stream("zero")
	bytes := 0.0
	f := r.model(func(k *ModelLaunch) error { k.Written = bytes; return nil })
	for _, c := range []struct {
		bytes float64
		took  time.Duration
	}{
		{2.1e6, 5100}, {34e6, 8200}, {136e6, 22600}, {273e6, 41000}, {1.09e9, 148000},
	} {
		bytes = c.bytes
		got := r.took(func(b *cuda.Batch) { b.Launch(s, f, one, 0) })
		got -= r.costs.Crossing + r.costs.Launch // published times are the device's
		require.InEpsilon(t, c.took.Seconds(), got.Seconds(), 0.1, "%g bytes: %v, published %v", c.bytes, got, c.took)
	}
}

func TestHostPaysForItsCalls(t *testing.T) {
	r := newRig(t, Options{})
	s, e := r.stream("s"), r.event()
	c := r.costs
	passed := func(what string, want time.Duration, do func()) {
		t.Helper()
		begin := r.world.Now()
		do()
		require.Equal(t, want, r.world.Now()-begin, what)
	}
	passed("submit", c.Crossing+2*c.Record+c.WaitEvent, func() {
		r.submit(func(b *cuda.Batch) { b.Record(s, e); b.WaitEvent(s, e); b.Record(s, e) })
	})
	passed("poll", c.Crossing+3*c.Query, func() {
		require.NoError(t, r.Poll([]cuda.Mark{{Event: e}, {Event: e}, {Event: e}}))
	})
	passed("an empty batch", c.Crossing, func() { require.NoError(t, r.Submit(&cuda.Batch{})) })
}

func TestSlowStretchesEverything(t *testing.T) {
	took := func(slow float64) time.Duration {
		costs := DefaultCosts().slow(slow)
		r := newRig(t, Options{Costs: &costs, Bandwidth: 3.35e12 / slow})
		s, p := r.stream("s"), r.alloc("p", 1<<20)
		f := r.storeKernel()
		return r.took(func(b *cuda.Batch) {
			b.Fill8(s, p, 1, 1<<20)
			store(b, s, f, p, 64, 1000)
			b.Copy(s, p, p+1<<19, 1<<19)
		})
	}
	require.InEpsilon(t, float64(7*took(1)), float64(took(7)), 0.001)
}

func TestConcurrentWorkSharesBandwidth(t *testing.T) {
	r := newRig(t, Options{})
	s1, s2 := r.stream("s1"), r.stream("s2")
	f := r.model(func(k *ModelLaunch) error { k.Read = 3.35e12 * 0.918 * 1e-3; return nil }) // a millisecond alone
	alone := r.took(func(b *cuda.Batch) { b.Launch(s1, f, one, 0) })
	both := r.took(func(b *cuda.Batch) { b.Launch(s1, f, one, 0); b.Launch(s2, f, one, 0) })
	require.InDelta(t, 1, alone.Seconds()*1e3, 0.01)
	require.InDelta(t, 2, both.Seconds()*1e3, 0.02)
}

// A step that computes for a millisecond and reads a tenth of what the memory
// could give leaves nine tenths to a zeroing beside it, and is not held up.
func TestModelLeavesTheBandwidthThatItDoesNotNeed(t *testing.T) {
	r := newRig(t, Options{})
	step, zero := r.stream("step"), r.stream("zero")
	whole := r.mem.hbm.Rate() * 1e-3
	forward := r.model(func(k *ModelLaunch) error { k.Read, k.Time = whole/10, time.Millisecond; return nil })
	zeroing, err := r.NewModel("zeroing", func(k *ModelLaunch) error { k.Written = whole * 0.45; return nil })
	require.NoError(t, err)
	begin := r.world.Now()
	r.submit(func(b *cuda.Batch) {
		b.Launch(step, forward, one, 0)
		b.Launch(zero, zeroing, one, 0)
	})
	require.NoError(t, r.SyncStream(bg, zero))
	require.InDelta(t, 0.5e-3, (r.world.Now() - begin).Seconds(), 30e-6)
	require.NoError(t, r.SyncStream(bg, step))
	require.InDelta(t, 1e-3, (r.world.Now() - begin).Seconds(), 30e-6)
}

func TestFewThreadBlocksDoNotFillTheMemory(t *testing.T) {
	r := newRig(t, Options{})
	s, p, f := r.stream("s"), r.allocScaled("p", 1<<20, 1<<12), r.storeKernel()
	short := r.took(func(b *cuda.Batch) { store(b, s, f, p, 64, 1) })
	require.InDelta(t, float64(r.costs.Crossing+r.costs.Launch+r.costs.LaunchLatency+r.costs.KernelMin), float64(short), 100)
	costs := DefaultCosts()
	costs.SMBandwidth = 1e9
	r = newRig(t, Options{Costs: &costs})
	s, p, f = r.stream("s"), r.allocScaled("p", 1<<20, 1<<12), r.storeKernel()
	// 4 bytes x 4,096 at 1 GB/s for one block; 100 blocks take as long together.
	want := float64(costs.Crossing+costs.Launch+costs.LaunchLatency) + 16384
	for _, n := range []uint32{1, 8, 96} {
		got := r.took(func(b *cuda.Batch) { store(b, s, f, p, 64, n) })
		require.InDelta(t, want, float64(got), 200, "%d thread blocks", n)
	}
}

func TestCostScaleCountsInCopiesAndFills(t *testing.T) {
	for _, scale := range []uint32{1, 10} {
		r := newRig(t, Options{})
		s := r.stream("s")
		p, h := r.allocScaled("p", 8<<20, scale), r.pinned("h", 8<<20)
		fixed := r.costs.Crossing + r.costs.Copy + r.costs.CopyLatency
		fill := r.took(func(b *cuda.Batch) { b.Fill8(s, p, 1, 8<<20) })
		require.InEpsilon(t, float64(8<<20)*float64(scale)/r.mem.hbm.Rate(), (fill - fixed).Seconds(), 0.01)
		up := r.took(func(b *cuda.Batch) { b.Copy(s, p, h.Device, 8<<20) })
		require.InEpsilon(t, float64(8<<20)*float64(scale)/r.costs.HostLink, (up - fixed).Seconds(), 0.01)
		inside := r.took(func(b *cuda.Batch) { b.Copy(s, p, p+4<<20, 4<<20) })
		require.InEpsilon(t, float64(8<<20)*float64(scale)/r.mem.hbm.Rate(), (inside - fixed).Seconds(), 0.01)
	}
}

func TestCopyEnginesAreQueues(t *testing.T) {
	r := newRig(t, Options{})
	s1, s2 := r.stream("s1"), r.stream("s2")
	p, h := r.alloc("p", 32<<20), r.pinned("h", 32<<20)
	const n = 16 << 20
	up := func(b *cuda.Batch, s cuda.Stream) { b.Copy(s, p, h.Device, n) }
	down := func(b *cuda.Batch, s cuda.Stream) { b.Copy(s, h.Device+n, p+n, n) }
	alone := r.took(func(b *cuda.Batch) { up(b, s1) })
	same := r.took(func(b *cuda.Batch) { up(b, s1); up(b, s2) })
	opposite := r.took(func(b *cuda.Batch) { up(b, s1); down(b, s2) })
	require.InEpsilon(t, 2*float64(alone), float64(same), 0.05)
	require.InEpsilon(t, float64(alone), float64(opposite), 0.05)
}

func TestPriorityDecidesAtTheLimitOfResidentGrids(t *testing.T) {
	costs := DefaultCosts()
	costs.ResidentGrids = 1
	r := newRig(t, Options{Costs: &costs})
	var order []string
	f := r.model(func(k *ModelLaunch) error {
		order = append(order, k.Stream)
		k.Time = 100 * time.Microsecond
		return nil
	})
	streams := []cuda.Stream{r.stream("a"), r.stream("b"), r.stream("c"), r.streamOf("high", true), r.streamOf("high too", true)}
	r.submit(func(b *cuda.Batch) {
		for _, s := range streams {
			b.Launch(s, f, one, 0)
		}
	})
	require.NoError(t, r.Sync(bg))
	require.Equal(t, []string{"a", "high", "high too", "b", "c"}, order)
}

func TestTooManyPendingLaunchesMakeSubmitWait(t *testing.T) {
	costs := DefaultCosts()
	costs.PendingLaunches = 10
	r := newRig(t, Options{Costs: &costs})
	f := r.model(func(k *ModelLaunch) error { k.Time = time.Millisecond; return nil })
	s, other := r.stream("s"), r.stream("other")
	begin := r.world.Now()
	launch := func(s cuda.Stream, n int) {
		r.submit(func(b *cuda.Batch) {
			for range n {
				b.Launch(s, f, one, 0)
			}
		})
	}
	launch(s, 10)
	launch(other, 5)
	require.Less(t, r.world.Now()-begin, 100*time.Microsecond)
	launch(s, 3)
	require.Greater(t, r.world.Now()-begin, 3*time.Millisecond)
	require.Less(t, r.world.Now()-begin, 4*time.Millisecond)
	require.NoError(t, r.Sync(bg))
}

func TestStreamThatWaitsGoesOnAfterTheEventFired(t *testing.T) {
	r := newRig(t, Options{})
	s1, s2, e := r.stream("s1"), r.stream("s2"), r.event()
	var begun [2]time.Duration
	c := r.costs
	first, err := r.NewModel("first", func(k *ModelLaunch) error {
		k.Time = 100 * time.Microsecond
		begun[0] = r.world.Time()
		return nil
	})
	require.NoError(t, err)
	second, err := r.NewModel("second", func(*ModelLaunch) error { begun[1] = r.world.Time(); return nil })
	require.NoError(t, err)
	r.submit(func(b *cuda.Batch) {
		b.Launch(s1, first, one, 0)
		b.Record(s1, e)
		b.WaitEvent(s2, e)
		b.Launch(s2, second, one, 0)
	})
	require.NoError(t, r.Sync(bg))
	require.Equal(t, 100*time.Microsecond+c.EventLatency+c.StreamWait, begun[1]-begun[0])
}

func TestModelTakesItsTime(t *testing.T) {
	r := newRig(t, Options{})
	s := r.stream("s")
	var at []time.Duration
	f := r.model(func(k *ModelLaunch) error {
		k.Time, k.Chunks = 10*time.Millisecond, 4
		k.Step = func(_ *Memory, i int) error {
			require.Equal(t, len(at), i)
			at = append(at, r.world.Time())
			return nil
		}
		return nil
	})
	got := r.took(func(b *cuda.Batch) { b.Launch(s, f, one, 0) })
	require.InDelta(t, 10e-3, got.Seconds(), 10e-6)
	require.Len(t, at, 4)
	for i := range at {
		require.Equal(t, time.Duration(i)*2500*time.Microsecond, at[i]-at[0])
	}
}

// A kernel takes as long as its threads sleep, in device time, and its thread
// blocks sleep at the same time; the timer goes on from the device's clock.
func TestSleepingTakesTime(t *testing.T) {
	const sleepPTX = `.version 7.8
.target sm_70
.address_size 64
// sleeper(out, ns): each thread block sleeps, and writes the timer before and after.
.visible .entry sleeper(.param .u64 out, .param .u32 ns)
{
	.reg .b32	%r<3>;
	.reg .b64	%rd<5>;
	ld.param.u64	%rd1, [out];
	ld.param.u32	%r1, [ns];
	mov.u64	%rd2, %globaltimer;
	nanosleep.u32	%r1;
	mov.u64	%rd3, %globaltimer;
	mov.u32	%r2, %ctaid.x;
	mul.wide.u32	%rd4, %r2, 16;
	add.s64	%rd1, %rd1, %rd4;
	st.global.v2.u64	[%rd1], {%rd2, %rd3};
	ret;
}
`
	for _, slow := range []float64{1, 3} {
		world := vtime.NewVirtual(vtime.Options{})
		if slow > 1 {
			world = vtime.NewReal(vtime.Options{}, slow)
		}
		t.Cleanup(func() { require.NoError(t, world.Close()) })
		r := newRig(t, Options{World: world})
		m, err := r.LoadModule([]byte(sleepPTX))
		require.NoError(t, err)
		f, err := r.Function(m, "sleeper")
		require.NoError(t, err)
		s, p := r.stream("s"), r.alloc("p", 16*100)
		const ns = 700_000
		before := r.world.Now()
		took := r.took(func(b *cuda.Batch) {
			a := b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{100, 1, 1}, Block: [3]uint16{64, 1, 1}}, 12)
			binary.LittleEndian.PutUint64(a, uint64(p))
			binary.LittleEndian.PutUint32(a[8:], ns)
		})
		require.Greater(t, took, time.Duration(slow*ns))
		if slow == 1 {
			require.Less(t, took, time.Duration(ns)+20*time.Microsecond, "100 thread blocks, one after the other")
		}
		times := r.read(p, 16*100)
		for i := range 100 {
			from, to := binary.LittleEndian.Uint64(times[16*i:]), binary.LittleEndian.Uint64(times[16*i+8:])
			require.EqualValues(t, ns, to-from)
			require.GreaterOrEqual(t, from, uint64(float64(before)/slow))
			require.Less(t, from, uint64(float64(r.world.Now())/slow))
		}
	}
}
