package nic

import (
	"sync"
	"sync/atomic"

	"github.com/kvgate/kvgate/nixl"
)

// agent is a nixl.Agent whose transfers are reads from the one peer there is,
// carried by copy engines. It has no notifications.
type agent struct {
	carrier carrier

	mu       sync.Mutex
	registry nixl.Registry
	inFlight int
	closed   bool
}

// carrier moves the bytes of transfers.
type carrier interface {
	// post starts a transfer. An error for which nixl.Quiet does not hold says
	// that some of it may be under way.
	post(s *nixl.Spec) (flight, error)
	// activity is [nixl.Agent]'s.
	activity() uint64
	// gone reports that nothing moves any more, whatever is in flight.
	gone() bool
}

// flight is a posted transfer.
type flight interface {
	// poll reports whether it is over, with its error.
	poll() (over bool, err error)
}

var prefill = nixl.Peer{Name: "prefill", Generation: 1}

func (a *agent) Name() string { return "decode" }

func (a *agent) Register(m nixl.MemoryType, regions []nixl.Descriptor) (nixl.Registration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.registry.Add(m, regions); err != nil {
		return nil, err
	}
	return &registration{a: a, m: m, regions: regions}, nil
}

func (a *agent) Metadata() ([]byte, error) {
	return nil, nixl.Refuse("metadata", "", nixl.ErrUnavailable, "copy engines have none")
}

func (a *agent) AddPeer([]byte) (nixl.Peer, error) {
	return nixl.Peer{}, nixl.Refuse("add peer", "", nixl.ErrUnavailable, "copy engines have one peer")
}

func (a *agent) RemovePeer(p nixl.Peer) error {
	return nixl.Refuse("remove peer", p.Name, nixl.ErrUnavailable, "copy engines have one peer")
}

func (a *agent) Notify(p nixl.Peer, _ []byte) error {
	return nixl.Refuse("notify", p.Name, nixl.ErrUnavailable, "copy engines carry no messages")
}

func (a *agent) Notifications(dst []nixl.Notification) ([]nixl.Notification, error) { return dst, nil }

func (a *agent) Activity() uint64 { return a.carrier.activity() }

func (a *agent) NewTransfer(s nixl.Spec) (nixl.Transfer, error) {
	const op = "transfer"
	if err := s.Check(); err != nil {
		return nil, err
	}
	switch {
	case s.Op != nixl.Read || s.Notification != nil:
		return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrInvalid, "copy engines do reads without notification")
	case s.Peer != prefill:
		return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrNoPeer, "there is %v alone", prefill)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrClosed, "agent")
	}
	for i, l := range s.Local {
		if _, ok := a.registry.Find(s.LocalMemory, l); !ok {
			return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrNotRegistered, "local entry %d: %s %s", i, s.LocalMemory, l)
		}
	}
	return &transfer{a: a, spec: s.Clone()}, nil
}

func (a *agent) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inFlight > 0 && !a.carrier.gone() {
		return &nixl.Error{Op: "close", Err: nixl.ErrBusy, Detail: "agent"}
	}
	a.closed = true
	a.registry.Clear()
	return nil
}

type registration struct {
	a       *agent
	m       nixl.MemoryType
	regions []nixl.Descriptor
	closed  bool
}

func (r *registration) Regions() []nixl.Descriptor {
	return append([]nixl.Descriptor(nil), r.regions...)
}

func (r *registration) Close() error {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	if r.closed || r.a.closed {
		return nil
	}
	if r.a.inFlight > 0 {
		return &nixl.Error{Op: "deregister", Err: nixl.ErrBusy}
	}
	r.closed = true
	_, err := r.a.registry.Remove(r.m, r.regions)
	return err
}

// transfer implements nixl.Transfer and nixl.Owned.
type transfer struct {
	a      *agent
	spec   nixl.Spec
	flight flight
	status nixl.Status
	err    error
	closed bool

	canceled atomic.Bool
}

func (t *transfer) Spec() *nixl.Spec  { return &t.spec }
func (t *transfer) Agent() nixl.Agent { return t.a }

// Cancel withdraws a transfer that was not posted. Copies can't be stopped.
func (t *transfer) Cancel() { t.canceled.Store(true) }

func (t *transfer) Post() error {
	switch {
	case t.canceled.Load():
		return nixl.Refuse("post", t.spec.Peer.Name, nixl.ErrCanceled, "transfer")
	case t.closed:
		return nixl.Refuse("post", t.spec.Peer.Name, nixl.ErrClosed, "transfer")
	case t.status == nixl.InProgress:
		return &nixl.Error{Op: "post", Peer: t.spec.Peer.Name, Err: nixl.ErrBusy, Detail: "posted already"}
	}
	f, err := t.a.carrier.post(&t.spec)
	if err != nil {
		t.status, t.err = nixl.Failed, err
		return err
	}
	t.flight, t.status, t.err = f, nixl.InProgress, nil
	t.a.count(1)
	return nil
}

func (t *transfer) Status() (nixl.Status, error) {
	if t.status == nixl.Idle && t.canceled.Load() {
		t.status, t.err = nixl.Failed, nixl.Canceled("status", t.spec.Peer.Name)
	}
	if t.status != nixl.InProgress {
		return t.status, t.err
	}
	over, err := t.flight.poll()
	switch {
	case err != nil:
		t.status, t.err = nixl.Failed, err
	case over && t.canceled.Load():
		t.status, t.err = nixl.Failed, nixl.Canceled("status", t.spec.Peer.Name)
	case over:
		t.status = nixl.Done
	default:
		return t.status, nil
	}
	t.a.count(-1)
	return t.status, t.err
}

func (t *transfer) Close() error {
	if t.status == nixl.InProgress {
		return &nixl.Error{Op: "close", Peer: t.spec.Peer.Name, Err: nixl.ErrBusy, Detail: "transfer"}
	}
	t.closed = true
	return nil
}

func (a *agent) count(n int) {
	a.mu.Lock()
	a.inFlight += n
	a.mu.Unlock()
}
