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

// WaitFence blocks until f has fired, and lets the gate move meanwhile. An
// engine that waits for a step's output waits here, so that held loads leave
// when they can. It returns ctx's cause when ctx is done, and the device's
// error when that died.
//
// A fence of another registry is refused, and one whose batch has not been
// submitted, with [cuda.ErrNotRecorded]: nobody could say whether it ever fires.
func (g *Gate) WaitFence(ctx context.Context, f event.Fence) error {
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

// WaitTicket blocks until t is over and returns its error, and lets the gate
// move meanwhile. When ctx is done it returns ctx's cause, and the ticket goes
// on.
func (g *Gate) WaitTicket(ctx context.Context, t *Ticket) error {
	if err := g.mine("wait", t); err != nil {
		return err
	}
	g.mu.Lock()
	if !t.over.Load() {
		_ = g.core.Hurry(t.id)
		g.act()
	}
	g.unlock()
	if err := g.wait(ctx, &gateWait{g: g, t: t}); err != nil {
		return err
	}
	return t.err
}

func (g *Gate) wait(ctx context.Context, w *gateWait) error {
	for {
		_, err := g.Progress(0)
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
			err = g.reg.WaitUntil(ctx, w, g.deadline())
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && g.reg.Err() == nil {
			return err
		}
	}
}

func (g *Gate) deadline() time.Duration {
	if g.limit == 0 {
		return clock.Never
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Duration(g.core.Deadline())
}

// gateWait ends a wait when what it is for has come, or when the gate has
// something to do.
type gateWait struct {
	g *Gate
	f event.Fence
	t *Ticket

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
		return w.t.String()
	}
	return w.f.String()
}
