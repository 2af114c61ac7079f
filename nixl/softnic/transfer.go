package softnic

import (
	"fmt"

	"github.com/kvgate/kvgate/nixl"
)

// transfer implements nixl.Transfer and nixl.Owned.
type transfer struct {
	a    *agent
	spec nixl.Spec
	segs []segment
	all  uint64 // bytes

	closed bool
	// canceled: no post any more, and what is in flight ends so.
	canceled bool

	status nixl.Status
	err    error
	posts  int
	// unquiet: an earlier post ended without proof of silence, so no later
	// error of this transfer can be one.
	unquiet bool
	flight  *flight
	fault   Fault
	id      uint64
}

// segment is one entry, with the memory that each side of it lies in.
type segment struct {
	local, remote uint64
	len           uint64
	device        uint64
	localMem      Memory
	entry         *nixl.Entry
	remoteMem     Memory // valid for remoteVersion of the peer's registry
	remoteVersion uint64
	step, scale   uint64 // bytes per chunk; how much each counts
}

func (a *agent) NewTransfer(s nixl.Spec) (nixl.Transfer, error) {
	const op = "transfer"
	a.f.world.Enter(a.f.o.MakeCost + times(len(s.Local), a.f.o.MakePerDescriptor))
	defer a.f.world.Exit()
	if err := a.open(op); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	for _, m := range []nixl.MemoryType{s.LocalMemory, s.RemoteMemory} {
		if !supported(m) {
			return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrInvalid, "softnic has no %s memory", m)
		}
	}
	if err := a.peers.Check(op, s.Peer); err != nil {
		return nil, err
	}
	c := a.conns[s.Peer]
	t := &transfer{a: a, spec: s.Clone(), segs: make([]segment, len(s.Local)), all: s.Bytes()}
	for i := range t.segs {
		l, r := s.Local[i], s.Remote[i]
		e, ok := a.registry.Find(s.LocalMemory, l)
		if !ok {
			return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrNotRegistered, "local entry %d: %s %s", i, s.LocalMemory, l)
		}
		if _, ok := c.regions.Find(s.RemoteMemory, r); !ok {
			return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrNotRegistered, "remote entry %d: %s %s is not in the peer's metadata", i, s.RemoteMemory, r)
		}
		t.segs[i] = segment{
			local: l.Addr, remote: r.Addr, len: l.Len, device: r.Device,
			entry: e, localMem: e.Container().Cookie.(Memory),
		}
	}
	return t, nil
}

func (t *transfer) Spec() *nixl.Spec  { return &t.spec }
func (t *transfer) Agent() nixl.Agent { return t.a }

// Post charges the caller in two parts, for the request and then for its
// entries: entries leave while later ones are still being posted.
func (t *transfer) Post() error {
	w := t.a.f.world
	w.Enter(t.a.f.o.PostCost)
	handed, err := t.launch()
	w.Exit()
	if handed > 0 {
		w.Enter(times(handed, t.a.f.o.PostPerDescriptor))
		w.Exit()
	}
	return err
}

// launch returns how many entries were handed over.
func (t *transfer) launch() (int, error) {
	a := t.a
	if err := t.mayPost(); err != nil {
		return 0, err
	}
	c, err := a.connect("post", t.spec.Peer)
	if err != nil {
		t.seen(err)
		return 0, t.refused(err)
	}
	a.f.posts++
	info := TransferInfo{
		ID: a.f.posts, Initiator: a.name, Peer: t.spec.Peer.Name, Op: t.spec.Op,
		Entries: len(t.segs), Bytes: t.all, Notification: t.spec.Notification, Attempt: t.posts,
	}
	t.id, t.fault = info.ID, a.f.choose(info)
	n := len(t.segs)
	switch t.fault.Kind {
	case FailPost:
		return 0, t.refused(nixl.Refuse("post", t.spec.Peer.Name, nixl.ErrBackend, "injected"))
	case FailHalfWay:
		n = min(int(t.fault.part(uint64(n))), n-1)
		err = &nixl.Error{Op: "post", Peer: t.spec.Peer.Name, Err: nixl.ErrBackend, Detail: fmt.Sprintf("injected at entry %d", n)}
	case EarlyNotification:
		t.notify(c.remote)
	}
	t.posts++
	a.f.o.Listener.Posted(info)
	t.tracked(func(m tracker) { m.Posted(t.id) })
	t.begin()
	if t.flight == nil || !t.flight.settled {
		t.flight = newFlight(t, c.remote)
	}
	t.flight.launch(t.id, t.fault, n)
	if err != nil {
		t.fail(err)
	}
	return n, err
}

