package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/stream"
)

var bg = context.Background()

// bench is a simulated device with a compute stream and a gate stream.
type bench struct {
	*testing.T
	dev           *sim.Device
	reg           *event.Registry
	compute, gate *stream.Stream
}

// onSim runs the test on virtual time and on the wall clock.
func onSim(t *testing.T, test func(b *bench)) {
	for name, o := range map[string]sim.Options{"virtual": {}, "real": {Real: true}} {
		t.Run(name, func(t *testing.T) {
			dev, err := sim.New(o)
			require.NoError(t, err)
			b := &bench{T: t, dev: dev, reg: event.NewRegistry(dev)}
			b.compute, err = stream.New(b.reg, cuda.StreamOptions{Name: "compute"})
			require.NoError(t, err)
			b.gate, err = stream.New(b.reg, cuda.StreamOptions{Name: "gate", HighPriority: true})
			require.NoError(t, err)
			test(b)
			for _, s := range []*stream.Stream{b.compute, b.gate} {
				if b.reg.Err() == nil {
					require.NoError(t, s.Sync(bg))
				}
				require.NoError(t, s.Close())
			}
			require.NoError(t, b.reg.Close())
			require.NoError(t, dev.Close())
		})
	}
}

func (b *bench) alloc(n uint64) cuda.DevicePtr {
	p, err := b.dev.Alloc(n, cuda.AllocOptions{Name: "test"})
	require.NoError(b, err)
	return p
}

func (b *bench) read(p cuda.DevicePtr, n int) []byte {
	out := make([]byte, n)
	require.NoError(b, b.dev.Read(out, p))
	return out
}

func TestSimOrderAmongStreams(t *testing.T) {
	const n = 8 << 20
	// Without the wait the copy reads what was there before the fill: the order
	// does come from the fence.
	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered=%v", ordered), func(t *testing.T) {
			onSim(t, func(b *bench) {
				src, dst := b.alloc(n), b.alloc(n)
				batch := stream.NewBatch(b.reg)
				batch.Fill8(b.compute, src, 1, n)
				require.NoError(b, batch.Wait(b.gate, batch.Record(b.compute)))
				require.NoError(b, batch.Submit())
				batch.Reset()
				require.NoError(b, b.gate.Sync(bg))

				long, err := b.dev.Model("stream test: long")
				require.NoError(b, err)
				batch.Launch(b.compute, long, oneThread, 0) // a backlog
				batch.Fill8(b.compute, src, 3, n)
				f := batch.Record(b.compute)
				if ordered {
					require.NoError(b, batch.Wait(b.gate, f))
				}
				batch.Copy(b.gate, dst, src, n)
				g := batch.Record(b.gate)
				require.NoError(b, batch.Submit())
				require.NoError(b, g.Wait(bg))
				require.Equal(b, ordered, f.Done() && bytes.Equal(b.read(dst, n), bytes.Repeat([]byte{3}, n)))
			})
		})
	}
}

func TestSimThousandsOfFences(t *testing.T) {
	onSim(t, func(b *bench) {
		const n = 3000
		p := b.alloc(64)
		before := runtime.NumGoroutine()
		batch := stream.NewBatch(b.reg)
		var fences []event.Fence
		var order []kv.Seq
		for len(fences) < n {
			batch.Reset()
			for range 100 {
				batch.Fill8(b.compute, p, 1, 64)
				f := batch.Record(b.compute)
				f.OnDone(func(err error) {
					require.NoError(b, err)
					order = append(order, f.Point().Seq)
				})
				fences = append(fences, f)
			}
			require.NoError(b, batch.Submit())
		}
		require.NoError(b, fences[n-1].Wait(bg))
		require.LessOrEqual(b, runtime.NumGoroutine(), before+1)
		for i, f := range fences {
			require.True(b, f.Done())
			require.Equal(b, kv.Seq(i+1), order[i])
		}
	})
}

func TestSimWaitersOnManyActors(t *testing.T) {
	onSim(t, func(b *bench) {
		p := b.alloc(1 << 20)
		clk := b.reg.Clock()
		var left atomic.Int32
		var failed atomic.Int32
		for i := range 8 {
			left.Add(1)
			s := []*stream.Stream{b.compute, b.gate}[i%2]
			batch := stream.NewBatch(b.reg)
			batch.Fill8(s, p, byte(i), 1<<20)
			f := batch.Record(s)
			require.NoError(b, batch.Submit())
			clk.Go(fmt.Sprint("waiter ", i), func() {
				if f.Wait(bg) != nil || !f.Done() {
					failed.Add(1)
				}
				left.Add(-1)
				clk.Notify()
			})
		}
		require.NoError(b, clk.WaitUntil(bg, clock.Func("waiters", func() bool { return left.Load() == 0 }), clock.Never))
		require.Zero(b, failed.Load())
	})
}

