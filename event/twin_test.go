package event_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/noopdev"
)

// twin is the plain second book: for each stream the commands that the device
// took, by number, and how far the stream has run.
type twin struct {
	taken  map[cuda.Stream]int
	ran    map[cuda.Stream]int
	record map[cuda.Event]place // the latest record of each event
	held   map[cuda.Stream][]int
	dev    *noopdev.Device
}

type place struct {
	stream cuda.Stream
	number int
}

// take books the first n commands of the batch. waits are the fences that its
// device waits are for, in order.
func (w *twin) take(t *rapid.T, b *cuda.Batch, n int, waits []*fence) {
	for i, c := range b.Commands() {
		if i == n {
			return
		}
		s := b.Streams()[c.Stream]
		switch c.Op {
		case cuda.OpRecord:
			w.record[cuda.Event(c.A)] = place{s, w.taken[s]}
			w.held[s] = append(w.held[s], w.taken[s])
		case cuda.OpWaitEvent:
			f := waits[0]
			waits = waits[1:]
			at := w.record[cuda.Event(c.A)]
			if f.t.Stream() != at.stream || at.number < f.behind {
				t.Fatalf("wait for %v is a wait for work up to %d of stream %d, want %d of %d",
					f.f, at.number, at.stream, f.behind, f.t.Stream())
			}
		}
		w.taken[s]++
	}
}

func (w *twin) fire(s cuda.Stream, n int) {
	for range w.dev.Fire(s, n) {
		w.ran[s], w.held[s] = w.held[s][0], w.held[s][1:]
	}
}

// fence is a fence with what it stands for: the commands in its stream before
// its mark. Until its batch is submitted that is more than any.
type fence struct {
	f      event.Fence
	t      *event.Timeline
	behind int
	told   []error
}

const unsubmitted = 1 << 40

type openBatch struct {
	b     *event.Batch
	marks []*fence
	cmds  []int // index of each mark's command
	waits []*fence
}

// Whatever is recorded, dropped, failed, waited for and fired, in any order: no
// fence is done before the work in front of it ran, no device wait is for less
// than its fence, and in the end every fence fires.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dev := noopdev.New(noopdev.Options{Hold: true})
		reg := event.NewRegistry(dev)
		defer func() { require.NoError(t, reg.Close()) }()
		w := &twin{map[cuda.Stream]int{}, map[cuda.Stream]int{}, map[cuda.Event]place{}, map[cuda.Stream][]int{}, dev}
		var ts []*event.Timeline
		for i := range 3 {
			s, err := dev.NewStream(cuda.StreamOptions{})
			require.NoError(t, err)
			tl, err := reg.NewTimeline(fmt.Sprint(i), s)
			require.NoError(t, err)
			ts = append(ts, tl)
		}
		batches := []*openBatch{{b: reg.NewBatch()}, {b: reg.NewBatch()}}
		var all []*fence
		timeline := func() *event.Timeline { return ts[rapid.IntRange(0, len(ts)-1).Draw(t, "timeline")] }
		batch := func() *openBatch { return batches[rapid.IntRange(0, 1).Draw(t, "batch")] }
		reset := func(o *openBatch) {
			for _, f := range o.marks { // never submitted: nothing is behind it
				if f.behind == unsubmitted {
					f.behind = 0
				}
			}
			o.b.Reset()
			*o = openBatch{b: o.b}
		}
		submit := func(o *openBatch, fail int) {
			if fail >= 0 {
				dev.FailSubmit(fail, cuda.ErrOutOfMemory)
			}
			before := map[cuda.Stream]int{}
			for s, n := range w.taken {
				before[s] = n
			}
			raw := o.b.Raw()
			// What a mark stands for is settled by the order in the stream,
			// whether or not its own record gets in.
			numbers := map[int]int{}
			for i, c := range raw.Commands() {
				s := raw.Streams()[c.Stream]
				numbers[i] = before[s]
				before[s]++
			}
			err := o.b.Submit()
			if errors.Is(err, event.ErrOrder) {
				dev.FailSubmit(-1, nil)
				return
			}
			n := raw.Len()
			var se *cuda.SubmitError
			if errors.As(err, &se) {
				n = se.Index
			} else {
				require.NoError(t, err)
			}
			for i, f := range o.marks {
				f.behind = numbers[o.cmds[i]]
			}
			w.take(t, raw, n, o.waits)
			for _, f := range o.marks { // the work that did not get in is no work
				f.behind = min(f.behind, w.taken[f.t.Stream()])
			}
			reset(o)
		}
		check := func() {
			for _, f := range all {
				if f.f.Done() && f.behind > w.ran[f.t.Stream()] {
					t.Fatalf("%v is done: %d commands before it, %d ran", f.f, f.behind, w.ran[f.t.Stream()])
				}
				if f.f.Done() != (len(f.told) == 1) {
					t.Fatalf("%v: done %v, told %d times", f.f, f.f.Done(), len(f.told))
				}
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0, 1: // work and a mark
				o, tl := batch(), timeline()
				o.b.Raw().Fill8(tl.Stream(), 1, 0, 1)
				f := &fence{t: tl, behind: unsubmitted}
				o.cmds = append(o.cmds, o.b.Raw().Len())
				f.f = o.b.Record(tl)
				f.f.OnDone(func(err error) { f.told = append(f.told, err) })
				o.marks = append(o.marks, f)
				all = append(all, f)
			case 2: // a wait
				if len(all) == 0 {
					break
				}
				o, f := batch(), all[rapid.IntRange(0, len(all)-1).Draw(t, "fence")]
				n := o.b.Raw().Len()
				if err := o.b.Wait(timeline().Stream(), f.f); err != nil {
					require.ErrorIs(t, err, cuda.ErrNotRecorded)
				}
				if o.b.Raw().Len() > n {
					o.waits = append(o.waits, f)
				}
			case 3, 4:
				o := batch()
				fail := -1
				if n := o.b.Raw().Len(); n > 0 && rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
					fail = rapid.IntRange(0, n-1).Draw(t, "at")
				}
				submit(o, fail)
			case 5:
				if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
					reset(batch())
				}
			case 6:
				w.fire(timeline().Stream(), rapid.IntRange(1, 5).Draw(t, "n"))
			case 7:
				_, err := reg.Poll()
				require.NoError(t, err)
			}
			check()
		}
		for _, o := range batches {
			reset(o)
		}
		for _, tl := range ts {
			b := reg.NewBatch()
			b.Record(tl)
			require.NoError(t, b.Submit())
			b.Reset()
			w.taken[tl.Stream()]++
			w.held[tl.Stream()] = append(w.held[tl.Stream()], w.taken[tl.Stream()])
			w.fire(tl.Stream(), 1000)
		}
		for reg.Moved() {
			_, err := reg.Poll()
			require.NoError(t, err)
		}
		check()
		for _, f := range all {
			require.True(t, f.f.Done(), "%v", f.f)
		}
		require.Zero(t, reg.Open())
	})
}