func (t *transfer) mayPost() error {
	const op = "post"
	var err error
	switch {
	case t.a.closed:
		err = t.a.open(op)
	case t.closed:
		err = nixl.Refuse(op, t.spec.Peer.Name, nixl.ErrClosed, "transfer")
	case t.status == nixl.InProgress:
		return &nixl.Error{Op: op, Peer: t.spec.Peer.Name, Err: nixl.ErrBusy, Detail: "posted already"}
	case t.canceled:
		err = nixl.Refuse(op, t.spec.Peer.Name, nixl.ErrCanceled, "")
	default:
		for i := range t.segs {
			if e := t.segs[i].entry; !e.Registered() {
				err = nixl.Refuse(op, t.spec.Peer.Name, nixl.ErrNotRegistered, "local entry %d: %s was closed", i, e.Region)
				break
			}
		}
	}
	return t.refused(err)
}

// refused takes back the proof in an error where an earlier post of the same
// request spoils it.
func (t *transfer) refused(err error) error {
	e, ok := err.(*nixl.Error)
	if !ok {
		return err
	}
	if t.unquiet && e.NeverHanded {
		c := *e
		c.NeverHanded = false
		return &c
	}
	return e
}

// seen records an error of the transport that a post met before it handed
// anything over: what it proves is nothing.
func (t *transfer) seen(err error) {
	if !nixl.Quiet(err) {
		t.begin()
		t.fail(err)
	}
}

func (t *transfer) begin() {
	t.status, t.err = nixl.InProgress, nil
	t.a.inFlight++
	t.a.peers.Begin(t.spec.Peer)
	for i := range t.segs {
		t.segs[i].entry.Begin()
	}
}

func (t *transfer) end(s nixl.Status, err error) {
	t.status, t.err = s, err
	if err == nil || nixl.Quiet(err) {
		t.tracked(func(m tracker) { m.Ended(t.id) })
	}
	t.a.inFlight--
	t.a.peers.End(t.spec.Peer)
	for i := range t.segs {
		t.segs[i].entry.End(err == nil || nixl.Quiet(err))
	}
	t.a.f.o.Listener.Ended(EndedInfo{t.a.f.world.Time(), t.id, t.a.name, err})
}

func (t *transfer) fail(err error) {
	t.unquiet = true
	t.end(nixl.Failed, err)
}

func (t *transfer) Status() (nixl.Status, error) {
	w := t.a.f.world
	w.Enter(t.a.f.o.StatusCost)
	before := t.a.Activity()
	s, err := t.poll()
	news := t.a.Activity() != before
	w.Exit()
	if news { // for others that wait for transfers with the same peer
		w.Notify()
	}
	return s, err
}

func (t *transfer) poll() (nixl.Status, error) {
	const op = "status"
	if t.closed || t.a.closed {
		return nixl.Failed, &nixl.Error{Op: op, Peer: t.spec.Peer.Name, Err: nixl.ErrClosed, NeverHanded: t.posts == 0}
	}
	if t.status != nixl.InProgress {
		return t.status, t.err
	}
	// As in the library: the peer is looked up before the request is.
	if err := t.a.peers.Check(op, t.spec.Peer); err != nil {
		t.fail(&nixl.Error{Op: op, Peer: t.spec.Peer.Name, Err: nixl.ErrDisconnected, Detail: "lost while the transfer was in flight"})
		return t.status, t.err
	}
	fl := t.flight
	switch {
	case fl.err != nil:
		if fl.cut {
			t.a.lost(t.spec.Peer)
		}
		t.fail(fl.err)
	case t.canceled && (fl.complete || fl.stopped):
		t.end(nixl.Failed, nixl.Canceled(op, t.spec.Peer.Name))
	case fl.complete:
		if t.spec.Notification != nil && t.fault.Kind != EarlyNotification && t.fault.Kind != LoseNotification {
			t.notify(fl.remote)
			if t.fault.Kind == DuplicateNotification {
				t.notify(fl.remote)
			}
		}
		t.end(nixl.Done, nil)
	}
	return t.status, t.err
}

func (t *transfer) notify(to *agent) {
	if t.spec.Notification != nil {
		t.a.f.notify(t.id, t.a, to, t.spec.Notification)
	}
}

// Cancel stops a flight: chunks that are on the link land, no other leaves.
func (t *transfer) Cancel() {
	w := t.a.f.world
	w.Enter(0)
	if !t.canceled && !t.closed && !t.a.closed {
		t.canceled = true
		switch t.status {
		case nixl.Idle:
			t.status, t.err = nixl.Failed, nixl.Refuse("cancel", t.spec.Peer.Name, nixl.ErrCanceled, "before it was posted")
		case nixl.InProgress:
			t.flight.stop()
		}
		t.a.bump()
	}
	w.Exit()
	w.Notify()
}

func (t *transfer) Close() error {
	t.a.f.world.Enter(0)
	defer t.a.f.world.Exit()
	if t.closed || t.a.closed {
		t.closed = true
		return nil
	}
	if t.status == nixl.InProgress {
		return &nixl.Error{Op: "close transfer", Peer: t.spec.Peer.Name, Err: nixl.ErrBusy}
	}
	t.closed = true
	return nil
}
