package libnixl

import (
	"maps"
	"slices"

	"github.com/kvgate/kvgate/nixl"
)

// Recover gives back memory that transfers with p left poisoned.
//
// Proof that a failed transfer is quiet is the end of the backend that carried
// it, and the C ABI ends a backend with its agent only. So Recover destroys the
// native agent and makes it anew with the same backends, and registers
// everything again. All peers are forgotten, not p alone, and so is the agent
// by its peers: metadata has to be exchanged again in both directions, and a
// new generation begins for each. Registrations stay valid; lists and views
// are dead; prepared transfers are refused as those of an earlier generation.
//
// What is in flight with p, and whatever was canceled, ends with the backend:
// with [nixl.ErrDisconnected] or [nixl.ErrCanceled], quiet. So a peer that hangs
// holds nothing up: the memory of this agent is its own again. Of a write, bytes
// that have left may still reach the memory of the peer when it goes on.
//
// It is refused with [nixl.ErrBusy] while any other transfer of the agent is in
// flight, and with [nixl.ErrNoPeer] for a peer that there never was. Other calls
// of the agent wait for it, some tenths of a second. If the agent can not be
// made anew it is closed, and the error says why: its memory is quiet then, too.
func (a *Agent) Recover(p nixl.Peer) error {
	const op = "recover"
	a.peersMu.Lock()
	defer a.peersMu.Unlock()
	a.memMu.Lock()
	defer a.memMu.Unlock()
	a.life.Lock()
	defer a.life.Unlock()
	a.mu.Lock()
	for a.making > 0 {
		a.made.Wait()
	}
	now, _, _ := a.peers.Current(p.Name)
	ending, others := a.underWay(p)
	var err error
	switch {
	case a.closed:
		err = nixl.Refuse(op, p.Name, nixl.ErrClosed, "agent %s", a.name)
	case p.Generation == 0 || p.Generation > now.Generation:
		err = nixl.Refuse(op, p.Name, nixl.ErrNoPeer, "generation %d", p.Generation)
	case others > 0:
		err = nixl.Refuse(op, p.Name, nixl.ErrBusy, "%d transfers of agent %s with others are in flight and not canceled", others, a.name)
	}
	if err != nil {
		a.mu.Unlock()
		return err
	}
	// From here on every transfer is refused, for want of its peer.
	a.peers.Lost(a.self)
	for name, r := range a.remotes {
		a.peers.Lost(r.peer)
		delete(a.remotes, name)
	}
	a.mu.Unlock()
	configs := make([]BackendConfig, 0, len(a.backends))
	for _, b := range a.allBackends() {
		configs = append(configs, b.config)
	}
	a.stop()
	a.mu.Lock()
	for _, t := range ending {
		t.ended(op)
	}
	a.registry.Quieted()
	a.aliases.clear()
	a.mu.Unlock()
	if err = a.restart(configs); err == nil {
		a.mu.Lock()
		a.peers.Found(a.self)
		a.mu.Unlock()
	} else {
		if a.h != nil {
			a.end()
		}
		a.mu.Lock()
		a.closed = true
		a.registry.Clear()
		a.mu.Unlock()
		a.open.Close()
		a.kept.close()
	}
	return err
}

// underWay returns the transfers in flight that may end with their backend, and
// how many may not. The caller holds all locks, so that none of them is in a
// call of the library.
func (a *Agent) underWay(p nixl.Peer) (ending []*Transfer, others int) {
	for t := a.requests; t != nil; t = t.next {
		switch {
		case t.status != nixl.InProgress:
		case t.canceled || t.spec.Peer.Name == p.Name:
			ending = append(ending, t)
		default:
			others++
		}
	}
	return ending, others
}

// ended ends a transfer that was in flight: nothing is left that could carry
// it. The caller holds mu.
func (t *Transfer) ended(op string) {
	err := nixl.Canceled(op, t.spec.Peer.Name)
	if !t.canceled {
		err.Err = nixl.ErrDisconnected
	}
	err.Detail = "its backend was destroyed"
	t.status, t.err = nixl.Failed, err
	t.unpin(true)
}

// restart makes the native agent again and registers what is registered.
func (a *Agent) restart(configs []BackendConfig) error {
	if err := a.start(configs); err != nil {
		return err
	}
	a.mu.Lock()
	byType := map[nixl.MemoryType][]*nixl.Entry{}
	for _, e := range a.registry.Containers() {
		byType[e.Region.Type] = append(byType[e.Region.Type], e)
	}
	a.mu.Unlock()
	for _, m := range slices.Sorted(maps.Keys(byType)) {
		regions := make([]nixl.Descriptor, 0, len(byType[m]))
		for _, e := range byType[m] {
			regions = append(regions, e.Region.Descriptor)
		}
		s, err := a.d.register(a.h, m, regions)
		if err = failed("recover", "", s, err); err != nil {
			return err
		}
	}
	return nil
}

// Poisoned returns the registered regions on which transfers ended without
// proof that they touch them no more.
func (a *Agent) Poisoned() []nixl.Region {
	a.mu.Lock()
	defer a.mu.Unlock()
	var p []nixl.Region
	for _, r := range a.registry.Regions(nil) {
		if a.registry.Entry(r).Poisoned() > 0 {
			p = append(p, r)
		}
	}
	return p
}
