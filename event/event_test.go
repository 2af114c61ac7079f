package event_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/memory/kv"
)

func TestMain(m *testing.M) { os.Exit(testutil.Run(m)) }

type rig struct {
	t   testing.TB
	dev *noopdev.Device
	reg *event.Registry
}

func newRig(t testing.TB, o noopdev.Options) *rig {
	dev := noopdev.New(o)
	return adopt(t, dev, event.NewRegistry(dev))
}

func adopt(t testing.TB, dev *noopdev.Device, reg *event.Registry) *rig {
	t.Cleanup(func() {
		dev.FireAll()
		for reg.Moved() {
			_, _ = reg.Poll() // of a dead device, in some tests
		}
		require.NoError(t, reg.Close())
	})
	return &rig{t, dev, reg}
}

func (r *rig) timeline(name string) *event.Timeline {
	s, err := r.dev.NewStream(cuda.StreamOptions{Name: name})
	require.NoError(r.t, err)
	t, err := r.reg.NewTimeline(name, s)
	require.NoError(r.t, err)
	return t
}

// mark records and submits one mark on each timeline and returns the last fence.
func (r *rig) mark(ts ...*event.Timeline) (f event.Fence) {
	b := r.reg.NewBatch()
	for _, t := range ts {
		f = b.Record(t)
	}
	require.NoError(r.t, b.Submit())
	return f
}

func (r *rig) poll() int {
	n, err := r.reg.Poll()
	require.NoError(r.t, err)
	return n
}

func TestFenceLife(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	a := r.timeline("a")
	require.True(t, event.Fence{}.Done())
	require.NoError(t, event.Fence{}.Wait(context.Background()))

	b := r.reg.NewBatch()
	f := b.Record(a)
	require.Equal(t, kv.Point{Timeline: a.ID(), Seq: 1}, f.Point())
	require.Equal(t, event.Created, f.State())
	require.False(t, f.Done(), "CUDA would call this event done: it was never recorded")
	require.NoError(t, b.Submit())
	require.ErrorIs(t, b.Submit(), event.ErrSpent)
	require.Equal(t, event.Recorded, f.State())
	require.Equal(t, 0, r.poll())
	require.Equal(t, 1, r.reg.Open())

	require.Equal(t, 1, r.dev.FireAll())
	require.False(t, f.Done(), "nobody has asked yet")
	require.True(t, r.reg.Moved())
	require.Equal(t, 1, r.poll())
	require.Equal(t, event.Fired, f.State())
	require.Equal(t, kv.Seq(1), r.reg.Completed(a.ID()))
	require.Equal(t, f, a.Last())

	polls := r.dev.Counts().Polls
	require.Equal(t, 0, r.poll())
	require.False(t, r.reg.Moved())
	require.Equal(t, polls, r.dev.Counts().Polls, "no crossing without open marks")

	same, err := r.reg.Fence(f.Point())
	require.NoError(t, err)
	require.Equal(t, f, same)
	_, err = r.reg.Fence(kv.Point{Timeline: 1 << 30, Seq: 1})
	require.ErrorIs(t, err, event.ErrUnknownTimeline)
	_, err = r.reg.Fence(kv.Point{Seq: 1})
	require.ErrorIs(t, err, event.ErrUnknownTimeline)
	_, err = r.reg.Fence(kv.Point{Timeline: a.ID(), Seq: 2})
	require.ErrorIs(t, err, cuda.ErrNotRecorded)
	none, err := r.reg.Fence(kv.Point{})
	require.NoError(t, err)
	require.True(t, none.Done())
}

func TestPollIsOneCrossingForAllTimelines(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	a, b := r.timeline("a"), r.timeline("b")
	for range 1000 {
		r.mark(a, b)
	}
	before := r.dev.Counts()
	require.Equal(t, 0, r.poll())
	after := r.dev.Counts()
	require.Equal(t, uint64(1), after.Polls-before.Polls)
	require.Less(t, after.Marks-before.Marks, uint64(50), "a thousand open marks cost some twenty questions")

	r.dev.Fire(a.Stream(), 700)
	total := 0
	for r.reg.Moved() {
		total += r.poll()
	}
	require.Equal(t, 700, total)
	require.Equal(t, kv.Seq(700), a.Completed())
	require.Equal(t, kv.Seq(0), b.Completed())

	r.dev.FireAll()
	for r.reg.Moved() {
		r.poll()
	}
	require.Equal(t, kv.Seq(1000), a.Completed())
	require.Equal(t, kv.Seq(1000), b.Completed())
	require.LessOrEqual(t, r.dev.LiveEvents(), 2016)
}

