package noopdev

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

func TestSignals(t *testing.T) {
	d := New(Options{Hold: true})
	s, err := d.LegacyStream()
	require.NoError(t, err)
	f, err := d.NewSignal()
	require.NoError(t, err)
	other, err := d.NewSignal()
	require.NoError(t, err)
	var b cuda.Batch
	b.Signal(s, f, 0)
	b.Signal(s, f, 0)
	require.NoError(t, d.Submit(&b))
	for h, want := range map[cuda.HostFunc]uint64{f: 2, other: 0} {
		n, err := d.SignalCount(h)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	require.NoError(t, d.DestroyHostFunc(f))
	for _, h := range []cuda.HostFunc{0, f, other + 1} {
		require.ErrorIs(t, d.DestroyHostFunc(h), cuda.ErrInvalidHandle)
		_, err := d.SignalCount(h)
		require.ErrorIs(t, err, cuda.ErrInvalidHandle)
		b.Reset()
		b.Signal(s, h, 0)
		require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidHandle)
	}
}

func TestSyncEvent(t *testing.T) {
	d := New(Options{Hold: true})
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	e, err := d.NewEventWithOptions(cuda.EventOptions{BlockingSync: true})
	require.NoError(t, err)
	require.NoError(t, d.SyncEvent(context.Background(), e), "never recorded")
	var b cuda.Batch
	b.Record(s, e)
	require.NoError(t, d.Submit(&b))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, d.SyncEvent(ctx, e), context.Canceled, "held")
	require.Equal(t, 1, d.FireAll())
	require.NoError(t, d.SyncEvent(context.Background(), e))
	require.ErrorIs(t, d.SyncEvent(context.Background(), e+1), cuda.ErrInvalidHandle)
	b.Reset()
	b.Record(s, e)
	require.NoError(t, d.Submit(&b))
	d.Kill(cuda.ErrECC)
	require.ErrorIs(t, d.SyncEvent(context.Background(), e), cuda.ErrECC)
}

func TestLimits(t *testing.T) {
	d := New(Options{})
	most := d.Info().SharedOptIn
	require.NoError(t, d.AllowShared(1, most))
	require.ErrorIs(t, d.AllowShared(1, most+1), cuda.ErrInvalidValue)
	s, err := d.NewStream(cuda.StreamOptions{Priority: -3})
	require.NoError(t, err)
	got, err := d.StreamPriority(s)
	require.NoError(t, err)
	require.Zero(t, got)
	_, err = d.StreamPriority(1)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
}
