package libnixl

import (
	"slices"

	"github.com/kvgate/kvgate/nixl"
)

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

// prepare makes the native request. Of two that do so at once the first stays.
func (t *Transfer) prepare(op string) error {
	a := t.a
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nixl.Refuse(op, "", nixl.ErrClosed, "agent %s", a.name)
	}
	r, err := t.resolve(op)
	if err != nil {
		a.mu.Unlock()
		return err
	}
	t.pin()    // so that neither memory nor peer goes meanwhile
	a.making++ // nor the agent
	name := a.selfName
	if r != nil {
		name = r.name
	}
	a.mu.Unlock()
	req, err := t.make(op, name)
	a.mu.Lock()
	if err == nil && (t.req != nil || t.closed) {
		_, _ = a.d.release(a.h, req) // as in dropLocked
		req = nil
	}
	t.unpin(true)
	if a.making--; a.making == 0 {
		a.made.Broadcast()
	}
	if err == nil && req != nil {
		t.req = req
		if t.next = a.requests; t.next != nil {
			t.next.prev = t
		}
		a.requests = t
	}
	a.mu.Unlock()
	return err
}

// resolve checks peer and memory, finds the entries, and returns what is known
// of the peer; nil if that is the agent. The caller holds mu.
func (t *Transfer) resolve(op string) (*remote, error) {
	a, s := t.a, &t.spec
	if err := a.peers.Check(op, s.Peer); err != nil {
		return nil, err
	}
	entries := t.one[:0]
	own := s.Peer == a.self
	var remote *remote
	if !own {
		remote = a.remotes[s.Peer.Name]
	}
	e, i, ok := resolveSide(&a.registry, s.LocalMemory, s.Local, &entries)
	if !ok {
		return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrNotRegistered, "local entry %d: %s %s", i, s.LocalMemory, e)
	}
	if own {
		e, i, ok = resolveSide(&a.registry, s.RemoteMemory, s.Remote, &entries)
	} else {
		e, i, ok = resolveSide(&remote.regions, s.RemoteMemory, s.Remote, nil)
	}
	if !ok {
		return nil, nixl.Refuse(op, s.Peer.Name, nixl.ErrNotRegistered, "remote entry %d: %s %s", i, s.RemoteMemory, e)
	}
	t.entries = entries
	return remote, nil
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
		if !ok || entries != nil && e.Container().Cookie == nil {
			return d, i, false
		}
		last = e.Region
		if entries != nil && !slices.Contains(*entries, e) {
			*entries = append(*entries, e)
		}
	}
	return nixl.Descriptor{}, 0, true
}

// vanished reports whether the library has dropped the peer by itself, and
// takes note of it.
func (a *Agent) vanished(p nixl.Peer) bool {
	s, err := a.d.check(a.h, a.aliases.of(p.Name), nixl.DRAM, nil)
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
	var req handle
	var st status
	var err error
	if t.lists != nil {
		req, st, err = t.lists.make(a, s.Op)
	} else {
		req, st, err = a.d.create(a.h, s, peer)
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
