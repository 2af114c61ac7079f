package event

import (
	"slices"
	"sync/atomic"

	"github.com/kvgate/kvgate/memory/kv"
)

// Feed tells one consumer which timelines have advanced. It is for one
// goroutine at a time.
type Feed struct {
	r    *Registry
	seen atomic.Uint64
}

// NewFeed returns a feed that first tells of every timeline that has a
// completed mark. Close it, or else the registry can not forget timelines.
func (r *Registry) NewFeed() *Feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &Feed{r: r}
	r.feeds = append(r.feeds, f)
	return f
}

// News reports whether [Feed.Next] has something to tell. It is cheap and safe
// to call from any goroutine.
func (f *Feed) News() bool { return f.r.moves.Load() != f.seen.Load() }

// Next appends to dst, for each timeline that has advanced since the last
// call, how far it has got. It never crosses into the device, and costs next to
// nothing when there is no news.
func (f *Feed) Next(dst []kv.Point) []kv.Point {
	r := f.r
	if r.moves.Load() == f.seen.Load() {
		return dst
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	closed := false
	for _, t := range r.timelines {
		if t.moved > f.seen.Load() {
			dst = append(dst, kv.Point{Timeline: t.id, Seq: t.Completed()})
		}
		closed = closed || t.closed
	}
	f.seen.Store(r.moves.Load())
	if closed {
		r.prune()
	}
	return dst
}

// Close ends the feed. It is idempotent.
func (f *Feed) Close() {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.feeds = slices.DeleteFunc(f.r.feeds, func(g *Feed) bool { return g == f })
	f.r.prune()
}
