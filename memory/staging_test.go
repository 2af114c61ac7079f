package memory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/stream"
)

// tester is what testing.TB and rapid.T have in common.
type tester interface {
	require.TestingT
	Cleanup(func())
}

type ring struct {
	t   tester
	dev *noopdev.Device
	reg *event.Registry
	s   *stream.Stream
	st  *memory.Staging
}

func newRing(t tester, size int) *ring {
	dev := noopdev.New(noopdev.Options{Hold: true})
	reg := event.NewRegistry(dev)
	s, err := stream.New(reg, cuda.StreamOptions{Name: "s"})
	require.NoError(t, err)
	st, err := memory.NewStaging(reg, "ids", size)
	require.NoError(t, err)
	t.Cleanup(func() {
		// In this order: slots that a test keeps do not matter once the
		// registry is closed.
		dev.FireAll()
		for reg.Moved() {
			_, _ = reg.Poll() // of a dead device, in one test
		}
		require.NoError(t, reg.Close())
		require.NoError(t, st.Close())
		require.NoError(t, s.Close())
		if errors.Is(reg.Err(), cuda.ErrClosed) {
			require.Zero(t, dev.LiveBytes())
		}
	})
	return &ring{t, dev, reg, s, st}
}

func (r *ring) mark() event.Fence {
	f, err := r.s.Mark()
	require.NoError(r.t, err)
	return f
}

func (r *ring) fire(n int) {
	r.dev.Fire(r.s.Handle(), n)
	_, err := r.reg.Poll()
	require.NoError(r.t, err)
}

func TestStagingSlotsComeBackByFence(t *testing.T) {
	r := newRing(t, 256)
	a, err := r.st.Take(100)
	require.NoError(t, err)
	require.Len(t, a.Host, 100)
	require.Zero(t, a.Device%64)
	b, err := r.st.Take(128)
	require.NoError(t, err)
	require.Equal(t, a.Device+128, b.Device)
	_, err = r.st.Take(1)
	require.ErrorIs(t, err, memory.ErrFull)
	require.ErrorContains(t, err, `staging "ids"`)

	f, g := r.mark(), r.mark()
	require.NoError(t, r.st.Release(b, g))
	require.NoError(t, r.st.Release(a, f))
	require.ErrorIs(t, r.st.Release(a, event.Fence{}), memory.ErrReleased)
	require.ErrorIs(t, r.st.Release(memory.Slot{}, event.Fence{}), memory.ErrReleased)
	_, err = r.st.Take(1)
	require.ErrorIs(t, err, memory.ErrFull, "released, but the device may still read it")
	r.fire(1)
	c, err := r.st.Take(128)
	require.NoError(t, err)
	require.Equal(t, a.Device, c.Device)
	require.ErrorIs(t, r.st.Release(a, f), memory.ErrReleased, "gone long since")
	require.ErrorIs(t, r.st.Close(), memory.ErrBusy)
	require.NoError(t, r.st.Release(c, event.Fence{}))
	r.fire(1)
	require.NoError(t, r.st.Close())
	require.NoError(t, r.st.Close())
	require.Zero(t, r.dev.LiveBytes())
	_, err = r.st.Take(1)
	require.ErrorIs(t, err, cuda.ErrClosed)
}

func TestStagingRefuses(t *testing.T) {
	r := newRing(t, 100) // rounded up to 128
	require.Equal(t, 128, r.st.Size())
	for _, take := range []func(int) (memory.Slot, error){
		r.st.Take,
		func(n int) (memory.Slot, error) { return r.st.TakeWait(context.Background(), n) },
	} {
		_, err := take(129)
		require.ErrorIs(t, err, memory.ErrTooLarge)
		_, err = take(-1)
		require.ErrorIs(t, err, memory.ErrOutOfRange)
	}
	_, err := memory.NewStaging(r.reg, "none", 0)
	require.ErrorIs(t, err, memory.ErrOutOfRange)
}

