package event_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/memory/kv"
)

// BenchmarkStep is what one step costs the host: a mark, the batch that holds
// it, one poll, and the news. The device does nothing.
func BenchmarkStep(b *testing.B) {
	for _, streams := range []int{1, 4} {
		b.Run(fmt.Sprintf("streams-%d", streams), func(b *testing.B) {
			r := newRig(b, noopdev.Options{})
			var ts []*event.Timeline
			for i := range streams {
				ts = append(ts, r.timeline(fmt.Sprint(i)))
			}
			batch, feed := r.reg.NewBatch(), r.reg.NewFeed()
			var points []kv.Point
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				for _, t := range ts {
					batch.Record(t)
				}
				if err := batch.Submit(); err != nil {
					b.Fatal(err)
				}
				if n, err := r.reg.Poll(); err != nil || n != streams {
					b.Fatal(n, err)
				}
				points = feed.Next(points[:0])
			}
		})
	}
}

// BenchmarkPollOpen is one poll with nothing new while marks are open.
func BenchmarkPollOpen(b *testing.B) {
	for _, open := range []int{1, 10, 1000, 100000} {
		b.Run(fmt.Sprintf("open-%d", open), func(b *testing.B) {
			r := newRig(b, noopdev.Options{Hold: true})
			t := r.timeline("a")
			for range open {
				r.mark(t)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.reg.Poll(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIdle is what a loop pays that has nothing to wait for.
func BenchmarkIdle(b *testing.B) {
	r := newRig(b, noopdev.Options{})
	f := r.mark(r.timeline("a"))
	if err := f.Wait(context.Background()); err != nil {
		b.Fatal(err)
	}
	feed := r.reg.NewFeed()
	points := feed.Next(nil)
	b.ReportAllocs()
	for b.Loop() {
		if r.reg.Moved() || !f.Done() {
			b.Fatal("news")
		}
		points = feed.Next(points[:0])
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	r := newRig(t, noopdev.Options{})
	a, c := r.timeline("a"), r.timeline("c")
	batch, feed := r.reg.NewBatch(), r.reg.NewFeed()
	points := make([]kv.Point, 0, 8)
	done := 0
	count := func(error) { done++ }
	step := func() {
		batch.Reset()
		f := batch.Record(a)
		if err := batch.Wait(c.Stream(), f); err != nil {
			t.Fatal(err)
		}
		g := batch.Record(c)
		if err := batch.Submit(); err != nil {
			t.Fatal(err)
		}
		g.OnDone(count)
		if _, err := r.reg.Poll(); err != nil {
			t.Fatal(err)
		}
		points = feed.Next(points[:0])
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(200, step); n != 0 {
		t.Errorf("%v allocations in a step", n)
	}
	if done != 301 {
		t.Errorf("%d callbacks of 301", done)
	}
}
