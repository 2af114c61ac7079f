package libnixl

import (
	"slices"
	"strings"

	"github.com/kvgate/kvgate/nixl"
)

// Transfer is a request of the library; it implements [nixl.Transfer]. It is
// made with its agent's native request, which the agent takes away when the
// peer or the memory goes, and which a post makes anew where it may.
//
// The notification of its Spec is sent by the poll that sees the end, as a
// message of its own: left to the library it would leave with the post where
// the transfer is over at once.
type Transfer struct {
	a       *Agent
	spec    nixl.Spec
	lists   *indexed      // made from prepared lists, or nil
	entries []*nixl.Entry // distinct, of both sides where the peer is the agent

	// Guarded by a.mu.
	req        handle    // nil: none now
	prev, next *Transfer // of the agent's, while there is a req

	one    [1]*nixl.Entry // most transfers need no more
	two    [2]nixl.Descriptor
	closed bool
	// canceled: no post any more, and what is in flight ends so.
	canceled bool
	status   nixl.Status
	err      error
	arrived  bool // the post itself saw the end
	posts    uint64
	// unquiet: an earlier post ended without proof of silence, so no later
	// error can be one.
	unquiet bool
}

// NewTransfer checks and prepares a transfer.
func (a *Agent) NewTransfer(s nixl.Spec) (nixl.Transfer, error) {
	const op = "transfer"
	if err := s.Check(); err != nil {
		if e := a.enter(op); e != nil {
			return nil, e
		}
		a.leave()
		return nil, err
	}
	t := &Transfer{a: a, spec: s}
	t.spec.Local, t.spec.Remote = t.copied(s.Local, s.Remote)
	t.spec.Notification = slices.Clone(s.Notification)
	if err := t.prepare(op); err != nil {
		return nil, err
	}
	return t, nil
}

// Agent returns the agent that the transfer was made with. See [nixl.Owned].
func (t *Transfer) Agent() nixl.Agent { return t.a }

// Spec returns what the transfer moves.
func (t *Transfer) Spec() *nixl.Spec { return &t.spec }

// pin and unpin count the transfer among those that hold peer and memory. The
// caller holds mu.
func (t *Transfer) pin() {
	t.a.inFlight++
	t.a.peers.Begin(t.spec.Peer)
	for _, e := range t.entries {
		e.Begin()
	}
}

func (t *Transfer) unpin(quiet bool) {
	t.a.inFlight--
	t.a.peers.End(t.spec.Peer)
	for _, e := range t.entries {
		e.End(quiet)
	}
}

// Post hands the transfer to the library.
func (t *Transfer) Post() error {
	t.a.life.RLock()
	err := t.post("post")
	t.a.life.RUnlock()
	return err
}

// post is Post for a caller that keeps the agent.
func (t *Transfer) post(op string) error {
	a := t.a
	a.mu.Lock()
	if err := t.mayPost(op); err != nil {
		err = t.refused(err)
		a.mu.Unlock()
		return err
	}
	for t.req == nil { // again where it was dropped meanwhile
		a.mu.Unlock()
		if err := t.prepare(op); err != nil {
			return t.refused(err)
		}
		a.mu.Lock()
		if err := t.mayPost(op); err != nil {
			err = t.refused(err)
			a.mu.Unlock()
			return err
		}
	}
	t.status, t.err, t.arrived = nixl.InProgress, nil, false
	t.posts++
	t.pin()
	req := t.req
	a.mu.Unlock()

	if !a.posted.Load() {
		a.posted.Store(true)
	}
	s, err := a.d.post(a.h, req)
	if err == nil && s >= 0 {
		// Read by this goroutine, or behind whatever hands the transfer over.
		t.arrived = s == statusOK
		return nil
	}
	if err == nil {
		err = a.classify(op, t.spec.Peer, s)
	}
	a.mu.Lock()
	t.fail(err)
	a.mu.Unlock()
	return err
}

// mayPost is called with mu held.
func (t *Transfer) mayPost(op string) error {
	peer := t.spec.Peer.Name
	switch {
	case t.a.closed:
		return nixl.Refuse(op, peer, nixl.ErrClosed, "agent %s", t.a.name)
	case t.closed:
		return nixl.Refuse(op, peer, nixl.ErrClosed, "transfer")
	case t.status == nixl.InProgress:
		return &nixl.Error{Op: op, Peer: peer, Err: nixl.ErrBusy, Detail: "posted already"}
	case t.canceled:
		return nixl.Refuse(op, peer, nixl.ErrCanceled, "")
	}
	for _, e := range t.entries {
		if !e.Registered() {
			return nixl.Refuse(op, peer, nixl.ErrNotRegistered, "%s was closed", e.Region)
		}
	}
	return t.a.peers.Check(op, t.spec.Peer)
}

// refused takes back the proof in an error where an earlier post of the same
// request spoils it.
func (t *Transfer) refused(err error) error {
	if e, ok := err.(*nixl.Error); ok && t.unquiet && e.NeverHanded {
		c := *e
		c.NeverHanded = false
		return &c
	}
	return err
}