func TestEventsAreUsedAgain(t *testing.T) {
	r := newRig(t, noopdev.Options{})
	a := r.timeline("a")
	for range 1000 {
		r.mark(a)
		r.poll()
	}
	require.Equal(t, uint64(16), r.dev.Counts().Events)
	require.NoError(t, r.reg.Close())
	require.NoError(t, r.reg.Close())
	require.Zero(t, r.dev.LiveEvents())
}

// An event that a batch under construction waits for is not recorded anew
// before that batch is submitted.
func TestWaitedEventStaysOutOfThePool(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	a, b := r.timeline("a"), r.timeline("b")
	f := r.mark(a)
	waiting := r.reg.NewBatch()
	require.NoError(t, waiting.Wait(b.Stream(), f))
	held := cuda.Event(waiting.Raw().Commands()[0].A)
	r.dev.FireAll()
	require.Equal(t, 1, r.poll())
	recorded := func() (events []cuda.Event) {
		bb := r.reg.NewBatch()
		defer bb.Reset()
		for range 16 {
			bb.Record(a)
		}
		for _, c := range bb.Raw().Commands() {
			events = append(events, cuda.Event(c.A))
		}
		return events
	}
	require.NotContains(t, recorded(), held)
	require.NoError(t, waiting.Submit())
	require.Contains(t, recorded(), held)
}

func TestDeviceWaits(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	a, b := r.timeline("a"), r.timeline("b")
	f := r.mark(a)

	batch := r.reg.NewBatch()
	require.NoError(t, batch.Wait(b.Stream(), event.Fence{}))
	require.NoError(t, batch.Wait(a.Stream(), f))
	require.Zero(t, batch.Raw().Len(), "nothing to wait for, and a stream is in order with itself")
	require.NoError(t, batch.Wait(b.Stream(), f))
	require.Equal(t, 1, batch.Raw().Len())
	own := batch.Record(b)
	require.NoError(t, batch.Wait(a.Stream(), own), "a mark of this very batch")
	require.NoError(t, batch.Submit())
	require.Equal(t, uint64(2), r.dev.Counts().Waits)

	other := r.reg.NewBatch()
	pending := other.Record(a)
	batch.Reset()
	require.ErrorIs(t, batch.Wait(b.Stream(), pending), cuda.ErrNotRecorded)
	require.ErrorIs(t, batch.Wait(a.Stream(), pending), cuda.ErrNotRecorded, "its own stream, but not in it yet")
	require.Zero(t, batch.Raw().Len())
	other.Reset()

	foreign := newRig(t, noopdev.Options{Hold: true})
	g := foreign.mark(foreign.timeline("x"))
	require.ErrorIs(t, batch.Wait(a.Stream(), g), event.ErrForeign)
	require.Equal(t, event.Lost, batch.Record(foreign.timeline("y")).State())
	require.ErrorIs(t, batch.Submit(), event.ErrForeign)
}

func TestFailedRecordIsLostUntilCovered(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	a, b := r.timeline("a"), r.timeline("b")
	batch := r.reg.NewBatch()
	first := batch.Record(a)
	batch.Raw().Fill8(a.Stream(), 1, 0, 1)
	second := batch.Record(a)
	r.dev.FailSubmit(2, cuda.ErrOutOfMemory)
	var se *cuda.SubmitError
	require.ErrorAs(t, batch.Submit(), &se)
	batch.Reset()

	require.Equal(t, event.Recorded, first.State())
	require.Equal(t, event.Lost, second.State())
	require.ErrorIs(t, second.Err(), cuda.ErrNotRecorded)
	require.ErrorIs(t, second.Wait(context.Background()), cuda.ErrNotRecorded)
	require.ErrorIs(t, batch.Wait(b.Stream(), second), cuda.ErrNotRecorded)
	require.NoError(t, batch.Wait(a.Stream(), second), "in order with itself all the same")
	r.dev.FireAll()
	r.poll()
	require.True(t, first.Done())
	require.False(t, second.Done(), "never silently ready")
	require.ErrorIs(t, a.Close(), event.ErrBusy)

	var told []error
	second.OnDone(func(err error) { told = append(told, err) })
	third := r.mark(a)
	require.Equal(t, event.Recorded, second.State(), "covered by the next good mark")
	require.NoError(t, batch.Wait(b.Stream(), second))
	require.Equal(t, 1, batch.Raw().Len())
	batch.Reset()
	require.Empty(t, told)
	r.dev.FireAll()
	r.poll()
	require.True(t, second.Done())
	require.True(t, third.Done())
	require.Equal(t, []error{nil}, told)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
}