// Actors that submit on the same registry at the same time: each has a stream
// of its own, and virtual time does not stop.
func TestSimSubmittersOnManyActors(t *testing.T) {
	onSim(t, func(b *bench) {
		p := b.alloc(4096)
		clk := b.reg.Clock()
		var left atomic.Int32
		errs := make([]error, 4)
		for i := range errs {
			left.Add(1)
			clk.Go(fmt.Sprint("submitter ", i), func() {
				errs[i] = submitter(b.reg, p)
				left.Add(-1)
				clk.Notify()
			})
		}
		require.NoError(b, clk.WaitUntil(bg, clock.Func("submitters", func() bool { return left.Load() == 0 }), clock.Never))
		require.NoError(b, errors.Join(errs...))
	})
}

func submitter(reg *event.Registry, p cuda.DevicePtr) error {
	s, err := stream.New(reg, cuda.StreamOptions{Name: "own"})
	if err != nil {
		return err
	}
	batch := stream.NewBatch(reg)
	for i := range 50 {
		batch.Reset()
		batch.Fill8(s, p, 1, 4096)
		f := batch.Record(s)
		if err := batch.Submit(); err != nil {
			return err
		}
		if i%10 == 0 {
			if err := f.Wait(bg); err != nil {
				return err
			}
		}
	}
	if err := s.Sync(bg); err != nil {
		return err
	}
	return s.Close()
}

func init() {
	sim.RegisterModel("stream test: trap", func(k *sim.ModelLaunch) error {
		k.Time = 100 * time.Microsecond
		k.Step = func(*sim.Memory, int) error { return errors.New("trapped on purpose") }
		return nil
	})
	// Longer than a loaded machine takes over a few calls, for tests on the wall
	// clock of what goes wrong without an order.
	sim.RegisterModel("stream test: long", func(k *sim.ModelLaunch) error {
		k.Time = 30 * time.Millisecond
		return nil
	})
	sim.RegisterModel("stream test: busy", func(k *sim.ModelLaunch) error {
		k.Time = time.Millisecond
		return nil
	})
}

var oneThread = cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}

func TestSimDeathWakesEveryone(t *testing.T) {
	onSim(t, func(b *bench) {
		trap, err := b.dev.Model("stream test: trap")
		require.NoError(b, err)
		busy, err := b.dev.Model("stream test: busy")
		require.NoError(b, err)
		batch := stream.NewBatch(b.reg)
		batch.Launch(b.compute, busy, oneThread, 0)
		batch.Launch(b.compute, busy, oneThread, 0)
		slow := batch.Record(b.compute)
		batch.Launch(b.gate, trap, oneThread, 0)
		f := batch.Record(b.gate)
		// On the wall clock the trap may come while Submit is still at work.
		if err := batch.Submit(); err != nil {
			require.True(b, cuda.Sticky(err), "%v", err)
		}
		var told []error
		for range 10 {
			slow.OnDone(func(err error) { told = append(told, err) })
		}
		first := f.Wait(bg)
		require.Equal(b, first, b.reg.Err())
		require.True(b, cuda.Sticky(first), "%v", first)
		require.Equal(b, event.Dead, f.State())
		require.Len(b, told, 10)
		for _, err := range append(told, slow.Wait(bg), slow.Err(), b.reg.Err()) {
			require.Equal(b, first, err, "the first cause")
		}
		batch.Reset()
		batch.Record(b.compute)
		require.Equal(b, first, batch.Submit())
	})
}

// The simulator follows CUDA: an event never recorded counts as done. The fence
// does not.
func TestSimNeverRecorded(t *testing.T) {
	onSim(t, func(b *bench) {
		busy, err := b.dev.Model("stream test: busy")
		require.NoError(b, err)
		batch := stream.NewBatch(b.reg)
		batch.Launch(b.compute, busy, oneThread, 0)
		f := batch.Record(b.compute)
		e := cuda.Event(batch.Raw().Commands()[1].A)
		marks := []cuda.Mark{{Event: e}}
		require.NoError(b, b.dev.Poll(marks))
		require.Equal(b, cuda.MarkFired, marks[0].State)
		require.False(b, f.Done())
		require.ErrorIs(b, stream.NewBatch(b.reg).Wait(b.gate, f), cuda.ErrNotRecorded)

		// A launch that the device refuses takes the record with it.
		batch.Reset()
		batch.Launch(b.compute, busy, cuda.Geometry{}, 0)
		lost := batch.Record(b.compute)
		require.ErrorIs(b, batch.Submit(), cuda.ErrInvalidValue)
		_, err = b.reg.Poll()
		require.NoError(b, err)
		require.ErrorIs(b, lost.Wait(bg), cuda.ErrNotRecorded)
		require.False(b, lost.Done())
	})
}

