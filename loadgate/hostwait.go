package loadgate

import (
	"context"

	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
)

// WaitBlocks blocks, in the modes in which the host waits, until loads into the
// given blocks may go out: [FullSync] waits for the whole device, [EventSync]
// for the blocks' zeroing and last uses. In the other modes it returns at once.
// Call it between the zeroing of a step that has loads and the step's launch.
func (g *Gate) WaitBlocks(ctx context.Context, p kv.PoolID, ts []kv.Tenancy) error {
	switch g.Mode().Wait {
	case core.HostDevice:
		if err := g.Flush(); err != nil {
			return err
		}
		if err := g.reg.Device().Sync(ctx); err != nil {
			return err
		}
		_, err := g.Progress(0)
		return err
	case core.HostBlocks:
		for {
			f, err := g.newest(p, ts)
			if err != nil || f == (event.Fence{}) {
				return err
			}
			if err := g.Wait(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// newest returns a fence that work on the blocks has yet to pass, or none.
func (g *Gate) newest(p kv.PoolID, ts []kv.Tenancy) (event.Fence, error) {
	g.mu.Lock()
	defer g.unlock()
	if err := g.catchUp(); err != nil {
		return event.Fence{}, err
	}
	if err := g.flush(); err != nil {
		return event.Fence{}, err
	}
	points, err := g.core.Uses(p, ts)
	if err != nil || len(points) == 0 {
		return event.Fence{}, err
	}
	return g.reg.Fence(points[len(points)-1])
}