// An error that does not say how far the batch got leaves nothing recorded.
func TestLostMarkIsCoveredWithinABatch(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	a, b := r.timeline("a"), r.timeline("b")
	batch := r.reg.NewBatch()
	lost := batch.Record(a)
	batch.Reset()
	require.Equal(t, event.Lost, lost.State())
	batch.Record(a)
	require.NoError(t, batch.Wait(b.Stream(), lost))
	require.Equal(t, 2, batch.Raw().Len())
	require.NoError(t, batch.Submit())
}

func TestOrderOfBatches(t *testing.T) {
	r := newRig(t, noopdev.Options{})
	a := r.timeline("a")
	first, second, third := r.reg.NewBatch(), r.reg.NewBatch(), r.reg.NewBatch()
	f1 := first.Record(a)
	f2 := second.Record(a)
	f3 := first.Record(a)
	f4 := third.Record(a)
	require.ErrorIs(t, second.Submit(), event.ErrOrder)
	require.ErrorIs(t, first.Submit(), event.ErrOrder, "its second mark is behind the other batch's")
	require.Zero(t, r.dev.Counts().Submits)
	second.Reset() // dropped: the way is free
	require.ErrorIs(t, third.Submit(), event.ErrOrder)
	require.NoError(t, first.Submit())
	require.NoError(t, third.Submit())
	for _, f := range []event.Fence{f1, f2, f3, f4} {
		require.NoError(t, f.Wait(context.Background()))
	}
	require.Equal(t, kv.Seq(4), a.Completed())
}

func TestDeath(t *testing.T) {
	for _, way := range []string{"poll", "submit"} {
		t.Run(way, func(t *testing.T) {
			r := newRig(t, noopdev.Options{Hold: true})
			a := r.timeline("a")
			old := r.mark(a)
			r.dev.FireAll()
			r.poll()
			f := r.mark(a)
			told := make(chan error, 1)
			f.OnDone(func(err error) { told <- err })
			waited := make(chan error, 1)
			go func() { waited <- f.Wait(context.Background()) }()

			if way == "poll" {
				r.dev.Kill(cuda.ErrIllegalAddress)
				_, err := r.reg.Poll()
				require.ErrorIs(t, err, cuda.ErrIllegalAddress)
			} else {
				b := r.reg.NewBatch()
				b.Record(a)
				r.dev.FailSubmit(0, cuda.ErrIllegalAddress)
				require.ErrorIs(t, b.Submit(), cuda.ErrIllegalAddress)
			}
			require.ErrorIs(t, <-told, cuda.ErrIllegalAddress)
			require.ErrorIs(t, <-waited, cuda.ErrIllegalAddress)
			require.True(t, old.Done())
			require.False(t, f.Done())
			require.Equal(t, event.Dead, f.State())
			require.ErrorIs(t, f.Err(), cuda.ErrIllegalAddress)
			f.OnDone(func(err error) { told <- err })
			require.ErrorIs(t, <-told, cuda.ErrIllegalAddress)

			r.dev.Kill(cuda.ErrMisaligned)
			_, err := r.reg.Poll()
			require.ErrorIs(t, err, cuda.ErrIllegalAddress, "the first cause")
			_, err = r.reg.NewTimeline("late", a.Stream())
			require.ErrorIs(t, err, cuda.ErrIllegalAddress)
			b := r.reg.NewBatch()
			g := b.Record(a)
			require.False(t, g.Done())
			require.ErrorIs(t, b.Submit(), cuda.ErrIllegalAddress)
			require.NoError(t, a.Close())
			require.NoError(t, r.reg.Close())
		})
	}
}

// A device without a watcher is asked again and again, and one that tells of no
// movement at least every few milliseconds: the error surfaces either way.
func TestErrorSurfacesWithoutMovement(t *testing.T) {
	dev := noopdev.New(noopdev.Options{Hold: true})
	for name, d := range map[string]cuda.Device{"silent watcher": silent{dev}, "no watcher": noopdev.Plain(dev)} {
		t.Run(name, func(t *testing.T) {
			r := adopt(t, dev, event.NewRegistry(d))
			f := r.mark(r.timeline("a"))
			waited := make(chan error, 1)
			go func() { waited <- f.Wait(context.Background()) }()
			g := r.mark(r.timeline("b"))
			ctx, cancel := context.WithCancelCause(context.Background())
			cause := errors.New("enough")
			cancel(cause)
			require.ErrorIs(t, g.Wait(ctx), cause)
			dev.FireAll()
			require.NoError(t, <-waited)
			f = r.mark(r.timeline("c"))
			go func() { waited <- f.Wait(context.Background()) }()
			require.NoError(t, r.reg.Clock().Sleep(context.Background(), time.Millisecond))
			dev.Kill(cuda.ErrLaunchFailed)
			require.ErrorIs(t, <-waited, cuda.ErrLaunchFailed)
			dev.Kill(nil)
		})
	}
}

