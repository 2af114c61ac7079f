//go:build cgo && linux

package driver_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/sim"
)

// The wait that goes on after its caller has left still has its event.
func TestEventDestroyedUnderAWait(t *testing.T) {
	d, spy := openSpied(t, sim.Options{Real: true})
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	e, err := d.NewEventWithOptions(cuda.EventOptions{BlockingSync: true})
	require.NoError(t, err)
	release, _ := cudatest.Hold(t, d, s)
	var b cuda.Batch
	b.Record(s, e)
	require.NoError(t, d.Submit(&b))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left := make(chan error, 1)
	go func() { left <- d.SyncEvent(ctx, e) }()
	require.Eventually(t, func() bool { return len(spy.calls("cuEventSynchronize")) == 1 }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	require.NoError(t, d.DestroyEvent(e))
	require.ErrorIs(t, d.DestroyEvent(e), cuda.ErrInvalidHandle)
	require.Len(t, spy.calls("cuEventSynchronize", "cuEventDestroy_v2"), 1, "it is there")
	release()
	require.Eventually(t, func() bool { return len(spy.calls("cuEventDestroy_v2")) == 2 }, time.Minute, time.Millisecond, "it is gone")
	list := spy.calls("cuEventSynchronize", "cuEventDestroy_v2")
	raw := list[0].value
	require.Equal(t, []call{{"cuEventSynchronize", raw, false}, {"cuEventSynchronize", raw, true},
		{"cuEventDestroy_v2", raw, false}, {"cuEventDestroy_v2", raw, true}}, list)
}

// Flags whose absence a simulator does not show.
func TestFlagsOfCalls(t *testing.T) {
	d, spy := openSpied(t, sim.Options{Real: true})
	last := func(name string) uint64 {
		list := spy.calls(name)
		require.NotEmpty(t, list, name)
		return list[len(list)-1].value
	}
	word, err := d.AllocPinned(4, cuda.AllocOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 3, last("cuMemHostAlloc"), "PORTABLE, DEVICEMAP")
	_, err = d.NewEvent()
	require.NoError(t, err)
	require.EqualValues(t, 2, last("cuEventCreate"), "DISABLE_TIMING")
	_, err = d.NewEventWithOptions(cuda.EventOptions{BlockingSync: true})
	require.NoError(t, err)
	require.EqualValues(t, 3, last("cuEventCreate"), "DISABLE_TIMING, BLOCKING_SYNC")
	m, err := d.LoadModule(image(t))
	require.NoError(t, err)
	_, err = d.Function(m, "fill_index")
	require.NoError(t, err)
	require.Len(t, spy.calls("cuFuncLoad"), 2, "not at the first launch")
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	var b cuda.Batch
	clear(word.Host)
	b.WaitWordFlush(s, word.Device, 0)
	require.NoError(t, d.Submit(&b))
	require.EqualValues(t, 1<<30, last("cuStreamWaitValue32_v2"), "FLUSH")

	p, err := d.Alloc(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	spy.fail("cuPointerSetAttribute", 1)
	sync, err := d.PrepareRDMA(p, 4096)
	require.NoError(t, err)
	require.Equal(t, cuda.SyncContext, sync, "where the attribute is refused as a bad value")
}
