package libnixl

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// exchange is how an agent gets metadata to others and theirs to it: the ways of
// the library (keys in etcd, and the protocol of its listener), gone without it.
// The library would hand UCX what comes, unread.
type exchange struct {
	etcd    *etcdClient // nil: none
	watch   *withdrawals
	listen  *listener // nil: none
	sockets sockets
}

func (a *Agent) startExchange() error {
	const op = "new agent"
	etcd, err := newEtcdClient(a.cfg.Etcd, a.cfg.EtcdNamespace)
	if err != nil {
		return nixl.Refuse(op, "", nixl.ErrInvalid, "%v", err)
	}
	if a.cfg.Listen {
		if a.exchange.listen, err = listen(a, a.cfg.ListenPort); err != nil {
			return nixl.Refuse(op, "", nixl.ErrUnavailable, "%v", err)
		}
	}
	if etcd != nil {
		a.exchange.etcd = etcd
		a.exchange.watch = &withdrawals{a: a, etcd: etcd, fetched: map[string]fetchedPeer{}}
	}
	return nil
}

// stopExchange is called without locks held, once the agent is closed.
func (a *Agent) stopExchange() {
	if a.exchange.listen != nil {
		a.exchange.listen.close()
	}
	a.exchange.sockets.close()
	if a.exchange.etcd != nil {
		a.exchange.watch.close()
		a.exchange.etcd.close()
	}
}

const (
	never = clock.Never
	// exchangeTimeout is how long etcd or a listener may take for one request.
	exchangeTimeout = 5 * time.Second
)

// Publish makes the agent's metadata, as it is now, known: to the agent whose
// listener is at that address, or, with the zero address, to all that look into
// etcd. An agent of the library listens and looks in the same way.
//
// Without an answer within five seconds it fails, as when etcd is away or says
// no, with [nixl.ErrUnavailable]; ctx ends it earlier. What was sent to a
// listener has been read by it then, but it does not say whether it took it.
func (a *Agent) Publish(ctx context.Context, to netip.AddrPort) error {
	blob, err := a.Metadata()
	if err != nil {
		return err
	}
	return a.publish(ctx, wholeLabel, blob, to)
}

// PublishPartial publishes these regions only, which must be registered. They add
// to what is known of the agent already, as [Agent.PartialMetadata] does. In etcd
// they stand under the label, until something else is published there; "metadata"
// is the label of the whole. Over a socket it is not used.
func (a *Agent) PublishPartial(ctx context.Context, label string, m nixl.MemoryType, regions []nixl.Descriptor, to netip.AddrPort) error {
	const op = "publish"
	if !to.IsValid() && !goodLabel(label) {
		return nixl.Refuse(op, "", nixl.ErrInvalid, "label %q", label)
	}
	blob, err := a.PartialMetadata(m, regions)
	if err != nil {
		return err
	}
	return a.publish(ctx, label, blob, to)
}

func (a *Agent) publish(ctx context.Context, label string, blob []byte, to netip.AddrPort) error {
	const op = "publish"
	if to.IsValid() {
		return a.tell(ctx, op, to, loadCommand, blob)
	}
	return a.askEtcd(ctx, op, "", func(ctx context.Context, c *etcdClient) error {
		return c.put(ctx, a.name, label, blob)
	})
}

// Withdraw takes back what was published: agents that learned it from etcd, or
// the one at that address, forget this one. Errors are as for Publish. In etcd it
// takes the agent's own keys only; an agent of another binding that leaves also
// takes those of names that go on behind its own and a slash.
func (a *Agent) Withdraw(ctx context.Context, from netip.AddrPort) error {
	const op = "withdraw"
	if from.IsValid() {
		return a.tell(ctx, op, from, leaveCommand, []byte(a.name))
	}
	return a.askEtcd(ctx, op, "", func(ctx context.Context, c *etcdClient) error { return c.remove(ctx, a.name) })
}

// FetchPeer makes a peer known by what it published: it asks the listener at
// that address, or etcd with the zero address, until there is something, ctx is
// done or the deadline has come (an instant of the agent's clock). Of an agent
// that was killed etcd keeps what it published: when it can not be met any more
// that is not the end, but waits for what is published next. What it finds goes
// through [Agent.AddPeer], whose errors it returns: of what is damaged,
// [nixl.ErrInvalid] with the key or the address that it came from.
//
// When the wait is over the error is an [nixl.ErrNoPeer], and the end of ctx or
// a [context.DeadlineExceeded], too; it says why, where etcd or the listener
// was away.
func (a *Agent) FetchPeer(ctx context.Context, name string, from netip.AddrPort, deadline time.Duration) (nixl.Peer, error) {
	return a.FetchPartial(ctx, name, wholeLabel, from, deadline)
}

