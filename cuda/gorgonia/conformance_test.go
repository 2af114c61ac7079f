//go:build gorgonia

package gorgonia_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/gorgonia"
	"github.com/kvgate/kvgate/cuda/softcuda"
	_ "github.com/kvgate/kvgate/cuda/softcuda/canonical" // stands for libcuda
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/stream"
)

// Tests make contexts on device 0, which is slow, so that work is still pending
// when a busy machine gets round to asking after it. Each has to be on its own:
// the contexts of a simulated device die together.
func TestMain(m *testing.M) {
	if os.Getenv("KVGATE_SOFT_SLOW") == "" {
		panic("run these tests through ./build.sh gorgonia, which sets the device up")
	}
	os.Exit(m.Run())
}

func newContext(t *testing.T) cu.CUContext {
	ctx, err := cu.Device(0).MakeContext(cu.SchedAuto)
	require.NoError(t, err)
	_, err = cu.PopCurrentCtx()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ctx.Destroy()) })
	return ctx
}

func TestConformance(t *testing.T) {
	cudatest.Run(t, func(t *testing.T) cuda.Device {
		d, err := gorgonia.Wrap(0, newContext(t))
		require.NoError(t, err)
		return d
	})
}

// An engine on gorgonia.org/cu hands what it has to the driver, and the gate's
// packages work on it.
func TestHandlesForTheDriver(t *testing.T) {
	ctx := newContext(t)
	require.NoError(t, cu.PushCurrentCtx(ctx))
	s, err := cu.MakeStream(cu.NonBlocking)
	require.NoError(t, err)
	e, err := cu.MakeEvent(cu.DisableTiming)
	require.NoError(t, err)
	p, err := cu.MemAlloc(4096)
	require.NoError(t, err)
	require.NoError(t, cu.MemsetD8Async(p, 7, 4096, s))
	require.NoError(t, e.Record(s))
	_, err = cu.PopCurrentCtx()
	require.NoError(t, err)

	d, err := driver.Adopt(gorgonia.RawContext(ctx), driver.Options{Library: softcuda.Library{}})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	h, err := d.AdoptStream(gorgonia.RawStream(s))
	require.NoError(t, err)
	x, err := d.AdoptEvent(gorgonia.RawEvent(e))
	require.NoError(t, err)
	reg := event.NewRegistry(d)
	compute, err := stream.Adopt(reg, h, "the engine's")
	require.NoError(t, err)
	join, err := stream.New(reg, cuda.StreamOptions{})
	require.NoError(t, err)
	f, err := stream.AdoptEvent(join, x)
	require.NoError(t, err)
	require.NoError(t, f.Wait(context.Background()))
	got := make([]byte, 4096)
	require.NoError(t, d.Read(got, gorgonia.Pointer(p)))
	require.Equal(t, byte(7), got[4095])
	require.NoError(t, compute.Sync(context.Background()))
	for _, c := range []*stream.Stream{compute, join} {
		require.NoError(t, c.Close())
	}
	require.NoError(t, reg.Close())
}
