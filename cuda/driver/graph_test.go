//go:build cgo && linux

package driver_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/internal/abi/clib"
)

// A driver without one of the symbols says which, before anything is captured.
func TestGraphsNeedTheirSymbols(t *testing.T) {
	begin := func(d *driver.Device, symbol string) {
		s, err := d.NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		err = d.BeginCapture(s, cuda.CaptureRelaxed)
		require.ErrorIs(t, err, cuda.ErrNotSupported)
		require.ErrorContains(t, err, symbol)
	}
	d, err := driver.Open(driver.Options{Path: library(t, clib.NoOp, "KVG_WITHOUT_cuGraphInstantiateWithFlags")})
	require.NoError(t, err)
	begin(d, "cuGraphInstantiateWithFlags")
	require.NoError(t, d.Close())
	for _, symbol := range []string{"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphLaunch", "cuGraphDestroy", "cuGraphExecDestroy"} {
		d, err := openSoft(t, sim.Options{Real: true}, symbol)
		require.NoError(t, err)
		begin(d, symbol)
	}
	d, err = openSoft(t, sim.Options{Real: true}, "cuGraphGetNodes")
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, d.BeginCapture(s, cuda.CaptureRelaxed))
	g, err := d.EndCapture(s)
	require.NoError(t, err)
	_, err = d.GraphSize(g)
	require.ErrorIs(t, err, cuda.ErrNotSupported)
	require.ErrorContains(t, err, "cuGraphGetNodes")
	d, err = openSoft(t, sim.Options{Real: true}, "cuGraphLaunch")
	require.NoError(t, err)
	s, err = d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	var b cuda.Batch
	b.LaunchGraph(s, 1)
	err = d.Submit(&b)
	require.ErrorIs(t, err, cuda.ErrNotSupported)
	require.ErrorContains(t, err, "cuGraphLaunch")
}

func capture(t testing.TB, d *driver.Device, s cuda.Stream, build func(b *cuda.Batch)) cuda.GraphExec {
	t.Helper()
	require.NoError(t, d.BeginCapture(s, cuda.CaptureRelaxed))
	var b cuda.Batch
	build(&b)
	require.NoError(t, d.Submit(&b))
	g, err := d.EndCapture(s)
	require.NoError(t, err)
	x, err := d.Instantiate(g)
	require.NoError(t, err)
	require.NoError(t, d.DestroyGraph(g))
	return x
}

// What tells of a mark is not captured with it: launched again, it would tell
// of marks that are long gone.
func TestCapturedMarksAreNotWatched(t *testing.T) {
	for _, source := range []driver.Wake{driver.WakeHelper, driver.WakeHostFunc, driver.WakeWord} {
		t.Run(source.String(), func(t *testing.T) {
			d, err := openSoft(t, sim.Options{Real: true})
			require.NoError(t, err)
			w, err := d.Watch(source)
			require.NoError(t, err)
			s, err := w.NewStream(cuda.StreamOptions{})
			require.NoError(t, err)
			e, err := w.NewEvent()
			require.NoError(t, err)
			require.NoError(t, w.BeginCapture(s, cuda.CaptureRelaxed))
			var b cuda.Batch
			b.Record(s, e)
			require.NoError(t, w.Submit(&b))
			g, err := w.EndCapture(s)
			require.NoError(t, err)
			n, err := w.GraphSize(g)
			require.NoError(t, err)
			require.Zero(t, n)
			require.NoError(t, w.Submit(&b))
			require.NoError(t, w.SyncStream(context.Background(), s))
		})
	}
}

// A capture in another mode than relaxed ends in the thread that began it.
func TestCaptureEndsInItsThread(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, d.BeginCapture(s, cuda.CaptureThreadLocal))
	elsewhere := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_, err := d.EndCapture(s)
		elsewhere <- err
	}()
	require.ErrorIs(t, <-elsewhere, cuda.ErrCaptureThread)
	status, err := d.CaptureStatus(s)
	require.NoError(t, err)
	require.Equal(t, cuda.CaptureActive, status)
	_, err = d.EndCapture(s)
	require.NoError(t, err)
}

// What is left open is no obstacle to closing.
func TestCloseWithCaptures(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	p, err := d.Alloc(64, cuda.AllocOptions{})
	require.NoError(t, err)
	x := capture(t, d, s, func(b *cuda.Batch) { b.Fill8(s, p, 1, 64) })
	var b cuda.Batch
	b.LaunchGraph(s, x)
	require.NoError(t, d.Submit(&b))
	require.NoError(t, d.BeginCapture(s, cuda.CaptureRelaxed))
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.BeginCapture(s, cuda.CaptureRelaxed), cuda.ErrClosed)
}

// A step with a graph is one crossing and allocates nothing.
func TestGraphLaunchAllocatesNothing(t *testing.T) {
	d, err := driver.Open(driver.Options{Path: library(t, clib.NoOp)})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	var b cuda.Batch
	b.LaunchGraph(s, capture(t, d, s, func(b *cuda.Batch) {}))
	b.LaunchGraph(s, capture(t, d, s, func(b *cuda.Batch) {}))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if d.Submit(&b) != nil {
			t.Error("failed")
		}
	}))
}
