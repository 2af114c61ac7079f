package stream_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/stream"
)

// A stream that is being captured is refused, when it is adopted and in each
// batch, with nothing of the batch submitted; the capture is none the worse.
func TestCapturingStreamsAreRefused(t *testing.T) {
	onSim(t, func(b *bench) {
		h, err := b.dev.NewStream(cuda.StreamOptions{Name: "engine"})
		require.NoError(b, err)
		require.NoError(b, b.dev.BeginCapture(h, cuda.CaptureGlobal))
		_, err = stream.Adopt(b.reg, h, "engine")
		require.ErrorIs(b, err, cuda.ErrStreamCapturing)
		g, err := b.dev.EndCapture(h)
		require.NoError(b, err)
		n, err := b.dev.GraphSize(g)
		require.NoError(b, err)
		require.Zero(b, n)

		s, err := stream.Adopt(b.reg, h, "engine")
		require.NoError(b, err)
		p := b.alloc(64)
		require.NoError(b, b.dev.Write(p, make([]byte, 64)))
		require.NoError(b, b.dev.BeginCapture(h, cuda.CaptureGlobal))
		batch := stream.NewBatch(b.reg)
		batch.Fill8(b.gate, p, 1, 64)
		batch.Fill8(s, p, 2, 64)
		f := batch.Record(s)
		require.ErrorIs(b, batch.Submit(), cuda.ErrStreamCapturing)
		require.Equal(b, event.Lost, f.State())
		batch.Reset()
		require.NoError(b, b.gate.Sync(bg))
		got := make([]byte, 1)
		require.NoError(b, b.dev.Read(got, p))
		require.Zero(b, got[0])
		_, err = s.Mark()
		require.ErrorIs(b, err, cuda.ErrStreamCapturing)
		g, err = b.dev.EndCapture(h)
		require.NoError(b, err, "it was not spoiled")

		x, err := b.dev.Instantiate(g)
		require.NoError(b, err)
		batch.LaunchGraph(s, x)
		f = batch.Record(s)
		require.NoError(b, batch.Submit())
		require.NoError(b, f.Wait(bg))
		batch.Reset()
		batch.LaunchGraph(nil, x)
		require.ErrorIs(b, batch.Submit(), cuda.ErrInvalidHandle)
		require.NoError(b, s.Close())
	})
}
