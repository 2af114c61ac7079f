package libnixl

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/kvgate/kvgate/nixl"
)

// View is memory as kernels on the device see it, to move bytes from there. It
// needs a backend with a device API and, for that, a GPU. It is dead once its
// agent, or a peer in it, has gone.
type View struct {
	a     *Agent
	peers []string
	h     handle // guarded by a.mu; nil: dead
}

// LocalView prepares a view of registered memory of the agent.
func (a *Agent) LocalView(m nixl.MemoryType, d []nixl.Descriptor) (*View, error) {
	const op = "local view"
	if err := a.enter(op); err != nil {
		return nil, err
	}
	defer a.leave()
	a.mu.Lock()
	for i, x := range d {
		if _, ok := a.registry.Find(m, x); !ok {
			a.mu.Unlock()
			return nil, nixl.Refuse(op, "", nixl.ErrNotRegistered, "entry %d: %s %s", i, m, x)
		}
	}
	a.mu.Unlock()
	h, s, err := a.d.viewLocal(a.h, m, d, nil)
	return a.view(op, h, s, err, nil)
}

// RemoteView prepares a view of memory of peers. Entries without a peer stand
// for places that are left out.
func (a *Agent) RemoteView(m nixl.MemoryType, d []RemoteDescriptor) (*View, error) {
	const op = "remote view"
	a.peersMu.Lock()
	defer a.peersMu.Unlock()
	if err := a.enter(op); err != nil {
		return nil, err
	}
	defer a.leave()
	var peers []string
	a.mu.Lock()
	for i, x := range d {
		if x.Peer == "" {
			continue
		}
		_, known, _ := a.peers.Current(x.Peer)
		r := a.remotes[x.Peer]
		if !known || r == nil || strings.IndexByte(x.Peer, 0) >= 0 {
			a.mu.Unlock()
			return nil, nixl.Refuse(op, x.Peer, nixl.ErrNoPeer, "entry %d", i)
		}
		if _, ok := r.regions.Find(m, x.Descriptor); !ok {
			a.mu.Unlock()
			return nil, nixl.Refuse(op, x.Peer, nixl.ErrNotRegistered, "entry %d: %s %s", i, m, x.Descriptor)
		}
		if !slices.Contains(peers, x.Peer) {
			peers = append(peers, x.Peer)
		}
	}
	a.mu.Unlock()
	d = slices.Clone(d)
	for i := range d {
		d[i].Peer = a.aliases.of(d[i].Peer)
	}
	h, s, err := a.d.viewRemote(a.h, m, d, nil)
	return a.view(op, h, s, err, peers)
}

func (a *Agent) view(op string, h handle, s status, err error, peers []string) (*View, error) {
	if err = failed(op, "", s, err); err != nil {
		return nil, err
	}
	v := &View{a: a, peers: peers, h: h}
	a.mu.Lock()
	a.views[v] = struct{}{}
	a.mu.Unlock()
	return v, nil
}

// Pointer returns the view as kernels take it, or nil once it is dead.
func (v *View) Pointer() unsafe.Pointer {
	v.a.mu.Lock()
	defer v.a.mu.Unlock()
	return v.h
}

// Close releases the view, which no kernel may use any more. A second Close
// does nothing.
func (v *View) Close() error {
	if v.a.enter("close view") != nil {
		return nil // the agent took it along
	}
	defer v.a.leave()
	return failed("close view", "", v.release(), nil)
}

func (v *View) release() status {
	v.a.mu.Lock()
	defer v.a.mu.Unlock()
	if v.h == nil {
		return statusOK
	}
	s, _ := v.a.d.releaseView(v.a.h, v.h) // resolved when the view was made
	v.h = nil
	delete(v.a.views, v)
	return s
}

func (a *Agent) dropViews(peer string) {
	a.mu.Lock()
	var drop []*View
	for v := range a.views {
		if slices.Contains(v.peers, peer) {
			drop = append(drop, v)
		}
	}
	a.mu.Unlock()
	for _, v := range drop {
		v.release()
	}
}
