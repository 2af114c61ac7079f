package event_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/noopdev"
)

// intruder does something between a call of the device and its return to the
// registry, as another goroutine might.
type intruder struct {
	*noopdev.Device
	afterSubmit, afterPoll func()
}

func (d *intruder) Submit(b *cuda.Batch) error {
	err := d.Device.Submit(b)
	if d.afterSubmit != nil {
		d.afterSubmit()
	}
	return err
}

func (d *intruder) Poll(marks []cuda.Mark) error {
	err := d.Device.Poll(marks)
	if d.afterPoll != nil {
		d.afterPoll()
	}
	return err
}

// A mark that fires before it is booked, while someone else polls, is not
// forgotten until something else moves.
func TestMovedDuringSubmit(t *testing.T) {
	d := &intruder{Device: noopdev.New(noopdev.Options{Hold: true})}
	r := adopt(t, d.Device, event.NewRegistry(d))
	a, b := r.timeline("a"), r.timeline("b")
	r.mark(a)
	d.afterSubmit = func() {
		d.Fire(b.Stream(), 1)
		require.Equal(t, 0, r.poll(), "the mark is not in the books yet")
	}
	f := r.mark(b)
	d.afterSubmit = nil
	require.True(t, r.reg.Moved())
	require.Equal(t, 1, r.poll())
	require.True(t, f.Done())
	require.False(t, r.reg.Moved())
}

// Nor is one that fires while the answers of a poll are on their way.
func TestMovedDuringPoll(t *testing.T) {
	d := &intruder{Device: noopdev.New(noopdev.Options{Hold: true})}
	r := adopt(t, d.Device, event.NewRegistry(d))
	f := r.mark(r.timeline("a"))
	d.afterPoll = func() { d.FireAll() }
	require.Equal(t, 0, r.poll())
	d.afterPoll = nil
	require.True(t, r.reg.Moved())
	require.Equal(t, 1, r.poll())
	require.True(t, f.Done())
}

// A wait is for the mark itself where that is recorded, not for a later one.
func TestWaitIsNoLongerThanItsFence(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	a, b := r.timeline("a"), r.timeline("b")
	record := r.reg.NewBatch()
	first, second := record.Record(a), record.Record(a)
	require.NoError(t, record.Submit())
	wait := r.reg.NewBatch()
	require.NoError(t, wait.Wait(b.Stream(), first))
	require.NoError(t, wait.Wait(b.Stream(), second))
	for i, c := range record.Raw().Commands() {
		require.Equal(t, c.A, wait.Raw().Commands()[i].A)
	}
}

// mute is a device that never tells of movement.
type mute struct{ cuda.Device }

func (mute) Activity() uint64 { return 0 }

// A wait does not trust it, and asks at least every 5 ms, so that marks of a
// source that has broken down are found all the same, and so is the device's
// death.
func TestMuteDeviceIsAsked(t *testing.T) {
	for _, die := range []bool{false, true} {
		d, err := sim.New(sim.Options{Real: true, Slow: 5000})
		require.NoError(t, err)
		reg := event.NewRegistry(mute{d})
		s, err := d.NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		p, err := d.Alloc(8<<20, cuda.AllocOptions{})
		require.NoError(t, err)
		tl, err := reg.NewTimeline("s", s)
		require.NoError(t, err)
		b := reg.NewBatch()
		b.Raw().Fill8(s, p, 1, 8<<20) // some 15 ms
		f := b.Record(tl)
		require.NoError(t, b.Submit())
		if die {
			require.NoError(t, d.Kill(cuda.ErrIllegalAddress, "a test"))
			require.ErrorIs(t, f.Wait(context.Background()), cuda.ErrIllegalAddress)
		} else {
			require.NoError(t, f.Wait(context.Background()))
		}
		b.Reset()
		_ = tl.Close() // on a dead device it says so
		require.NoError(t, reg.Close())
		require.NoError(t, d.Close())
	}
}
