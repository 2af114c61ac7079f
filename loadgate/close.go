package loadgate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// ErrClosed says that the gate has been closed.
var ErrClosed = errors.New("the gate is closed")

// Close ends the gate. Held transfers are withdrawn; Close then waits for those
// under way to be quiet. When ctx is done first it returns ctx's cause and may
// be called again. Blocks that are poisoned by then are reported in the error,
// which wraps [core.ErrPoisoned]; the gate is closed all the same. A second
// Close does nothing.
//
// Work that is still on the device is waited for: the gate frees memory of its
// own there, which waits as cuMemFree does.
func (g *Gate) Close(ctx context.Context) error {
	g.mu.Lock()
	if g.released {
		defer g.mu.Unlock()
		return g.owned.close()
	}
	g.closed = true
	for _, t := range g.bySlot {
		if t != nil && !t.over.Load() {
			if withdrawn, err := g.core.Cancel(t.id); err == nil && !withdrawn {
				g.takeBack(t, core.ErrCanceled)
			}
			g.act()
		}
	}
	g.unlock()
	for {
		handled := g.handled.Load()
		_, _ = g.Progress(0)
		if g.Counters().InFlight == 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		w := &gateWait{g: g, t: &ticket{}, deaf: true, draining: true, handled: handled}
		if err := g.clk.WaitUntil(ctx, w, clock.Never); err != nil {
			return err
		}
	}
	if g.posters != nil {
		if err := g.posters.close(ctx); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.unlock()
	if err := g.release(); err != nil {
		return err
	}
	g.released = true
	return errors.Join(g.poisonError(), g.owned.close())
}

func (g *Gate) poisonError() error {
	if g.core.Counters().Poisoned == 0 {
		return nil
	}
	for i := range g.pools {
		if ts := g.core.Poisoned(kv.PoolID(i), nil); len(ts) > 0 {
			return fmt.Errorf("loadgate: close: %d transfers not proven quiet; pool %d: %v: %w",
				g.core.Counters().Poisoned, i, ts, core.ErrPoisoned)
		}
	}
	return nil
}

// release frees what the gate made on the device. After an error it may be called
// again, and goes on where it was.
func (g *Gate) release() error {
	var errs []error
	g.unclosed = slices.DeleteFunc(g.unclosed, func(t nixl.Transfer) bool {
		err := t.Close()
		errs = append(errs, err)
		return err == nil
	})
	if g.feed != nil {
		g.feed.Close()
	}
	dead := g.reg.Err() != nil
	for _, s := range []*stream.Stream{g.idle, g.busy} {
		if s == nil {
			continue
		}
		if !dead && !s.Closed() {
			errs = append(errs, s.Sync(context.Background()))
		}
		errs = append(errs, s.Close())
	}
	for _, of := range g.groups {
		errs = append(errs, of.table.Close())
	}
	if dead {
		return nil
	}
	return errors.Join(errs...)
}
