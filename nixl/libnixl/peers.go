package libnixl

import (
	"context"
	"maps"
	"net/netip"
	"strings"

	"github.com/kvgate/kvgate/nixl"
)

// AddPeer reads the blob of a peer, from this binding or any other of the
// library, and makes the peer known.
//
// A blob of the same life replaces what is known of the peer's memory. Where it
// lacks regions that were known, or knows them under new keys, the library can
// only forget the peer and learn it anew, so this is refused with
// [nixl.ErrBusy] while transfers with it are in flight; its generation stays. So
// is a blob without a checksum that adds regions: one that the library can not
// load makes it drop the peer, and with a checksum that does not happen. A blob of
// a life that another one followed is refused with [nixl.ErrStalePeer].
// A partial blob without connections adds regions to a known peer.
//
// A blob that is not well formed, whose checksum does not hold, or whose UCX
// address is of another version than the agent's own is refused with
// [nixl.ErrInvalid]; both sides need the same UCX_ADDRESS_VERSION. In one without
// a checksum the UCX address and each key must be as UCX 1.18 to 1.23 writes
// them; the error says which byte is not.
//
// Where UCX may connect over TCP, which is everywhere but where both sides have
// InfiniBand, the peer's addresses are tried first, since UCX holds the agent while
// it connects. If none answers within [Config.ConnectTimeout] the peer is refused
// with [nixl.ErrUnavailable], which names the addresses, and nothing has changed.
// Other calls of the agent go on meanwhile.
func (a *Agent) AddPeer(metadata []byte) (nixl.Peer, error) {
	return a.AddPeerContext(context.Background(), metadata)
}

// AddPeerContext is AddPeer, where the end of ctx ends the wait for an answer of
// the peer's addresses: with [nixl.ErrUnavailable] and the cause. Once the library
// is called it is not cut short.
func (a *Agent) AddPeerContext(ctx context.Context, metadata []byte) (nixl.Peer, error) {
	const op = "add peer"
	m, to, err := a.read(op, metadata)
	if err == nil {
		err = a.answers(ctx, op, m.Agent, to)
	}
	if err != nil {
		return nixl.Peer{}, err
	}
	a.peersMu.Lock()
	defer a.peersMu.Unlock()
	if err := a.enter(op); err != nil {
		return nixl.Peer{}, err
	}
	defer a.leave()
	ucx, err := a.admit(op, m) // again: of this agent, which may be another since
	if err != nil {
		return nixl.Peer{}, err
	}
	regions, err := m.registry()
	if err != nil {
		return nixl.Peer{}, err
	}
	if m.life() == "" {
		return a.extend(op, m)
	}
	return a.meet(op, m, ucx, regions)
}

// NameIn returns the name of the agent that the metadata is of. The error is as for
// [ParseMetadata].
func (a *Agent) NameIn(metadata []byte) (string, error) {
	m, err := ParseMetadata(metadata)
	if err != nil {
		return "", err
	}
	return m.Agent, nil
}

// read reads the blob of a peer. It returns the addresses of which one has to
// answer before UCX may connect; none: UCX will not, or in another way.
func (a *Agent) read(op string, metadata []byte) (*Metadata, []netip.AddrPort, error) {
	a.peersMu.Lock()
	defer a.peersMu.Unlock()
	if err := a.enter(op); err != nil {
		return nil, nil, err
	}
	defer a.leave()
	m, err := ParseMetadata(metadata)
	if err != nil {
		return nil, nil, err
	}
	ucx, err := a.admit(op, m)
	if err != nil {
		return nil, nil, err
	}
	if _, err := m.registry(); err != nil {
		return nil, nil, err
	}
	life := m.life()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch was := a.remotes[m.Agent]; {
	case life == "" || a.past[m.Agent][life] || ucx == nil || a.address.ucx == nil:
		return m, nil, nil
	case was != nil && was.life == life && a.peers.Check(op, was.peer) == nil && was.covers(m.keys()):
		return m, nil, nil // connected already
	}
	return m, a.address.ucx.reachesByTCP(ucx), nil
}

// admit refuses a blob that this agent does not take, and returns the address in
// it, nil where there is none that can be read. The caller holds peersMu and has
// entered.
func (a *Agent) admit(op string, m *Metadata) (*ucxAddress, error) {
	if m.Agent == a.name {
		return nil, nixl.Refuse(op, m.Agent, nixl.ErrInvalid, "the metadata is the agent's own")
	}
	if a.cfg.RequireSeal && !m.sealed {
		return nil, nixl.Refuse(op, m.Agent, nixl.ErrInvalid, "the metadata has no checksum")
	}
	if strings.Contains(m.Agent, aliasMark) {
		return nil, nixl.Refuse(op, m.Agent, nixl.ErrInvalid, "the name has %q in it", aliasMark)
	}
	return a.checkUCX(op, m)
}