// fail ends a posted transfer. Nothing that the library says of a failure
// proves that its memory is left alone, unless err is of what came after its end.
// The caller holds mu.
func (t *Transfer) fail(err error) {
	e, ok := err.(*nixl.Error)
	over := ok && e.Over
	if over && t.unquiet { // this post is, an earlier one is not
		c := *e
		c.Over, err = false, &c
	}
	t.status, t.err, t.unquiet = nixl.Failed, err, t.unquiet || !over
	t.unpin(over)
}

// Status polls the transfer. It calls the library only while the transfer is in
// flight.
func (t *Transfer) Status() (nixl.Status, error) {
	const op = "status"
	a := t.a
	a.mu.Lock()
	s, err, told := t.told(op)
	if !told && t.arrived && (t.canceled || t.spec.Notification == nil) {
		// There is nothing to ask the library, nor to send.
		t.end(op, nil, t.canceled)
		s, err, told = t.status, t.err, true
	}
	a.mu.Unlock()
	if told { // without a wait for Recover
		return s, err
	}
	a.life.RLock()
	s, err = t.poll(op)
	a.life.RUnlock()
	return s, err
}

// poll is Status for a caller that keeps the agent.
func (t *Transfer) poll(op string) (nixl.Status, error) {
	a := t.a
	a.mu.Lock()
	if s, err, told := t.told(op); told {
		a.mu.Unlock()
		return s, err
	}
	if !t.arrived {
		if err := a.peers.Check(op, t.spec.Peer); err != nil {
			// The library would say the same, without a look at the request.
			t.fail(&nixl.Error{Op: op, Peer: t.spec.Peer.Name, Err: nixl.ErrDisconnected, Detail: "lost while the transfer was in flight"})
			err = t.err
			a.mu.Unlock()
			return nixl.Failed, err
		}
	}
	req, arrived := t.req, t.arrived
	a.mu.Unlock()

	s, err := statusOK, error(nil)
	if !arrived {
		s, err = a.d.poll(a.h, req)
	}
	if err == nil && s == statusInProgress {
		return nixl.InProgress, nil
	}
	if err == nil && s != statusOK {
		err = t.classify(op, s)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	canceled := t.canceled // a cancel after this comes after the end
	if err == nil && !canceled && t.spec.Notification != nil {
		a.mu.Unlock()
		err = t.tell(op)
		a.mu.Lock()
	}
	t.end(op, err, canceled)
	return t.status, t.err
}

// end ends a transfer that was polled to its end. The caller holds mu.
func (t *Transfer) end(op string, err error, canceled bool) {
	switch {
	case err != nil:
		t.fail(err)
	case canceled:
		t.status, t.err = nixl.Failed, nixl.Canceled(op, t.spec.Peer.Name)
		t.unpin(true)
	default:
		t.status = nixl.Done
		t.unpin(true)
	}
}

// Cancel refuses every later post. The library can not stop a request that it
// has: asked to, it forgets the request, which goes on. So the one in flight is
// polled to its end, and all its bytes may have moved when it is.
func (t *Transfer) Cancel() {
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	if t.canceled || t.closed {
		return
	}
	t.canceled = true
	t.withdraw()
}

// withdraw ends a canceled transfer that was never posted. The caller holds mu.
func (t *Transfer) withdraw() {
	if t.canceled && t.status == nixl.Idle {
		t.status, t.err = nixl.Failed, nixl.Refuse("cancel", t.spec.Peer.Name, nixl.ErrCanceled, "before it was posted")
	}
}

// told returns the status of a transfer that is not in flight. The caller holds
// mu.
func (t *Transfer) told(op string) (s nixl.Status, err error, told bool) {
	switch {
	case t.closed || t.a.closed:
		return nixl.Failed, &nixl.Error{Op: op, Peer: t.spec.Peer.Name, Err: nixl.ErrClosed, NeverHanded: t.posts == 0}, true
	case t.status != nixl.InProgress:
		return t.status, t.err, true
	}
	return 0, nil, false
}

// tell sends the notification of a transfer whose bytes have all arrived. Its
// failure is the transfer's, and over: the library is done with the bytes.
func (t *Transfer) tell(op string) error {
	s, err := t.a.d.notify(t.a.h, t.a.aliases.of(t.spec.Peer.Name), t.spec.Notification)
	if err == nil && s >= 0 {
		return nil
	}
	e := &nixl.Error{Op: op + ": notification", Peer: t.spec.Peer.Name, Err: err}
	if err == nil {
		e = t.a.classify(e.Op, t.spec.Peer, s)
	}
	e.Detail = strings.TrimPrefix(e.Detail+", all bytes have moved", ", ")
	e.Over = true
	return e
}

// Close releases the request.
func (t *Transfer) Close() error {
	a := t.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.closed || a.closed {
		t.closed = true
		return nil
	}
	if t.status == nixl.InProgress {
		return &nixl.Error{Op: "close transfer", Peer: t.spec.Peer.Name, Err: nixl.ErrBusy}
	}
	t.closed = true
	t.dropLocked()
	return nil
}

// dropLocked releases the native request, if there is one, at most once
// whatever comes of it. The caller holds mu; the release is short.
func (t *Transfer) dropLocked() {
	if t.req == nil {
		return
	}
	_, _ = t.a.d.release(t.a.h, t.req)
	t.req = nil
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		t.a.requests = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}
