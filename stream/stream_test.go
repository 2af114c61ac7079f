package stream_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOwnedStream(t *testing.T) {
	dev := noopdev.New(noopdev.Options{Hold: true})
	reg := event.NewRegistry(dev)
	s, err := stream.New(reg, cuda.StreamOptions{Name: "gate"})
	require.NoError(t, err)
	require.Equal(t, "gate", s.Name())
	f, err := s.Mark()
	require.NoError(t, err)
	require.Equal(t, kv.Point{Timeline: s.ID(), Seq: 1}, f.Point())
	require.ErrorIs(t, s.Close(), event.ErrBusy)
	dev.FireAll()
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.True(t, f.Done())
	require.ErrorIs(t, dev.DestroyStream(s.Handle()), cuda.ErrInvalidHandle, "Close has destroyed it")
	_, err = s.Mark()
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.ErrorIs(t, s.Sync(context.Background()), cuda.ErrClosed)
}

func TestAdopt(t *testing.T) {
	dev := noopdev.New(noopdev.Options{})
	reg := event.NewRegistry(dev)
	for _, h := range []cuda.Stream{0, 1, 2, 12345} {
		_, err := stream.Adopt(reg, h, "x")
		require.ErrorIs(t, err, cuda.ErrInvalidHandle, "handle %d", h)
	}
	dev.Hold(true)
	h, err := dev.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	s, err := stream.Adopt(reg, h, "engine")
	require.NoError(t, err)
	require.Equal(t, event.Recorded, s.Timeline().Last().State(), "earlier work is covered")
	dev.FireAll()
	require.NoError(t, s.Close())
	require.NoError(t, dev.DestroyStream(h), "its owner destroys it")

	h, err = dev.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	dev.FailSubmit(0, cuda.ErrStreamCapturing)
	_, err = stream.Adopt(reg, h, "capturing")
	require.ErrorIs(t, err, cuda.ErrStreamCapturing)
	again, err := stream.Adopt(reg, h, "later")
	require.NoError(t, err)
	require.NotEqual(t, s.ID(), again.ID(), "ids are never used again")
}

func TestAdoptEvent(t *testing.T) {
	dev := noopdev.New(noopdev.Options{Hold: true})
	reg := event.NewRegistry(dev)
	join, err := stream.New(reg, cuda.StreamOptions{Name: "join"})
	require.NoError(t, err)
	_, err = stream.AdoptEvent(join, 0)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	e, err := dev.NewEvent()
	require.NoError(t, err)
	var ops []cuda.Op
	dev.OnSubmit(func(b *cuda.Batch) {
		for _, c := range b.Commands() {
			ops = append(ops, c.Op)
		}
	})
	f, err := stream.AdoptEvent(join, e)
	require.NoError(t, err)
	require.Equal(t, []cuda.Op{cuda.OpWaitEvent, cuda.OpRecord}, ops)
	require.NoError(t, dev.DestroyEvent(e))
	dev.FireAll()
	require.NoError(t, f.Wait(context.Background()))
	_, err = stream.AdoptEvent(join, e)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
}

func TestNewOnADeadDevice(t *testing.T) {
	dev := noopdev.New(noopdev.Options{})
	reg := event.NewRegistry(dev)
	dev.Kill(cuda.ErrECC)
	_, err := stream.New(reg, cuda.StreamOptions{Name: "late"})
	require.ErrorIs(t, err, cuda.ErrECC)
	require.ErrorContains(t, err, "late")
}

func TestBatchIsOneCrossing(t *testing.T) {
	dev := noopdev.New(noopdev.Options{})
	reg := event.NewRegistry(dev)
	a, err := stream.New(reg, cuda.StreamOptions{Name: "a"})
	require.NoError(t, err)
	c, err := stream.New(reg, cuda.StreamOptions{Name: "c"})
	require.NoError(t, err)
	b := stream.NewBatch(reg)
	var seen []cuda.Command
	dev.OnSubmit(func(b *cuda.Batch) { seen = append(seen[:0], b.Commands()...) })
	step := func() {
		b.Reset()
		args := b.Launch(a, 1, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{32, 1, 1}}, 16)
		args[0] = 7
		b.Copy(a, 100, 200, 8)
		zeroed := b.Record(a)
		b.Fill8(c, 300, 1, 4)
		if err := b.Wait(c, zeroed); err != nil {
			t.Fatal(err)
		}
		b.Fill32(c, 304, 2, 1)
		b.Record(c)
		if err := b.Submit(); err != nil {
			t.Fatal(err)
		}
		if _, err := reg.Poll(); err != nil {
			t.Fatal(err)
		}
	}
	step()
	require.Equal(t, uint64(1), dev.Counts().Submits)
	var ops []cuda.Op
	for _, cmd := range seen {
		ops = append(ops, cmd.Op)
	}
	require.Equal(t, []cuda.Op{cuda.OpLaunch, cuda.OpCopy, cuda.OpRecord, cuda.OpFill, cuda.OpWaitEvent, cuda.OpFill, cuda.OpRecord}, ops)
	require.Equal(t, byte(7), b.Raw().Arena()[0])
	for range 50 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(100, step))
}

func BenchmarkBatch(b *testing.B) {
	dev := noopdev.New(noopdev.Options{})
	reg := event.NewRegistry(dev)
	var streams []*stream.Stream
	for _, name := range []string{"compute", "dry", "wet"} {
		s, err := stream.New(reg, cuda.StreamOptions{Name: name})
		require.NoError(b, err)
		streams = append(streams, s)
	}
	batch := stream.NewBatch(reg)
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		for _, s := range streams[1:] {
			batch.Launch(s, 1, cuda.Geometry{}, 64)
			if err := batch.Wait(streams[0], batch.Record(s)); err != nil {
				b.Fatal(err)
			}
		}
		batch.Launch(streams[0], 1, cuda.Geometry{}, 64)
		batch.Record(streams[0])
		if err := batch.Submit(); err != nil {
			b.Fatal(err)
		}
		if _, err := reg.Poll(); err != nil {
			b.Fatal(err)
		}
	}
}