// meet handles a blob with connections. The caller holds peersMu.
func (a *Agent) meet(op string, m *Metadata, ucx *ucxAddress, regions nixl.Registry) (nixl.Peer, error) {
	life := m.life()
	reached := map[string]bool{}
	for _, c := range m.Connections {
		reached[c.Backend] = true
	}
	if err := a.loadable(op, m, reached); err != nil {
		return nixl.Peer{}, err
	}
	a.mu.Lock()
	if a.past[m.Agent][life] {
		a.mu.Unlock()
		return nixl.Peer{}, nixl.Refuse(op, m.Agent, nixl.ErrStalePeer, "the metadata is of a life that has ended")
	}
	old, _, busy := a.peers.Current(m.Agent)
	p, fresh, err := a.peers.Add(m.Agent, life)
	if err != nil {
		a.mu.Unlock()
		return nixl.Peer{}, err
	}
	was := a.remotes[m.Agent]
	keys := m.keys()
	// The library may still know a life that is over here.
	forget := fresh && was != nil
	if !fresh && !was.covers(keys) {
		if busy > 0 {
			a.mu.Unlock()
			return nixl.Peer{}, nixl.Refuse(op, m.Agent, nixl.ErrBusy, "memory went or changed, with %d transfers in flight", busy)
		}
		forget = true
	}
	anew := fresh || forget
	hidden := anew
	if !anew && was.risks(m, keys) {
		if busy > 0 {
			a.mu.Unlock()
			return nixl.Peer{}, refuseRisk(op, m.Agent, busy)
		}
		hidden = true
	}
	if hidden {
		a.peers.Lost(p) // until the library has read the blob
	}
	a.mu.Unlock()
	if forget {
		a.forget(m.Agent)
	}
	if err := a.load(op, p, m, anew); err != nil {
		return nixl.Peer{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if hidden {
		a.peers.Found(p)
	}
	if fresh && was != nil && was.peer == old && was.life != "" && was.life != life {
		if a.past[m.Agent] == nil {
			a.past[m.Agent] = map[string]bool{}
		}
		a.past[m.Agent][was.life] = true
	}
	a.remotes[m.Agent] = &remote{peer: p, life: life, regions: regions, keys: keys, ucx: ucx, reached: reached, name: zeroEnded(a.aliases.of(m.Agent))}
	return p, nil
}

// covers reports whether everything that was known of the peer's memory is
// still so.
func (r *remote) covers(keys map[keyOf]string) bool {
	for k, v := range r.keys {
		if now, ok := keys[k]; !ok || now != v {
			return false
		}
	}
	return true
}

// extend handles a partial blob.
func (a *Agent) extend(op string, m *Metadata) (nixl.Peer, error) {
	a.mu.Lock()
	p, known, _ := a.peers.Current(m.Agent)
	was := a.remotes[m.Agent]
	a.mu.Unlock()
	if !known || was == nil {
		return nixl.Peer{}, nixl.Refuse(op, m.Agent, nixl.ErrNoPeer, "the metadata is partial and has no connections")
	}
	keys := m.keys()
	for k, v := range keys {
		if old, ok := was.keys[k]; ok && old != v {
			return nixl.Peer{}, nixl.Refuse(op, m.Agent, nixl.ErrInvalid, "%s has another key now: the whole metadata is needed", k.region)
		}
	}
	if err := a.loadable(op, m, was.reached); err != nil {
		return nixl.Peer{}, err
	}
	a.mu.Lock()
	if _, _, busy := a.peers.Current(m.Agent); was.risks(m, keys) {
		if busy > 0 {
			a.mu.Unlock()
			return nixl.Peer{}, refuseRisk(op, m.Agent, busy)
		}
		a.peers.Lost(p) // until the library has read the blob
	}
	a.mu.Unlock()
	if err := a.load(op, p, m, false); err != nil {
		return nixl.Peer{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.peers.Found(p)
	all := maps.Clone(was.keys)
	for k, v := range keys {
		if err := was.regions.Learn(k.region); err != nil {
			return nixl.Peer{}, err
		}
		all[k] = v
	}
	was.keys = all
	return p, nil
}

// forget makes the library forget a peer that no transfer in flight is with.
// The caller holds peersMu.
func (a *Agent) forget(name string) {
	a.dropRequests(func(t *Transfer) bool { return t.spec.Peer.Name == name })
	a.dropLists(func(l *List) bool { return l.peer.Name == name })
	// It says "not found" where it has dropped the peer already.
	_, _ = a.d.invalidate(a.h, a.aliases.of(name))
}

// RemovePeer forgets a peer and closes the connection to it. The peer is not
// told.
func (a *Agent) RemovePeer(p nixl.Peer) error {
	const op = "remove peer"
	a.peersMu.Lock()
	defer a.peersMu.Unlock()
	if err := a.enter(op); err != nil {
		return err
	}
	defer a.leave()
	if p.Name == a.name {
		return nixl.Refuse(op, p.Name, nixl.ErrInvalid, "an agent can not forget itself")
	}
	a.mu.Lock()
	err := a.peers.Remove(p)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	a.forget(p.Name)
	return nil
}

// Connect makes the connection to a peer now, which the first transfer would
// do else.
func (a *Agent) Connect(p nixl.Peer) error {
	const op = "connect"
	a.peersMu.Lock()
	defer a.peersMu.Unlock()
	if err := a.enter(op); err != nil {
		return err
	}
	defer a.leave()
	a.mu.Lock()
	err := a.peers.Check(op, p)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	s, err := a.d.connect(a.h, a.aliases.of(p.Name))
	if err == nil && s < 0 {
		return a.classify(op, p, s)
	}
	return failed(op, p.Name, s, err)
}
