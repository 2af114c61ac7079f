package libnixl

import (
	"slices"

	"github.com/kvgate/kvgate/nixl"
)

// List is a list of descriptors that the library has looked up already. Many
// requests can be made of a pair of lists by index, without another look-up. It
// is dead once memory of it or its peer has gone. Methods are safe for use by
// several goroutines.
type List struct {
	a       *Agent
	peer    nixl.Peer // of a remote list; else zero
	m       nixl.MemoryType
	d       []nixl.Descriptor
	entries []*nixl.Entry

	h handle // guarded by a.mu; nil: dead
}

// PrepareLocal prepares a list of registered memory of the agent.
func (a *Agent) PrepareLocal(m nixl.MemoryType, d []nixl.Descriptor) (*List, error) {
	return a.prepareList("prepare local", nixl.Peer{}, m, d)
}

// PrepareRemote prepares a list of a peer's memory. With the agent itself as the
// peer it is the other side of transfers within the agent.
func (a *Agent) PrepareRemote(p nixl.Peer, m nixl.MemoryType, d []nixl.Descriptor) (*List, error) {
	if p.Name == "" {
		return nil, nixl.Refuse("prepare remote", "", nixl.ErrNoPeer, "no name")
	}
	return a.prepareList("prepare remote", p, m, d)
}

func (a *Agent) prepareList(op string, p nixl.Peer, m nixl.MemoryType, d []nixl.Descriptor) (*List, error) {
	if err := a.enter(op); err != nil {
		return nil, err
	}
	defer a.leave()
	// The checks of a transfer, with the list on both sides.
	t := &Transfer{a: a, spec: nixl.Spec{Peer: p, LocalMemory: m, RemoteMemory: m, Local: d, Remote: d}}
	if err := t.spec.Check(); err != nil {
		return nil, err
	}
	if p.Name == "" {
		t.spec.Peer, t.spec.Remote = a.self, nil
	} else {
		t.spec.Local = nil
	}
	a.mu.Lock()
	_, err := t.resolve(op)
	if err == nil {
		t.pin()
	}
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	h, s, err := a.d.prepare(a.h, a.aliases.of(p.Name), m, d)
	a.mu.Lock()
	defer a.mu.Unlock()
	t.unpin(true)
	if err = failed(op, p.Name, s, err); err != nil {
		return nil, err
	}
	l := &List{a: a, peer: p, m: m, d: slices.Clone(d), entries: t.entries, h: h}
	a.lists[l] = struct{}{}
	return l, nil
}

// Len returns the number of descriptors.
func (l *List) Len() int { return len(l.d) }

// Close releases the list. Requests made of it live on. A second Close does
// nothing.
func (l *List) Close() error {
	if l.a.enter("close list") != nil {
		return nil // the agent took it along
	}
	defer l.a.leave()
	return failed("close list", l.peer.Name, l.release(), nil)
}

// release ends the native list, at most once. The caller keeps the agent.
func (l *List) release() status {
	l.a.mu.Lock()
	defer l.a.mu.Unlock()
	if l.h == nil {
		return statusOK
	}
	s, _ := l.a.d.releaseList(l.a.h, l.h) // resolved when the list was made
	l.h = nil
	delete(l.a.lists, l)
	return s
}

func (a *Agent) dropLists(match func(*List) bool) {
	a.mu.Lock()
	var drop []*List
	for l := range a.lists {
		if match(l) {
			drop = append(drop, l)
		}
	}
	a.mu.Unlock()
	for _, l := range drop {
		l.release()
	}
}

// indexed says which entries of two lists a request is made of.
type indexed struct {
	local, remote   *List
	localI, remoteI []int32
}

// NewIndexed prepares a transfer of entries of two lists, by index. The
// notification may be nil, as in [nixl.Spec].
func (a *Agent) NewIndexed(op nixl.Op, local *List, localIndex []int32, remote *List, remoteIndex []int32, notification []byte) (*Transfer, error) {
	const name = "indexed transfer"
	if local == nil || remote == nil || local.a != a || remote.a != a || local.peer.Name != "" || remote.peer.Name == "" {
		return nil, nixl.Refuse(name, "", nixl.ErrInvalid, "needs a local and a remote list of agent %s", a.name)
	}
	s := nixl.Spec{Op: op, Peer: remote.peer, LocalMemory: local.m, RemoteMemory: remote.m, Notification: slices.Clone(notification)}
	var err error
	if s.Local, err = local.pick(name, localIndex); err != nil {
		return nil, err
	}
	if s.Remote, err = remote.pick(name, remoteIndex); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	t := &Transfer{a: a, spec: s, lists: &indexed{local, remote, slices.Clone(localIndex), slices.Clone(remoteIndex)}}
	if err := t.prepare(name); err != nil {
		return nil, err
	}
	return t, nil
}

func (l *List) pick(op string, index []int32) ([]nixl.Descriptor, error) {
	d := make([]nixl.Descriptor, len(index))
	for i, k := range index {
		if k < 0 || int(k) >= len(l.d) {
			return nil, nixl.Refuse(op, l.peer.Name, nixl.ErrInvalid, "index %d of a list of %d", k, len(l.d))
		}
		d[i] = l.d[k]
	}
	return d, nil
}

// make makes the native request. Both lists are held by the agent's lock, which
// this call does not keep long: nothing is looked up.
func (x *indexed) make(a *Agent, op nixl.Op) (handle, status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x.local.h == nil || x.remote.h == nil {
		return nil, 0, nixl.Refuse("indexed transfer", x.remote.peer.Name, nixl.ErrClosed, "list")
	}
	return a.d.make(a.h, op, x.local.h, x.localI, x.remote.h, x.remoteI)
}
