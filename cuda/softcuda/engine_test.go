//go:build cgo && linux

package softcuda_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/internal/engine"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/stream"
)

var bg = context.Background()

// newEngine makes CUDA code of somebody else's, with a context of its own,
// current on the test's thread.
func newEngine(t *testing.T) (engine.Engine, uint64) { return newEngineOf(t, sim.Options{Real: true}) }

func newEngineOf(t *testing.T, o sim.Options) (engine.Engine, uint64) {
	t.Helper()
	soft := add(t, o)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	e := engine.Engine{Lib: softcuda.Library{}}
	require.NoError(t, e.Init())
	ctx, err := e.NewContext(soft.Ordinal())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.SetCurrent(0)) })
	return e, ctx
}

func adopt(t *testing.T, ctx uint64) *driver.Device {
	t.Helper()
	d, err := driver.Adopt(driver.Context(ctx), driver.Options{Library: softcuda.Library{}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// each calls every method of a device but Sync, which CUDA forbids while a
// stream of the context is captured.
func each(t *testing.T, d *driver.Device, check func(after string)) {
	t.Helper()
	ok := func(what string, err error) {
		t.Helper()
		require.NoError(t, err, what)
		check(what)
	}
	p, err := d.Alloc(64, cuda.AllocOptions{})
	ok("Alloc", err)
	h, err := d.AllocPinned(64, cuda.AllocOptions{})
	ok("AllocPinned", err)
	s, err := d.NewStream(cuda.StreamOptions{})
	ok("NewStream", err)
	e, err := d.NewEvent()
	ok("NewEvent", err)
	_, _, err = d.AllocRange(p)
	ok("AllocRange", err)
	var b cuda.Batch
	b.Fill8(s, p, 1, 64)
	b.Record(s, e)
	ok("Submit", d.Submit(&b))
	b.Record(s, 0xdead)
	require.Error(t, d.Submit(&b))
	check("Submit that fails")
	ok("Poll", d.Poll([]cuda.Mark{{Event: e}}))
	require.Error(t, d.Poll([]cuda.Mark{{Event: 1}}))
	check("Poll that fails")
	ok("SyncStream", d.SyncStream(bg, s))
	ok("Read", d.Read(make([]byte, 64), p))
	ok("Write", d.Write(p, make([]byte, 64)))
	ok("DestroyEvent", d.DestroyEvent(e))
	ok("DestroyStream", d.DestroyStream(s))
	ok("Free", d.Free(p))
	ok("FreePinned", d.FreePinned(h))
}

func TestThreadIsLeftAsItWas(t *testing.T) {
	e, ctx := newEngine(t)
	d, _ := open(t, sim.Options{Real: true}) // another context
	for name, want := range map[string]uint64{"context of the engine's": ctx, "no context": 0} {
		require.NoError(t, e.SetCurrent(want))
		for mode := range 3 {
			_, err := e.ExchangeMode(mode)
			require.NoError(t, err)
			each(t, d, func(after string) {
				t.Helper()
				got, err := e.Current()
				require.NoError(t, err)
				require.Equal(t, want, got, "%s after %s", name, after)
				was, err := e.ExchangeMode(mode)
				require.NoError(t, err)
				require.Equal(t, mode, was, "capture mode after %s", after)
			})
			require.NoError(t, d.Sync(bg))
		}
		require.NoError(t, e.SetCurrent(ctx))
		_, err := e.ExchangeMode(0)
		require.NoError(t, err)
	}
}

func TestAdoptedContext(t *testing.T) {
	e, ctx := newEngine(t)
	d := adopt(t, ctx)
	require.Equal(t, driver.Context(ctx), d.Context())
	each(t, d, func(string) {})
	require.NoError(t, d.Close())
	require.NoError(t, e.Synchronize(), "the context is the engine's still")
	_, err := driver.Adopt(0, driver.Options{Library: softcuda.Library{}})
	require.ErrorIs(t, err, cuda.ErrInvalidContext)
	_, err = driver.Adopt(0x4711, driver.Options{Library: softcuda.Library{}})
	require.ErrorIs(t, err, cuda.ErrInvalidContext)
}

func TestAdoptedStream(t *testing.T) {
	e, ctx := newEngine(t)
	d := adopt(t, ctx)
	_, err := d.AdoptStream(2)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle, "the per-thread one")
	raw, err := e.NewStream(1)
	require.NoError(t, err)
	h, err := d.AdoptStream(driver.RawStream(raw))
	require.NoError(t, err)
	reg := event.NewRegistry(d)
	s, err := stream.Adopt(reg, h, "the engine's")
	require.NoError(t, err)
	require.NoError(t, s.Sync(bg))
	require.NoError(t, s.Close())
	require.NoError(t, reg.Close())

	// An event that the engine recorded is waited for.
	x, err := e.NewEvent()
	require.NoError(t, err)
	require.NoError(t, e.Record(x, raw))
	adopted, err := d.AdoptEvent(driver.RawEvent(x))
	require.NoError(t, err)
	_, err = d.AdoptEvent(0)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	own, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	var b cuda.Batch
	b.WaitEvent(own, adopted)
	require.NoError(t, d.Submit(&b))
	require.NoError(t, d.SyncStream(bg, own))
	require.NoError(t, d.DestroyEvent(adopted))
	require.NoError(t, e.Query(x), "it is the engine's still")

	require.NoError(t, d.DestroyStream(h))
	require.ErrorIs(t, d.SyncStream(bg, h), cuda.ErrInvalidHandle)
	require.NoError(t, e.Record(x, raw), "the stream is the engine's still")
}

func TestStreamOfAnotherContext(t *testing.T) {
	_, ctx := newEngine(t)
	d := adopt(t, ctx)
	other := add(t, sim.Options{Real: true})
	e := engine.Engine{Lib: softcuda.Library{}}
	theirs, err := e.NewContext(other.Ordinal())
	require.NoError(t, err)
	raw, err := e.NewStream(1)
	require.NoError(t, err)
	_, err = d.AdoptStream(driver.RawStream(raw))
	require.ErrorIs(t, err, cuda.ErrInvalidContext)
	require.NoError(t, e.DestroyContext(theirs))
	require.NoError(t, e.SetCurrent(ctx))
}

// A capture of the engine's is neither disturbed nor does it disturb: work is
// not put into its stream, and on others it goes on.
func TestCapture(t *testing.T) {
	e, ctx := newEngine(t)
	d := adopt(t, ctx)
	raw, err := e.NewStream(1)
	require.NoError(t, err)
	h, err := d.AdoptStream(driver.RawStream(raw))
	require.NoError(t, err)
	x, err := d.NewEvent()
	require.NoError(t, err)
	own, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)

	const global = 0
	require.NoError(t, e.BeginCapture(raw, global))
	require.ErrorIs(t, e.Synchronize(), cuda.ErrStreamCapturing, "the rule holds for code that does not know better")
	require.ErrorIs(t, e.EndCapture(raw), cuda.ErrCaptureInvalid, "and its call has spoiled the capture")
	require.NoError(t, e.BeginCapture(raw, global))
	each(t, d, func(string) {})
	var b cuda.Batch
	b.Record(own, x)
	b.Record(h, x)
	var se *cuda.SubmitError
	err = d.Submit(&b)
	require.ErrorAs(t, err, &se)
	require.ErrorIs(t, err, cuda.ErrStreamCapturing)
	require.Equal(t, []int{0, 0}, se.Done, "nothing of the batch is in")
	require.ErrorIs(t, d.SyncStream(bg, h), cuda.ErrStreamCapturing)
	require.ErrorIs(t, d.BeginCapture(h, cuda.CaptureRelaxed), cuda.ErrNotPermitted, "its captures are the engine's")
	_, err = d.EndCapture(h)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	status, err := d.CaptureStatus(h)
	require.NoError(t, err)
	require.Equal(t, cuda.CaptureActive, status)
	require.NoError(t, e.EndCapture(raw), "nothing of all that has spoiled it")
	require.NoError(t, d.Submit(&b))
	require.NoError(t, d.SyncStream(bg, h))

	require.NoError(t, e.BeginCapture(raw, global))
	require.ErrorIs(t, d.Sync(bg), cuda.ErrStreamCapturing)
	require.ErrorIs(t, e.EndCapture(raw), cuda.ErrCaptureInvalid)
	require.NoError(t, d.Sync(bg))
}