// A fence whose record failed keeps the slot: its bytes may still be read.
func TestStagingLostFence(t *testing.T) {
	r := newRing(t, 64)
	slot, err := r.st.Take(64)
	require.NoError(t, err)
	b := stream.NewBatch(r.reg)
	b.Copy(r.s, 1, slot.Device, 64)
	lost := b.Record(r.s)
	r.dev.FailSubmit(1, cuda.ErrOutOfMemory)
	require.Error(t, b.Submit())
	b.Reset()
	require.NoError(t, r.st.Release(slot, lost))
	_, err = r.st.Take(1)
	require.ErrorIs(t, err, memory.ErrFull)
	r.mark()
	r.fire(1)
	_, err = r.st.Take(1)
	require.NoError(t, err)
}

func TestStagingTakeWait(t *testing.T) {
	r := newRing(t, 64)
	slot, err := r.st.TakeWait(context.Background(), 64)
	require.NoError(t, err)
	require.NoError(t, r.st.Release(slot, r.mark()))

	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("request gone")
	cancel(cause)
	_, err = r.st.TakeWait(ctx, 1)
	require.ErrorIs(t, err, cause)
	require.Equal(t, 64, r.st.Used())

	done := make(chan error, 1)
	go func() {
		s, err := r.st.TakeWait(context.Background(), 32)
		if err == nil {
			err = r.st.Release(s, event.Fence{})
		}
		done <- err
	}()
	r.dev.FireAll()
	require.NoError(t, <-done)

	slot, err = r.st.Take(64)
	require.NoError(t, err)
	require.NoError(t, r.st.Release(slot, r.mark()))
	go func() {
		_, err := r.st.TakeWait(context.Background(), 32)
		done <- err
	}()
	r.dev.Kill(cuda.ErrECC)
	require.ErrorIs(t, <-done, cuda.ErrECC)
	require.NoError(t, r.st.Close())
}

// No two live slots overlap, whatever the order of sizes and releases, and an
// empty ring takes a slot of its whole size.
func TestStagingTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRing(rt, 1024)
		type live struct {
			slot  memory.Slot
			fence event.Fence
			freed bool
		}
		var all []live
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0, 1:
				n := rapid.IntRange(0, 600).Draw(rt, "n")
				slot, err := r.st.Take(n)
				if err != nil {
					require.ErrorIs(rt, err, memory.ErrFull)
					break
				}
				for _, l := range all {
					if l.freed && l.fence.Done() {
						continue
					}
					before := slot.Device+64 <= l.slot.Device && uint64(slot.Device)+uint64(n) <= uint64(l.slot.Device)
					behind := l.slot.Device+64 <= slot.Device && uint64(l.slot.Device)+uint64(len(l.slot.Host)) <= uint64(slot.Device)
					require.True(rt, before || behind, "slots overlap")
				}
				all = append(all, live{slot: slot})
			case 2:
				if len(all) > 0 {
					i := rapid.IntRange(0, len(all)-1).Draw(rt, "release")
					if l := &all[i]; !l.freed {
						l.freed, l.fence = true, r.mark()
						require.NoError(rt, r.st.Release(l.slot, l.fence))
					} else {
						require.ErrorIs(rt, r.st.Release(l.slot, l.fence), memory.ErrReleased)
					}
				}
			case 3:
				r.fire(rapid.IntRange(0, 3).Draw(rt, "fire"))
			}
		}
		for i := range all {
			if !all[i].freed {
				require.NoError(rt, r.st.Release(all[i].slot, event.Fence{}))
			}
		}
		r.dev.FireAll()
		for r.reg.Moved() {
			_, err := r.reg.Poll()
			require.NoError(rt, err)
		}
		require.Zero(rt, r.st.Used())
		_, err := r.st.Take(1024)
		require.NoError(rt, err)
	})
}

func TestStagingAllocatesNothing(t *testing.T) {
	r := newRing(t, 1<<16)
	r.dev.Hold(false)
	b := stream.NewBatch(r.reg)
	step := func() {
		b.Reset()
		slot, err := r.st.Take(4000)
		if err != nil {
			t.Fatal(err)
		}
		b.Copy(r.s, 1, slot.Device, 4000)
		f := b.Record(r.s)
		if err := b.Submit(); err != nil {
			t.Fatal(err)
		}
		if err := r.st.Release(slot, f); err != nil {
			t.Fatal(err)
		}
		if _, err := r.reg.Poll(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(100, step))
}