type silent struct{ cuda.Device }

func (silent) Activity() uint64 { return 0 }

func TestFeed(t *testing.T) {
	r := newRig(t, noopdev.Options{})
	a, b := r.timeline("a"), r.timeline("b")
	feed := r.reg.NewFeed()
	require.Empty(t, feed.Next(nil))
	r.mark(a, a, b)
	require.Empty(t, feed.Next(nil))
	r.poll()
	require.Equal(t, []kv.Point{{Timeline: a.ID(), Seq: 2}, {Timeline: b.ID(), Seq: 1}}, feed.Next(nil))
	require.Empty(t, feed.Next(nil))
	f := r.mark(b)
	r.poll()
	require.NoError(t, b.Close())
	require.Equal(t, []kv.Point{{Timeline: b.ID(), Seq: 2}}, feed.Next(nil), "the end of a closed timeline is told")
	require.True(t, f.Done())
	late := r.reg.NewFeed()
	require.Equal(t, []kv.Point{{Timeline: a.ID(), Seq: 2}}, late.Next(nil))
	late.Close()
	feed.Close()
	feed.Close()
	batch := r.reg.NewBatch()
	batch.Record(b)
	require.ErrorIs(t, batch.Submit(), cuda.ErrClosed)
}

func TestOnDoneRunsInOrder(t *testing.T) {
	r := newRig(t, noopdev.Options{Hold: true})
	a := r.timeline("a")
	f1, f2, f3 := r.mark(a), r.mark(a), r.mark(a)
	var order []int
	for i, f := range []event.Fence{f3, f1, f2} {
		f.OnDone(func(err error) {
			require.NoError(t, err)
			order = append(order, i)
			_, err = r.reg.Poll() // a callback may poll
			require.NoError(t, err)
		})
	}
	r.dev.Fire(a.Stream(), 2)
	r.poll()
	require.Equal(t, []int{1, 2}, order)
	r.dev.FireAll()
	r.poll()
	require.Equal(t, []int{1, 2, 0}, order)
}

func TestRecordOnNoTimeline(t *testing.T) {
	r := newRig(t, noopdev.Options{})
	b := r.reg.NewBatch()
	f := b.Record(nil)
	require.Equal(t, event.Lost, f.State())
	require.False(t, f.Done())
	require.ErrorIs(t, b.Wait(7, f), cuda.ErrNotRecorded)
	require.NotEqual(t, f.Point(), b.Record(nil).Point())
	b.Record(r.timeline("real"))
	err := b.Submit()
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	require.ErrorContains(t, err, "no timeline")
	require.Zero(t, r.reg.Open(), "nothing was submitted")
	b.Reset()
	require.NoError(t, b.Submit())
}

func TestFailKeepsTheFirstError(t *testing.T) {
	r := newRig(t, noopdev.Options{})
	b := r.reg.NewBatch()
	first := errors.New("first")
	b.Fail(first)
	b.Fail(errors.New("second"))
	require.Equal(t, first, b.Submit())
	b.Reset()
	require.NoError(t, b.Submit())
}

// TestFirstSeq: a timeline that starts late counts on from there, and a feed
// tells of it at once.
func TestFirstSeq(t *testing.T) {
	const first = 1<<32 - 2
	dev := noopdev.New(noopdev.Options{})
	reg := event.NewRegistryWithOptions(dev, event.Options{FirstSeq: first})
	s, err := dev.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	feed := reg.NewFeed()
	tl, err := reg.NewTimeline("late", s)
	require.NoError(t, err)
	require.Equal(t, []kv.Point{{Timeline: tl.ID(), Seq: first}}, feed.Next(nil))
	b := reg.NewBatch()
	for want := kv.Seq(first + 1); want < first+5; want++ {
		f := b.Record(tl)
		require.Equal(t, want, f.Point().Seq)
		require.False(t, f.Done())
		require.NoError(t, b.Submit())
		b.Reset()
		_, err = reg.Poll()
		require.NoError(t, err)
		require.True(t, f.Done())
	}
	feed.Close()
	require.NoError(t, tl.Close())
	require.NoError(t, reg.Close())
}
