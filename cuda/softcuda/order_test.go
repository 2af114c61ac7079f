//go:build cgo && linux

package softcuda_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/internal/engine"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/stream"
)

// An engine whose work is in the legacy default stream, by either of its names,
// hands that over. What the library does is on non-blocking streams, has an
// order with the engine's work where marks make one, and elsewhere none.
func TestAdoptedLegacyStream(t *testing.T) {
	for name, raw := range map[string]uint64{"0": 0, "CU_STREAM_LEGACY": 1} {
		t.Run(name, func(t *testing.T) {
			e, ctx := newEngine(t)
			d := adopt(t, ctx)
			h, err := d.AdoptStream(driver.RawStream(raw))
			require.NoError(t, err)
			reg := event.NewRegistry(d)
			compute, err := stream.Adopt(reg, h, "the engine's")
			require.NoError(t, err)
			own, err := stream.New(reg, cuda.StreamOptions{})
			require.NoError(t, err)
			p, err := d.Alloc(32<<20, cuda.AllocOptions{})
			require.NoError(t, err)
			q, err := d.Alloc(64, cuda.AllocOptions{})
			require.NoError(t, err)

			release, _ := cudatest.Hold(t, d, h)
			b := stream.NewBatch(reg)
			for i := range uint32(4) {
				b.Fill32(compute, p, i+1, 8<<20)
			}
			theirs := b.Record(compute)
			b.Fill8(own, q, 7, 64)
			ours := b.Record(own)
			require.NoError(t, b.Submit())
			require.NoError(t, ours.Wait(bg))
			require.False(t, theirs.Done(), "what is on our stream waited for the legacy stream")
			release()
			b.Reset()
			require.NoError(t, b.Wait(own, theirs))
			b.Copy(own, q, p+32<<20-64, 64)
			require.NoError(t, b.Submit())
			require.NoError(t, own.Sync(bg))
			got := make([]byte, 4)
			require.NoError(t, d.Read(got, q))
			require.Equal(t, []byte{4, 0, 0, 0}, got)

			// A blocking stream of the engine's follows what was put into the
			// adopted one.
			blocking, err := e.NewStream(0)
			require.NoError(t, err)
			x, err := e.NewEvent()
			require.NoError(t, err)
			release, _ = cudatest.Hold(t, d, h)
			b.Reset()
			b.Fill32(compute, p, 9, 8<<20)
			last := b.Record(compute)
			require.NoError(t, b.Submit())
			require.NoError(t, e.Record(x, blocking))
			require.ErrorIs(t, e.Query(x), cuda.ErrNotReady)
			release()
			require.NoError(t, last.Wait(bg))
			require.NoError(t, e.Synchronize())
			require.NoError(t, e.Query(x))

			require.NoError(t, compute.Close())
			require.NoError(t, own.Close())
			require.NoError(t, reg.Close())
			require.NoError(t, d.DestroyStream(h))
			require.NoError(t, e.Record(x, raw), "the stream is the engine's still")
		})
	}
}

// A C function of the caller's is called with its argument, and is not called
// after an error.
func TestHostFuncOfTheCallers(t *testing.T) {
	d, soft := open(t, sim.Options{Real: true})
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	_, err = d.NewHostFunc(nil)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	stamps := []engine.Stamp{engine.NewStamp(nil), engine.NewStamp(nil)}
	for _, x := range stamps {
		defer x.Free()
	}
	f, err := d.NewHostFunc(stamps[0].Func())
	require.NoError(t, err)
	_, err = d.SignalCount(f)
	require.ErrorIs(t, err, cuda.ErrInvalidValue, "nobody counts its calls")
	var b cuda.Batch
	for i := range 5 {
		b.Signal(s, f, uint64(uintptr(stamps[i%2].Arg())))
	}
	require.NoError(t, d.Submit(&b))
	require.NoError(t, d.SyncStream(bg, s))
	require.Equal(t, []int64{3, 2}, []int64{stamps[0].Calls(), stamps[1].Calls()})
	require.NoError(t, d.Submit(&b))
	require.NoError(t, soft.Sim().Kill(cuda.ErrIllegalAddress, "a test"))
	calls := stamps[0].Calls() + stamps[1].Calls()
	require.ErrorIs(t, d.SyncStream(bg, s), cuda.ErrIllegalAddress)
	require.NoError(t, d.Clock().Sleep(bg, 5*time.Millisecond))
	require.LessOrEqual(t, stamps[0].Calls()+stamps[1].Calls(), calls+1, "one may have been under way")
}

