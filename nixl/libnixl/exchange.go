package libnixl

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/kvgate/kvgate/nixl"
)

// EtcdVariable lists the etcd servers that the library exchanges metadata
// through where no address is given. The library reads it when an agent is
// made.
const EtcdVariable = "NIXL_ETCD_ENDPOINTS"

// Publish sends the agent's metadata, without a checksum: to the listener of another agent, or,
// with the zero address, to etcd. The library sends it in the background and
// reports no failure; what is published is what is registered now.
func (a *Agent) Publish(to netip.AddrPort) error {
	return a.exchange("publish", "", to, func(opt handle) (status, error) { return a.d.send(a.h, opt) })
}

// PublishPartial is Publish for these regions only, which must be registered.
func (a *Agent) PublishPartial(m nixl.MemoryType, regions []nixl.Descriptor, to netip.AddrPort) error {
	const op = "publish"
	a.mu.Lock()
	for _, d := range regions {
		if e := a.registry.Entry(nixl.Region{Type: m, Descriptor: d}); e == nil || e.Cookie == nil {
			a.mu.Unlock()
			return nixl.Refuse(op, "", nixl.ErrNotRegistered, "%s %s", m, d)
		}
	}
	a.mu.Unlock()
	return a.exchange(op, "", to, func(opt handle) (status, error) { return a.d.sendPartial(a.h, m, regions, opt) })
}

// Withdraw takes back what was published: agents that learned it by the library
// forget this one. The address is as for Publish.
func (a *Agent) Withdraw(from netip.AddrPort) error {
	return a.exchange("withdraw", "", from, func(opt handle) (status, error) { return a.d.withdraw(a.h, opt) })
}

func (a *Agent) exchange(op, peer string, to netip.AddrPort, fn func(opt handle) (status, error)) error {
	if err := a.enter(op); err != nil {
		return err
	}
	defer a.leave()
	var o callOptions
	if to.IsValid() {
		o.ip, o.port = to.Addr().String(), to.Port()
	}
	opt, s, err := a.d.options(&o)
	if err = failed(op, peer, s, err); err != nil {
		return err
	}
	defer a.d.freeOptions(opt)
	s, err = fn(opt)
	if err == nil && s < 0 && !to.IsValid() {
		return nixl.Refuse(op, peer, nixl.ErrUnavailable, "no address, and no etcd (%s): %s", EtcdVariable, s)
	}
	return failed(op, peer, s, err)
}

// FetchPeer makes a peer known by what it published: it asks the peer's
// listener at that address, or etcd with the zero address, until the library
// has the metadata, ctx is done or the deadline has come (an instant of the
// agent's clock).
//
// The library keeps the regions of such a peer to itself; transfers with it are
// checked by asking it. Lives of the peer can not be told apart by what was
// published, so each call that finds the peer unknown to the library begins a
// new generation.
//
// When the wait is over the error is an [nixl.ErrNoPeer], and the end of ctx or
// a [context.DeadlineExceeded], too. What was published is parsed by the library
// alone: a damaged value can abort the process.
func (a *Agent) FetchPeer(ctx context.Context, name string, from netip.AddrPort, deadline time.Duration) (nixl.Peer, error) {
	const op = "fetch peer"
	if err := cleanName(op, name); err != nil {
		return nixl.Peer{}, err
	}
	if name == a.name {
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "an agent can not fetch itself")
	}
	p, known, err := a.beginFetch(op, name)
	if known || err != nil {
		return p, err
	}
	defer a.endFetch(name)
	var next time.Duration
	for {
		// What is not published yet has to be asked for again.
		if now := a.clk.Now(); now >= next {
			err := a.exchange(op, name, from, func(opt handle) (status, error) { return a.d.fetch(a.h, name, opt) })
			if err != nil {
				return nixl.Peer{}, err
			}
			next = now + askAgain
		}
		known, err := a.known(op, name)
		if err != nil {
			return nixl.Peer{}, err
		}
		if known {
			return a.meetFetched(name)
		}
		if a.clk.Now() >= deadline {
			return nixl.Peer{}, notFetched(op, name, context.DeadlineExceeded)
		}
		if err := a.clk.Sleep(ctx, lookAgain); err != nil {
			return nixl.Peer{}, notFetched(op, name, err)
		}
	}
}

// notFetched is what to say when the wait is over: the library reads what was
// published in the background and tells nobody what was wrong with it.
func notFetched(op, name string, end error) error {
	return nixl.Refuse(op, name, fmt.Errorf("%w: %w", nixl.ErrNoPeer, end),
		"nothing was published under this name, or not metadata that the library can read")
}

// beginFetch settles what is known of the name and keeps others from it, unless
// the peer is known already or the name is taken.
func (a *Agent) beginFetch(op, name string) (p nixl.Peer, known bool, err error) {
	a.peersMu.Lock()
	defer a.peersMu.Unlock()
	if p, known, err = a.alreadyFetched(op, name); known || err != nil {
		return p, known, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fetching[name] {
		return p, false, nixl.Refuse(op, name, nixl.ErrBusy, "it is being fetched")
	}
	a.fetching[name] = true
	return p, false, nil
}

func (a *Agent) endFetch(name string) {
	a.mu.Lock()
	delete(a.fetching, name)
	a.mu.Unlock()
}

const (
	lookAgain = 5 * time.Millisecond
	askAgain  = 500 * time.Millisecond
)

func (a *Agent) known(op, name string) (bool, error) {
	if err := a.enter(op); err != nil {
		return false, err
	}
	defer a.leave()
	s, err := a.d.check(a.h, name, nixl.DRAM, nil)
	return s == statusOK, err
}

// alreadyFetched settles what is known of the name before it is asked for.
func (a *Agent) alreadyFetched(op, name string) (nixl.Peer, bool, error) {
	has, err := a.known(op, name)
	if err != nil {
		return nixl.Peer{}, false, err
	}
	a.mu.Lock()
	p, known, busy := a.peers.Current(name)
	r := a.remotes[name]
	if known && !has {
		a.peers.Lost(p) // the library forgot it: it left, or its connection failed
		known = false
	}
	a.mu.Unlock()
	switch {
	case known && !r.fetched:
		return p, false, nixl.Refuse(op, name, nixl.ErrInvalid, "the peer was added by its metadata; remove it first")
	case known:
		return p, true, nil
	case busy > 0:
		return p, false, nixl.Refuse(op, name, nixl.ErrBusy, "%d transfers with generation %d in flight", busy, p.Generation)
	}
	if a.enter(op) == nil {
		a.forget(name)
		a.leave()
	}
	return p, false, nil
}

func (a *Agent) meetFetched(name string) (nixl.Peer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old, _, _ := a.peers.Current(name)
	life := fmt.Sprintf("fetched %d", old.Generation+1)
	p, _, err := a.peers.Add(name, life)
	if err != nil {
		return p, err
	}
	a.remotes[name] = &remote{peer: p, life: life, fetched: true, name: zeroEnded(name)}
	return p, nil
}

// Known reports whether the library still has the metadata of a peer. It drops
// it when the connection fails and, for a fetched peer, when the peer withdraws
// what it published.
func (a *Agent) Known(p nixl.Peer) (bool, error) {
	const op = "known"
	a.mu.Lock()
	err := a.peers.Check(op, p)
	a.mu.Unlock()
	if err != nil {
		return false, nil
	}
	return a.known(op, p.Name)
}
