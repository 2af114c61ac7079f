package loadgate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate/core"
)

// Wait blocks until f has fired, and lets the gate move meanwhile. An
// engine that waits for a step's output waits here, so that held loads leave
// when they can. It returns ctx's cause when ctx is done, and the device's
// error when that died.
//
// A fence of another registry is refused, and one whose batch has not been
// submitted, with [cuda.ErrNotRecorded]: nobody could say whether it ever fires.
func (g *Gate) Wait(ctx context.Context, f event.Fence) error {
	if !f.Done() {
		if _, err := g.reg.Fence(f.Point()); err != nil {
			return err
		}
		if f.State() == event.Created {
			return fmt.Errorf("loadgate: wait for %v: %w", f, cuda.ErrNotRecorded)
		}
	}
	return g.wait(ctx, &gateWait{g: g, f: f})
}

// Wait blocks until the transfer is over and returns its error, and lets the
// gate move meanwhile. When ctx is done it returns ctx's cause, and the transfer
// goes on.
func (t Transfer) Wait(ctx context.Context) error {
	g, k, err := t.ticket("wait for")
	if err != nil {
		return err
	}
	k.waiters++
	if !k.over.Load() {
		_ = g.core.Hurry(k.id)
		g.act()
	}
	g.unlock()
	err = g.wait(ctx, &gateWait{g: g, t: k, handle: t})
	g.mu.Lock()
	defer g.mu.Unlock()
	k.waiters--
	defer g.recycle(k)
	if err != nil {
		return err
	}
	return k.err
}

func (g *Gate) wait(ctx context.Context, w *gateWait) error {
	for {
		g.mu.Lock()
		_, err, _ := g.progress(0) // whose launch fails is told of it in another way
		owed := len(g.unmarks) > 0
		g.unlock()
		if w.over() {
			return nil
		}
		if err != nil && (w.t == nil || !errors.Is(err, core.ErrDead)) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			// The device is dead and answers no more; the transfers go on.
			w.deaf = true
			err = g.clk.WaitUntil(ctx, w, clock.Never)
		} else {
			err = g.reg.WaitUntil(ctx, w, g.deadline(owed))
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && g.reg.Err() == nil {
			return err
		}
	}
}

// remarkEvery is how often a mark that could not be recorded is tried again while
// somebody waits.
const remarkEvery = time.Millisecond

// deadline returns when a wait has to look again, whatever happens.
func (g *Gate) deadline(owed bool) time.Duration {
	at := time.Duration(clock.Never)
	if g.limit > 0 {
		g.mu.Lock()
		at = time.Duration(g.core.Deadline())
		g.mu.Unlock()
	}
	if owed {
		at = min(at, g.clk.Now()+remarkEvery)
	}
	return at
}

// gateWait ends a wait when what it is for has come, or when the gate has
// something to do.
type gateWait struct {
	g *Gate
	f event.Fence
	t *ticket

	handle Transfer // of t

	deaf bool // to the device: it is dead, or does not matter

	draining bool // ends when more than handled results have been handled
	handled  uint64
}

func (w *gateWait) over() bool {
	if w.t != nil {
		return w.t.over.Load()
	}
	return w.f.Done()
}

func (w *gateWait) Done() bool {
	g := w.g
	return w.over() || !w.deaf && g.feed.News() || g.posters != nil && g.posters.news.Load() ||
		w.draining && g.handled.Load() != w.handled ||
		g.inFlight.Load() > 0 && g.agent.Activity() != g.seen.Load()
}

func (w *gateWait) String() string {
	if w.t != nil {
		return w.handle.String()
	}
	return w.f.String()
}
