//go:build cgo && linux

package softcuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/internal/engine"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/stream"
)

var sources = []driver.Wake{driver.WakeHelper, driver.WakeHostFunc, driver.WakeWord}

// A fence of a stream that is busy for a while is waited for, and C code is
// told as well.
func TestWakeSources(t *testing.T) {
	for _, source := range sources {
		t.Run(source.String(), func(t *testing.T) {
			d, _ := open(t, sim.Options{Real: true, Slow: 50})
			w, err := d.Watch(source)
			require.NoError(t, err)
			_, err = d.Watch(source)
			require.ErrorIs(t, err, cuda.ErrIllegalState)
			stamp := engine.NewStamp(nil)
			defer stamp.Free()
			defer func() { require.NoError(t, d.Close()) }() // before the stamp goes
			require.ErrorIs(t, w.Hook(nil, nil), cuda.ErrInvalidValue)
			require.NoError(t, w.Hook(stamp.Func(), stamp.Arg()))
			require.ErrorIs(t, w.Hook(stamp.Func(), stamp.Arg()), cuda.ErrIllegalState)

			reg := event.NewRegistry(w)
			s, err := stream.New(reg, cuda.StreamOptions{})
			require.NoError(t, err)
			p, err := w.Alloc(8<<20, cuda.AllocOptions{})
			require.NoError(t, err)
			for range 20 {
				calls := stamp.Calls()
				b := stream.NewBatch(reg)
				b.Fill8(s, p, 1, 8<<20)
				f := b.Record(s)
				require.NoError(t, b.Submit())
				require.NoError(t, f.Wait(bg))
				b.Reset()
				for start := time.Now(); stamp.Calls() == calls; {
					require.Less(t, time.Since(start), time.Minute, "C code was not told")
				}
			}
			require.NoError(t, s.Close())
			require.NoError(t, reg.Close())
		})
	}
}

// After a device error host functions are not called and words stop: whoever
// waits is told all the same, although the work that it waits for never ends.
func TestWakeAfterDeviceError(t *testing.T) {
	for _, source := range sources {
		t.Run(source.String(), func(t *testing.T) {
			d, soft := open(t, sim.Options{Real: true})
			w, err := d.Watch(source)
			require.NoError(t, err)
			reg := event.NewRegistry(w)
			s, err := stream.New(reg, cuda.StreamOptions{})
			require.NoError(t, err)
			p, err := w.Alloc(64, cuda.AllocOptions{})
			require.NoError(t, err)
			cudatest.Hold(t, d, s.Handle())
			b := stream.NewBatch(reg)
			b.Fill8(s, p, 1, 64)
			f := b.Record(s)
			require.NoError(t, b.Submit())
			told := make(chan error, 1)
			go func() { told <- f.Wait(bg) }()
			require.NoError(t, soft.Sim().Kill(cuda.ErrIllegalAddress, "a test"))
			require.ErrorIs(t, <-told, cuda.ErrIllegalAddress)
			b.Reset()
			require.NoError(t, s.Close())
			require.NoError(t, reg.Close())
		})
	}
}

func TestWatchNeedsItsSymbol(t *testing.T) {
	d, _ := open(t, sim.Options{Real: true})
	_, err := d.Watch(0)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	_, err = d.Watch(9)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	require.NoError(t, d.Close())
	_, err = d.Watch(driver.WakeWord)
	require.ErrorIs(t, err, cuda.ErrClosed)
}

// A host function runs behind what is before it in its stream, may not call
// CUDA, and is not called after an error.
func TestHostFunctions(t *testing.T) {
	e, _ := newEngine(t)
	raw, err := e.NewStream(1)
	require.NoError(t, err)
	s := engine.NewStamp(e.Symbol("cuCtxSynchronize"))
	before := engine.Now()
	require.NoError(t, e.LaunchHostFunc(raw, s))
	require.NoError(t, e.Synchronize())
	require.EqualValues(t, 1, s.Calls())
	require.Greater(t, s.Last(), before)
	require.EqualValues(t, cuda.ErrNotPermitted, s.Result(), "a call from a host function")
	s.Free()
}

// Host functions that are still to come when the device is closed find what
// they touch.
func TestCloseWithHostFunctionsPending(t *testing.T) {
	e, ctx := newEngine(t)
	d := adopt(t, ctx)
	w, err := d.Watch(driver.WakeHostFunc)
	require.NoError(t, err)
	raw, err := e.NewStream(1)
	require.NoError(t, err)
	h, err := d.AdoptStream(driver.RawStream(raw))
	require.NoError(t, err)
	x, err := d.NewEvent()
	require.NoError(t, err)
	var b cuda.Batch
	for range 50 {
		b.Record(h, x)
	}
	require.NoError(t, w.Submit(&b))
	require.NoError(t, d.Close())
	require.NoError(t, e.Synchronize())
	require.NotEqual(t, w.Activity(), w.Activity(), "whoever looks is made to ask")
}