// FetchPartial is FetchPeer for what a known peer published under a label, which
// adds to its regions.
func (a *Agent) FetchPartial(ctx context.Context, name, label string, from netip.AddrPort, deadline time.Duration) (nixl.Peer, error) {
	const op = "fetch peer"
	if err := cleanName(op, name); err != nil {
		return nixl.Peer{}, err
	}
	if name == a.name {
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "an agent can not fetch itself")
	}
	if label != wholeLabel && !goodLabel(label) {
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "label %q", label)
	}
	try := func(ctx context.Context) (nixl.Peer, error) { return a.fetchFrom(ctx, op, name, from) }
	if !from.IsValid() {
		var dead leftover
		try = func(ctx context.Context) (nixl.Peer, error) { return a.fetchEtcd(ctx, op, name, label, &dead) }
	}
	var why error // the last look had no result, but for the end of the wait
	for pause := lookAgain; ; pause = min(2*pause, askAgain) {
		p, err := nixl.Peer{}, a.enter(op)
		if err != nil {
			return p, err
		}
		a.leave()
		err = a.bounded(ctx, op, deadline, func(ctx context.Context) (err error) {
			p, err = try(ctx)
			return err
		})
		if err == nil || !mayCome(err) {
			return p, err
		}
		now := a.clk.Now()
		if why == nil || now < deadline && ctx.Err() == nil {
			why = err
		}
		if now >= deadline {
			return nixl.Peer{}, notFetched(op, name, context.DeadlineExceeded, why)
		}
		if end := a.clk.Sleep(ctx, min(pause, deadline-now)); end != nil {
			return nixl.Peer{}, notFetched(op, name, end, why)
		}
	}
}

const (
	lookAgain = 5 * time.Millisecond
	askAgain  = 500 * time.Millisecond
)

// goodLabel reports whether a label of partial metadata can be the last part of a
// key of its own.
func goodLabel(label string) bool {
	return label != "" && label != wholeLabel && !strings.ContainsAny(label, "/\x00")
}

// notYet is why there is nothing to fetch for now.
type notYet struct{ error }

// mayCome reports whether it may become better: nothing is published, the one who
// is asked is away, or what is there is of a life that has ended.
func mayCome(err error) bool {
	return errors.As(err, new(notYet)) || errors.Is(err, nixl.ErrStalePeer) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func notFetched(op, name string, end, why error) error {
	return nixl.Refuse(op, name, fmt.Errorf("%w: %w", nixl.ErrNoPeer, end), "%v", why)
}

// leftover is a value in etcd whose agent can not be met, as one leaves it that
// was killed. It is not tried again until something else is published.
type leftover struct {
	changed int64 // its revision; 0: there is none
	err     error
}

func (a *Agent) fetchEtcd(ctx context.Context, op, name, label string, dead *leftover) (nixl.Peer, error) {
	c := a.exchange.etcd
	if c == nil {
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrUnavailable, "no address, and no etcd (%s)", EtcdVariable)
	}
	key := c.key(name, label)
	kv, revision, err := c.get(ctx, key, false)
	switch {
	case errors.Is(err, errTooLong):
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "etcd key %s: %v", key, err)
	case err != nil:
		return nixl.Peer{}, notYet{err}
	case kv == nil:
		return nixl.Peer{}, notYet{fmt.Errorf("nothing is published in etcd as %s", key)}
	}
	if dead.changed == kv.Changed {
		return nixl.Peer{}, notYet{dead.err}
	}
	p, err := a.take(ctx, op, name, "etcd key "+key, kv.Value)
	if unmet(err) && ctx.Err() == nil {
		if !errors.Is(err, nixl.ErrUnavailable) { // which may answer yet
			*dead = leftover{kv.Changed, err}
		}
		return nixl.Peer{}, notYet{err}
	}
	if err == nil && label == wholeLabel {
		a.exchange.watch.met(ctx, p, revision)
	}
	return p, err
}

