package loadgate

import (
	"github.com/kvgate/kvgate/memory/kv"
)

// Hold makes a holder of tenancies of one group: a request's blocks. Those that
// another holder has are shared. In a foreign pool new tenancies begin with it.
func (g *Gate) Hold(of kv.Group, ts []kv.Tenancy) (Holder, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Hold(of, ts)
}

// Append adds tenancies of one group to a holder. It costs O(len(ts)).
func (g *Gate) Append(h Holder, of kv.Group, ts []kv.Tenancy) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Append(h, of, ts)
}

// Remove lets go of some tenancies of a holder, as a sliding window does.
func (g *Gate) Remove(h Holder, p kv.PoolID, ts []kv.Tenancy) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Remove(h, p, ts)
}

// Drop lets go of a holder. It cancels nothing: transfers of the holder go on,
// and steps that name it may still be launched; both keep the blocks in
// quarantine for as long as they need them.
func (g *Gate) Drop(h Holder) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.core.Drop(h)
	if err == nil {
		g.dropped(h)
	}
	return err
}