// A wait for a fence that nobody submits stops virtual time, which says so.
func TestSimDeadlockIsNamed(t *testing.T) {
	dev, err := sim.New(sim.Options{})
	require.NoError(t, err)
	reg := event.NewRegistry(dev)
	s, err := stream.New(reg, cuda.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	f := stream.NewBatch(reg).Record(s)
	err = f.Wait(bg)
	var dead *vtime.DeadlockError
	require.ErrorAs(t, err, &dead)
	require.Contains(t, dead.Report, fmt.Sprintf("mark 1 of timeline %d (compute), created", s.ID()))
	require.NoError(t, dev.Close())
	require.NoError(t, reg.Close())
	require.NoError(t, s.Close())
}

// The default streams, by any of their handles, take no work: nothing relies on
// an order with them.
func TestSimDefaultStreamsAreRefused(t *testing.T) {
	onSim(t, func(b *bench) {
		p := b.alloc(64)
		for h := range cuda.Stream(3) {
			batch := stream.NewBatch(b.reg)
			batch.Raw().Fill8(h, p, 0, 64)
			require.ErrorIs(b, batch.Submit(), cuda.ErrInvalidHandle)
			_, err := stream.Adopt(b.reg, h, "default")
			require.ErrorIs(b, err, cuda.ErrInvalidHandle)
		}
		_, err := b.reg.NewTimeline("default", 0)
		require.ErrorIs(b, err, cuda.ErrInvalidHandle)
	})
}

// New capacity is zeroed on one stream and used on another that is busy with
// other things first: the fence of the zeroing is what publishes it.
func TestSimGrowthIsPublishedByFence(t *testing.T) {
	const n = 4 << 20
	for _, published := range []bool{true, false} {
		t.Run(fmt.Sprintf("published=%v", published), func(t *testing.T) {
			onSim(t, func(b *bench) {
				long, err := b.dev.Model("stream test: long")
				require.NoError(b, err)
				p := b.alloc(n)
				batch := stream.NewBatch(b.reg)
				batch.Launch(b.gate, long, oneThread, 0) // delays the zeroing
				batch.Fill8(b.gate, p, 0, n)
				zeroed := batch.Record(b.gate)
				require.NoError(b, batch.Submit())

				batch.Reset()
				if published {
					require.NoError(b, batch.Wait(b.compute, zeroed))
				}
				batch.Fill8(b.compute, p, 7, n)
				require.NoError(b, batch.Submit())
				require.NoError(b, b.compute.Sync(bg))
				require.NoError(b, b.gate.Sync(bg))
				require.Equal(b, published, bytes.Equal(b.read(p, n), bytes.Repeat([]byte{7}, n)))
			})
		})
	}
}

func TestSimAdoption(t *testing.T) {
	onSim(t, func(b *bench) {
		busy, err := b.dev.Model("stream test: busy")
		require.NoError(b, err)
		h, err := b.dev.NewStream(cuda.StreamOptions{Name: "engine"})
		require.NoError(b, err)
		e, err := b.dev.NewEvent()
		require.NoError(b, err)
		var raw cuda.Batch
		raw.Launch(h, busy, oneThread, 0)
		raw.Record(h, e)
		require.NoError(b, b.dev.Submit(&raw))

		f, err := stream.AdoptEvent(b.gate, e)
		require.NoError(b, err)
		s, err := stream.Adopt(b.reg, h, "engine")
		require.NoError(b, err)
		require.False(b, f.Done())
		raw.Reset()
		raw.Launch(h, busy, oneThread, 0)
		raw.Record(h, e) // again: the fence is about the first record
		require.NoError(b, b.dev.Submit(&raw))
		last, err := s.Mark()
		require.NoError(b, err)
		require.NoError(b, f.Wait(bg))
		if b.reg.Clock().Virtual() {
			require.False(b, last.Done())
		}
		require.NoError(b, last.Wait(bg))
		require.NoError(b, s.Close())
		require.NoError(b, b.dev.DestroyStream(h))
	})
}

// Same seed, same order: two runs fire the same marks at the same instants.
func TestSimReplay(t *testing.T) {
	run := func() (out []string) {
		dev, err := sim.New(sim.Options{Seed: 7})
		require.NoError(t, err)
		reg := event.NewRegistry(dev)
		var ss []*stream.Stream
		for _, n := range []string{"a", "b", "c"} {
			s, err := stream.New(reg, cuda.StreamOptions{Name: n})
			require.NoError(t, err)
			ss = append(ss, s)
		}
		p, err := dev.Alloc(1<<20, cuda.AllocOptions{})
		require.NoError(t, err)
		batch := stream.NewBatch(reg)
		for i := range 30 {
			batch.Reset()
			s := ss[i%3]
			batch.Fill8(s, p, 1, 1<<20)
			batch.Record(s).OnDone(func(err error) {
				out = append(out, fmt.Sprint(i, reg.Clock().Now(), err))
			})
			require.NoError(t, batch.Submit())
		}
		for _, s := range ss {
			require.NoError(t, s.Sync(bg))
			require.NoError(t, s.Close())
		}
		require.NoError(t, reg.Close())
		require.NoError(t, dev.Close())
		return out
	}
	first := run()
	require.Len(t, first, 30)
	require.Equal(t, first, run())
}
