package stream_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/stream"
)

func TestMain(m *testing.M) { os.Exit(testutil.Run(m)) }

// rig is a device that does nothing; what is made on it is closed at the end.
type rig struct {
	testing.TB
	dev *noopdev.Device
	reg *event.Registry
}

func newRig(t testing.TB, o noopdev.Options) *rig {
	dev := noopdev.New(o)
	r := &rig{t, dev, event.NewRegistry(dev)}
	t.Cleanup(func() {
		r.drain()
		require.NoError(t, r.reg.Close())
	})
	return r
}

func (r *rig) drain() {
	r.dev.FireAll()
	for r.reg.Moved() {
		_, err := r.reg.Poll()
		require.NoError(r, err)
	}
}

func (r *rig) stream(name string) *stream.Stream {
	s, err := stream.New(r.reg, cuda.StreamOptions{Name: name})
	require.NoError(r, err)
	r.closing(s)
	return s
}

func (r *rig) closing(s *stream.Stream) {
	r.Cleanup(func() {
		r.drain()
		r.dev.Hold(false)
		if errors.Is(s.Close(), event.ErrBusy) { // a lost mark: Sync covers it
			require.NoError(r, s.Sync(context.Background()))
		}
		require.NoError(r, s.Close())
	})
}

func TestOwnedStream(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	dev := r.dev
	s := r.stream("gate")
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
	r := newRig(t, noopdev.Options{})
	dev, reg := r.dev, r.reg
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
	r.closing(again)
	require.NotEqual(t, s.ID(), again.ID(), "ids are never used again")
}

func TestAdoptEvent(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	dev := r.dev
	join := r.stream("join")
	_, err := stream.AdoptEvent(join, 0)
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
	r := newRig(t, noopdev.Options{})
	dev, reg := r.dev, r.reg
	dev.Kill(cuda.ErrECC)
	_, err := stream.New(reg, cuda.StreamOptions{Name: "late"})
	require.ErrorIs(t, err, cuda.ErrECC)
	require.ErrorContains(t, err, "late")
}

func TestBatchIsOneCrossing(t *testing.T) {
	r := newRig(t, noopdev.Options{})
	dev, reg := r.dev, r.reg
	a, c := r.stream("a"), r.stream("c")
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
	r := newRig(b, noopdev.Options{})
	var streams []*stream.Stream
	for _, name := range []string{"compute", "dry", "wet"} {
		streams = append(streams, r.stream(name))
	}
	batch := stream.NewBatch(r.reg)
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
		if _, err := r.reg.Poll(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestNoStream(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	s := r.stream("s")
	b := stream.NewBatch(r.reg)
	for name, add := range map[string]func(){
		"launch": func() { require.Len(t, b.Launch(nil, 1, cuda.Geometry{}, 16), 16, "for callers that fill it") },
		"copy":   func() { b.Copy(nil, 1, 2, 3) },
		"fill":   func() { b.Fill8(nil, 1, 2, 3) },
		"fill ":  func() { b.Fill32(nil, 4, 2, 3) },
		"record": func() { require.Equal(t, event.Lost, b.Record(nil).State()) },
	} {
		good := b.Record(s)
		add()
		err := b.Submit()
		require.ErrorIs(t, err, cuda.ErrInvalidHandle, name)
		require.ErrorContains(t, err, strings.TrimSpace(name)+" on no stream")
		require.Equal(t, event.Created, good.State(), "nothing was submitted")
		b.Reset()
	}
	f, err := s.Mark()
	require.NoError(t, err)
	err = b.Wait(nil, f)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	require.ErrorContains(t, err, "no stream")
	require.Zero(t, b.Len())
	require.NoError(t, b.Submit())

	_, err = stream.AdoptEvent(nil, 5)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	require.ErrorContains(t, err, "no join stream")
}
