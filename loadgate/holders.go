package loadgate

import (
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/kv"
)

// Hold makes a holder of tenancies: a request's blocks. New tenancies begin
// with it; those that another holder has are shared.
func (g *Gate) Hold(p kv.PoolID, ts []kv.Tenancy) (Holder, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Hold(p, ts)
}

// Append adds tenancies to a holder. It costs O(len(ts)).
func (g *Gate) Append(h Holder, p kv.PoolID, ts []kv.Tenancy) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Append(h, p, ts)
}

// Remove lets go of some tenancies of a holder, as a sliding window does.
func (g *Gate) Remove(h Holder, p kv.PoolID, ts []kv.Tenancy) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Remove(h, p, ts)
}

// Drop lets go of a holder. It cancels nothing: transfers of the holder go on,
// and plans that name it may still be submitted; both keep the blocks in
// quarantine for as long as they need them.
func (g *Gate) Drop(h Holder) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Drop(h)
}

// Reclaimer returns what a [memory.Pool], or an engine's own block manager,
// asks when a retired block of the pool may be handed out again.
func (g *Gate) Reclaimer(p kv.PoolID) memory.Reclaimer { return reclaimer{g, p} }

type reclaimer struct {
	g    *Gate
	pool kv.PoolID
}

func (r reclaimer) Retire(ts []kv.Tenancy) error {
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	return r.g.core.Retire(r.pool, ts)
}

func (r reclaimer) Reusable(dst []kv.Tenancy) []kv.Tenancy {
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	return r.g.core.Reusable(r.pool, dst)
}