// A signal tells a device that is watched, by whatever means that is, and those
// that are still to come when the device is closed find what they count in.
func TestSignalsMoveAWatchedDevice(t *testing.T) {
	for _, source := range sources {
		t.Run(source.String(), func(t *testing.T) {
			e, ctx := newEngineOf(t, sim.Options{Real: true})
			d := adopt(t, ctx)
			w, err := d.Watch(source)
			require.NoError(t, err)
			raw, err := e.NewStream(1)
			require.NoError(t, err)
			s, err := d.AdoptStream(driver.RawStream(raw))
			require.NoError(t, err)
			f, err := w.NewSignal()
			require.NoError(t, err)
			before := w.Activity()
			var b cuda.Batch
			b.Signal(s, f, 0)
			require.NoError(t, w.Submit(&b))
			for end := d.Clock().Now() + 10*time.Second; w.Activity() == before; {
				require.Less(t, d.Clock().Now(), end)
				require.NoError(t, d.Clock().Sleep(bg, 10*time.Microsecond))
			}
			n, err := w.SignalCount(f)
			require.NoError(t, err)
			require.Equal(t, uint64(1), n)
			b.Reset()
			for range 50 {
				b.Signal(s, f, 0)
			}
			require.NoError(t, w.Submit(&b))
			require.NoError(t, d.Close())
			_, err = d.SignalCount(f)
			require.ErrorIs(t, err, cuda.ErrClosed)
			require.NoError(t, e.Synchronize())
		})
	}
}

// Priorities and limits of resources are the device's own: they reach through
// the driver's interface as they are.
func TestPrioritiesThroughTheDriver(t *testing.T) {
	costs := sim.DefaultCosts()
	costs.ResidentGrids = 1
	// A launch can't start before its latency has passed since the call. Without
	// one, the order of the launches does not depend on how long the host takes
	// between the calls, but only on the event for which all of them wait.
	costs.LaunchLatency = 0
	var mu sync.Mutex
	var order []string
	d, _ := open(t, sim.Options{Real: true, Slow: 200, Costs: &costs, Registers: map[string]int{"copy_words": 128},
		Ran: func(x sim.Ran) {
			mu.Lock()
			order = append(order, x.What+" on "+x.Stream)
			mu.Unlock()
		}})
	image, err := os.ReadFile(filepath.Join(testutil.Root(t), "cuda/cudatest/testdata/behaviours.ptx"))
	require.NoError(t, err)
	m, err := d.LoadModule(image)
	require.NoError(t, err)
	f, err := d.Function(m, "fill_index")
	require.NoError(t, err)
	p, err := d.Alloc(4<<10, cuda.AllocOptions{})
	require.NoError(t, err)
	// All of them wait for one event, so that they are ready at one moment.
	held, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	word, err := d.AllocPinned(4, cuda.AllocOptions{})
	require.NoError(t, err)
	word.Word(0).Store(0)
	start, err := d.NewEvent()
	require.NoError(t, err)
	var b cuda.Batch
	b.WaitWord(held, word.Device, 1)
	b.Record(held, start)
	for _, priority := range []int{0, 0, -2, -5} {
		s, err := d.NewStream(cuda.StreamOptions{Priority: priority})
		require.NoError(t, err)
		b.WaitEvent(s, start)
		a := b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{8, 1, 1}, Block: [3]uint16{128, 1, 1}}, 16)
		binary.NativeEndian.PutUint64(a, uint64(p))
		binary.NativeEndian.PutUint32(a[8:], 1<<10)
	}
	require.NoError(t, d.Submit(&b))
	word.Word(0).Store(1)
	require.NoError(t, d.Sync(bg))
	mu.Lock()
	require.Len(t, order, 4)
	for _, x := range order {
		require.Contains(t, x, "fill_index on ")
	}
	// Streams have no names here; their handles grow.
	require.Less(t, order[0], order[3], "the first runs, and the last of the least priority comes last")
	require.Greater(t, order[1], order[2], "of those that wait the greatest priority is first")
	require.Greater(t, order[2], order[3])
	mu.Unlock()

	f, err = d.Function(m, "copy_words")
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	for threads, want := range map[uint16]error{512: nil, 513: cuda.ErrLaunchResources, 1025: cuda.ErrInvalidValue} {
		b.Reset()
		b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{threads, 1, 1}}, 20)
		err := d.Submit(&b)
		if want == nil {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, want, "%d threads", threads)
	}
	require.NoError(t, d.SyncStream(bg, s), "no such error is sticky")
}