// unmet reports whether an error of AddPeer is of well-formed metadata of an agent
// that is gone, or does not answer.
func unmet(err error) bool {
	for _, cause := range []error{nixl.ErrStalePeer, nixl.ErrBackend, nixl.ErrDisconnected, nixl.ErrUnavailable} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// take adds a peer by what was found at a place; it has to be of that name.
func (a *Agent) take(ctx context.Context, op, name, place string, blob []byte) (nixl.Peer, error) {
	refuse := func(cause error, format string, args ...any) (nixl.Peer, error) {
		return nixl.Peer{}, nixl.Refuse(op, name, cause, "%s: %s", place, fmt.Sprintf(format, args...))
	}
	if len(blob) == 0 {
		return refuse(nixl.ErrInvalid, "it is empty")
	}
	m, err := ParseMetadata(blob)
	if err == nil && m.Agent != name {
		return refuse(nixl.ErrInvalid, "it is of agent %q", m.Agent)
	}
	p, err := a.AddPeerContext(ctx, blob)
	if e := (*nixl.Error)(nil); errors.As(err, &e) {
		return refuse(e.Err, "%s", e.Detail)
	}
	return p, err
}

// askEtcd asks once. Whatever goes wrong is an ErrUnavailable with the reason.
func (a *Agent) askEtcd(ctx context.Context, op, peer string, fn func(ctx context.Context, c *etcdClient) error) error {
	if err := a.enter(op); err != nil {
		return err
	}
	a.leave()
	c := a.exchange.etcd
	if c == nil {
		return nixl.Refuse(op, peer, nixl.ErrUnavailable, "no address, and no etcd (%s)", EtcdVariable)
	}
	err := a.bounded(ctx, op, a.clk.Now()+exchangeTimeout, func(ctx context.Context) error { return fn(ctx, c) })
	return unavailable(op, peer, err)
}

func unavailable(op, peer string, err error) error {
	if err == nil {
		return nil
	}
	return nixl.Refuse(op, peer, fmt.Errorf("%w: %w", nixl.ErrUnavailable, err), "")
}

// bounded runs fn, which waits for the network, until it returns, ctx is done or
// the deadline has come, which is an instant of the agent's clock. It does not
// return before fn has.
func (a *Agent) bounded(ctx context.Context, what string, deadline time.Duration, fn func(ctx context.Context) error) error {
	one, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var done atomic.Bool
	var err error
	a.clk.Go(what+" of "+a.name, func() {
		err = fn(one)
		done.Store(true)
		a.clk.Notify()
	})
	over := clock.Func(what, done.Load)
	if end := a.clk.WaitUntil(ctx, over, deadline); end != nil {
		cancel(end)
		_ = a.clk.WaitUntil(context.WithoutCancel(ctx), over, never)
	}
	return err
}

// lost makes a peer unknown that has left. What is in flight with it goes on,
// and the library forgets it with the next of its name.
func (a *Agent) lost(p nixl.Peer) {
	a.peersMu.Lock()
	defer a.peersMu.Unlock()
	if a.enter("lost") != nil {
		return
	}
	defer a.leave()
	a.mu.Lock()
	if a.peers.Check("lost", p) != nil {
		a.mu.Unlock()
		return
	}
	a.peers.Lost(p)
	_, _, busy := a.peers.Current(p.Name)
	a.mu.Unlock()
	if busy == 0 {
		a.forget(p.Name)
	}
}

// Peer returns the peer of a name as it is known now, such as one that made
// itself known to the listener.
func (a *Agent) Peer(name string) (nixl.Peer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, known, _ := a.peers.Current(name)
	if !known {
		return nixl.Peer{}, nixl.Refuse("peer", name, nixl.ErrNoPeer, "")
	}
	return p, nil
}

// Known reports whether the peer is known and the library still has its
// metadata. It drops it when the connection fails; a peer from etcd or a
// listener is unknown, too, once it has withdrawn what it published.
func (a *Agent) Known(p nixl.Peer) (bool, error) {
	const op = "known"
	a.mu.Lock()
	err := a.peers.Check(op, p)
	a.mu.Unlock()
	if err != nil {
		return false, nil
	}
	if err := a.enter(op); err != nil {
		return false, err
	}
	defer a.leave()
	s, err := a.d.check(a.h, a.aliases.of(p.Name), nixl.DRAM, nil)
	return s == statusOK, err
}

func (a *Agent) isClosed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}
