package libnixl

import (
	"slices"

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
	opt     RequestOptions
	lists   *indexed      // made from prepared lists, or nil
	entries []*nixl.Entry // distinct, of both sides where the peer is the agent

	// Guarded by a.mu.
	req        handle    // nil: none now
	prev, next *Transfer // of the agent's, while there is a req

	one     [1]*nixl.Entry // most transfers need no more
	two     [2]nixl.Descriptor
	closed  bool
	status  nixl.Status
	err     error
	arrived bool // the post itself saw the end
	posts   uint64
	// unquiet: an earlier post ended without proof of silence, so no later
	// error can be one.
	unquiet bool
}

// RequestOptions are what a request takes beside its Spec. The zero value
// means none.
type RequestOptions struct {
	// Backend, if not nil, carries the transfer; else the library chooses.
	Backend *Backend
	// Custom is for the backend; GPUNETIO takes the CUDA stream here.
	Custom []byte
	// KeepEntries stops the library from joining entries of prepared lists
	// that lie beside each other.
	KeepEntries bool
}

// NewTransfer checks and prepares a transfer.
func (a *Agent) NewTransfer(s nixl.Spec) (nixl.Transfer, error) {
	t, err := a.NewRequest(s, RequestOptions{})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// NewRequest is NewTransfer with options.
func (a *Agent) NewRequest(s nixl.Spec, o RequestOptions) (*Transfer, error) {
	if err := s.Check(); err != nil {
		if e := a.enter("transfer"); e != nil {
			return nil, e
		}
		a.leave()
		return nil, err
	}
	t := &Transfer{a: a, spec: s, opt: o}
	t.spec.Local, t.spec.Remote = t.copied(s.Local, s.Remote)
	t.spec.Notification = slices.Clone(s.Notification)
	if err := t.prepare("transfer"); err != nil {
		return nil, err
	}
	return t, nil
}

// copied returns copies of two lists of one length, in one piece of memory.
func (t *Transfer) copied(local, remote []nixl.Descriptor) (l, r []nixl.Descriptor) {
	n := len(local)
	both := t.two[:]
	if n > 1 {
		both = make([]nixl.Descriptor, 2*n)
	}
	copy(both, local)
	copy(both[n:], remote)
	return both[:n:n], both[n : 2*n : 2*n]
}

// prepare makes the native request.
func (t *Transfer) prepare(op string) error {
	a := t.a
	if err := a.enter(op); err != nil {
		return err
	}
	defer a.leave()
	if b := t.opt.Backend; b != nil && b.a != a {
		return nixl.Refuse(op, t.spec.Peer.Name, nixl.ErrInvalid, "backend %s is of another agent", b.Plugin())
	}
	a.mu.Lock()
	err := t.resolve(op)
	if err == nil {
		t.pin() // so that neither memory nor peer goes meanwhile
	}
	r := a.remotes[t.spec.Peer.Name]
	fetched, name := false, a.selfName
	if err == nil && r != nil {
		fetched, name = r.fetched, r.name
	}
	a.mu.Unlock()
	if err != nil {
		return err
	}
	var req handle
	if fetched {
		err = t.checkFetched(op)
	}
	if err == nil {
		req, err = t.make(op, name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t.unpin(true)
	if err != nil {
		return err
	}
	t.req = req
	if t.next = a.requests; t.next != nil {
		t.next.prev = t
	}
	a.requests = t
	return nil
}

// resolve checks peer and memory, and finds the entries. The caller holds mu.
func (t *Transfer) resolve(op string) error {
	a, s := t.a, &t.spec
	if err := a.peers.Check(op, s.Peer); err != nil {
		return err
	}
	entries := t.one[:0]
	remote, own := a.remotes[s.Peer.Name], s.Peer == a.self
	e, i, ok := resolveSide(&a.registry, s.LocalMemory, s.Local, &entries)
	if !ok {
		return nixl.Refuse(op, s.Peer.Name, nixl.ErrNotRegistered, "local entry %d: %s %s", i, s.LocalMemory, e)
	}
	switch {
	case own:
		e, i, ok = resolveSide(&a.registry, s.RemoteMemory, s.Remote, &entries)
	case !remote.fetched:
		e, i, ok = resolveSide(&remote.regions, s.RemoteMemory, s.Remote, nil)
	}
	if !ok {
		return nixl.Refuse(op, s.Peer.Name, nixl.ErrNotRegistered, "remote entry %d: %s %s", i, s.RemoteMemory, e)
	}
	t.entries = entries
	return nil
}

// resolveSide finds the entry of each descriptor and adds those that are new
// to entries, unless that is nil. If one has none, it returns that one.
func resolveSide(r *nixl.Registry, m nixl.MemoryType, all []nixl.Descriptor, entries *[]*nixl.Entry) (nixl.Descriptor, int, bool) {
	var last nixl.Region // that holds the one before: most lists lie in one region
	for i, d := range all {
		if last.Len > 0 && d.Device == last.Device && d.Addr-last.Addr < last.Len && d.Len <= last.Len-(d.Addr-last.Addr) {
			continue
		}
		e, ok := r.Find(m, d)
		if !ok || entries != nil && e.Cookie == nil {
			return d, i, false
		}
		last = e.Region
		if entries != nil && !slices.Contains(*entries, e) {
			*entries = append(*entries, e)
		}
	}
	return nixl.Descriptor{}, 0, true
}

// checkFetched asks the library about memory of a peer whose metadata never
// came by here.
func (t *Transfer) checkFetched(op string) error {
	s, err := t.a.d.check(t.a.h, t.spec.Peer.Name, t.spec.RemoteMemory, t.spec.Remote)
	if err != nil || s == statusOK {
		return failed(op, t.spec.Peer.Name, s, err)
	}
	if s == statusNotFound || s == statusBackend {
		if t.a.vanished(t.spec.Peer) {
			return nixl.Refuse(op, t.spec.Peer.Name, nixl.ErrNoPeer, "the library has dropped the peer")
		}
		return nixl.Refuse(op, t.spec.Peer.Name, nixl.ErrNotRegistered, "an entry is not in what the peer published")
	}
	return failed(op, t.spec.Peer.Name, s, nil)
}

// vanished reports whether the library has dropped the peer by itself, and
// takes note of it.
func (a *Agent) vanished(p nixl.Peer) bool {
	s, err := a.d.check(a.h, p.Name, nixl.DRAM, nil)
	if err != nil || s == statusOK {
		return false
	}
	a.mu.Lock()
	a.peers.Lost(p)
	a.mu.Unlock()
	return true
}

func (t *Transfer) make(op string, peer []byte) (handle, error) {
	a, s := t.a, &t.spec
	opt, err := t.opt.native(a, op)
	if err != nil {
		return nil, err
	}
	if opt != nil {
		defer a.d.freeOptions(opt)
	}
	var req handle
	var st status
	if t.lists != nil {
		req, st, err = t.lists.make(a, s.Op, opt)
	} else {
		req, st, err = a.d.create(a.h, s, peer, opt)
	}
	if err == nil && (st == statusBackend || st == statusNotFound) {
		// Peer and memory were checked: what is missing is a backend that
		// both sides have and that takes this memory.
		if s.Peer != a.self && a.vanished(s.Peer) {
			return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrNoPeer, "the library has dropped the peer")
		}
		return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrInvalid, "no backend moves %s to %s memory of this peer: %s", s.LocalMemory, s.RemoteMemory, st)
	}
	return req, failed(op, s.Peer.Name, st, err)
}

// native makes the library's options, or nil where there are none.
func (r *RequestOptions) native(a *Agent, op string) (handle, error) {
	if r.Backend == nil && len(r.Custom) == 0 && !r.KeepEntries {
		return nil, nil
	}
	o := callOptions{custom: r.Custom, skipMerge: r.KeepEntries}
	if r.Backend != nil {
		o.backends = []handle{r.Backend.h}
	}
	opt, s, err := a.d.options(&o)
	return opt, failed(op, "", s, err)
}

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
	const op = "post"
	a := t.a
	a.mu.Lock()
	if err := t.mayPost(op); err != nil {
		err = t.refused(err)
		a.mu.Unlock()
		return err
	}
	if t.req == nil {
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
	defer a.mu.Unlock()
	t.fail(err)
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
// proves that its memory is left alone. The caller holds mu.
func (t *Transfer) fail(err error) {
	t.status, t.err, t.unquiet = nixl.Failed, err, true
	t.unpin(false)
}

// Status polls the transfer. It calls the library only while the transfer is in
// flight.
func (t *Transfer) Status() (nixl.Status, error) {
	const op = "status"
	a := t.a
	a.mu.Lock()
	switch {
	case t.closed || a.closed:
		defer a.mu.Unlock()
		return nixl.Failed, &nixl.Error{Op: op, Peer: t.spec.Peer.Name, Err: nixl.ErrClosed, NeverHanded: t.posts == 0}
	case t.status != nixl.InProgress:
		defer a.mu.Unlock()
		return t.status, t.err
	}
	if !t.arrived {
		if err := a.peers.Check(op, t.spec.Peer); err != nil {
			// The library would say the same, without a look at the request.
			defer a.mu.Unlock()
			t.fail(&nixl.Error{Op: op, Peer: t.spec.Peer.Name, Err: nixl.ErrNoPeer, Detail: "lost while the transfer was in flight"})
			return t.status, t.err
		}
	}
	req, arrived := t.req, t.arrived
	a.mu.Unlock()

	// The agent stays, since a transfer is in flight.
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
	if err == nil && t.spec.Notification != nil {
		err = t.tell(op)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		t.fail(err)
	} else {
		t.status = nixl.Done
		t.unpin(true)
	}
	return t.status, t.err
}

// tell sends the notification of a transfer whose bytes have all arrived.
func (t *Transfer) tell(op string) error {
	s, err := t.a.d.notify(t.a.h, t.spec.Peer.Name, t.spec.Notification)
	if err == nil && s < 0 {
		return t.a.classify(op+": notification", t.spec.Peer, s)
	}
	return err
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

// Cost asks the backend how long the transfer takes. Not all can tell.
func (t *Transfer) Cost() (Cost, error) {
	var c Cost
	err := t.ask("cost", func(h, req handle) (s status, err error) {
		c, s, err = t.a.d.cost(h, req)
		return s, err
	})
	return c, err
}

// Telemetry returns what the library measured of the transfer, which must be
// done. It needs Config.Telemetry.
func (t *Transfer) Telemetry() (Telemetry, error) {
	var m Telemetry
	err := t.ask("telemetry", func(h, req handle) (s status, err error) {
		m, s, err = t.a.d.telemetry(h, req)
		return s, err
	})
	return m, err
}

// Backend returns the backend that carries the transfer.
func (t *Transfer) Backend() (*Backend, error) {
	all := t.a.Backends()
	handles := make([]handle, len(all))
	for i, b := range all {
		handles[i] = b.h
	}
	var i int
	err := t.ask("backend", func(h, req handle) (s status, err error) {
		i, s, err = t.a.d.backendOf(h, req, handles)
		return s, err
	})
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, nixl.Refuse("backend", t.spec.Peer.Name, nixl.ErrBackend, "one that the agent did not make")
	}
	return all[i], nil
}

// ask calls the library about the native request, which no other goroutine may
// release meanwhile.
func (t *Transfer) ask(op string, fn func(agent, req handle) (status, error)) error {
	if err := t.a.enter(op); err != nil {
		return err
	}
	defer t.a.leave()
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	peer := t.spec.Peer.Name
	switch {
	case t.closed:
		return nixl.Refuse(op, peer, nixl.ErrClosed, "transfer")
	case t.req == nil:
		return nixl.Refuse(op, peer, nixl.ErrStalePeer, "peer or memory has changed since the transfer was made")
	}
	s, err := fn(t.a.h, t.req)
	if err == nil && s == statusNoTelemetry {
		return nixl.Refuse(op, peer, nixl.ErrUnavailable, "telemetry is off")
	}
	if err == nil && s == statusInProgress {
		return nixl.Refuse(op, peer, nixl.ErrBusy, "not done")
	}
	return failed(op, peer, s, err)
}
