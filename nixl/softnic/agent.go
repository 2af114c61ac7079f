package softnic

import (
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
)

// agent is one life of an agent. All but activity is guarded by the machine's
// lock.
type agent struct {
	f    *Fabric
	name string
	life uint64
	mems []Memory
	in   *vtime.Shared
	out  *vtime.Shared

	activity atomic.Uint64

	closed   bool
	registry nixl.Registry // Entry.Cookie is the Memory
	version  uint64        // of registry
	peers    nixl.Peers
	conns    map[nixl.Peer]*conn
	inFlight int
	inbox    []nixl.Notification
}

// conn is one generation of a peer.
type conn struct {
	remote  *agent
	regions nixl.Registry // as the peer's blob told
	broken  bool          // the transport lost it; no transfer has seen that yet
}

func (a *agent) Name() string     { return a.name }
func (a *agent) Activity() uint64 { return a.activity.Load() }

func (a *agent) bump() { a.activity.Add(1) }

// open returns the error of a call on an agent that has ended.
func (a *agent) open(op string) error {
	if a.closed {
		return nixl.Refuse(op, "", nixl.ErrClosed, "agent %s", a.name)
	}
	return nil
}

func supported(m nixl.MemoryType) bool { return m == nixl.DRAM || m == nixl.VRAM }

func (a *agent) Register(m nixl.MemoryType, regions []nixl.Descriptor) (nixl.Registration, error) {
	const op = "register"
	a.f.world.Enter(0)
	defer a.f.world.Exit()
	if err := a.open(op); err != nil {
		return nil, err
	}
	if !supported(m) {
		return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "softnic has no %s memory", m)
	}
	added, err := a.registry.Add(m, regions)
	if err != nil {
		return nil, err
	}
	for _, d := range added.New {
		e := a.registry.Entry(nixl.Region{Type: m, Descriptor: d})
		i := slices.IndexFunc(a.mems, func(mem Memory) bool { return owns(mem, d.Addr, d.Len) })
		if i < 0 {
			if _, err := a.registry.Remove(m, regions); err != nil {
				return nil, err
			}
			return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "agent %s has no memory at %s", a.name, e.Region)
		}
		e.Cookie = a.mems[i]
	}
	a.version++
	for _, o := range added.Overlaps {
		a.f.o.Listener.Overlap(OverlapInfo{a.name, o})
	}
	return &registration{a: a, m: m, regions: slices.Clone(regions)}, nil
}

type registration struct {
	a       *agent
	m       nixl.MemoryType
	regions []nixl.Descriptor
	closed  bool
}

func (r *registration) Regions() []nixl.Descriptor { return slices.Clone(r.regions) }

func (r *registration) Close() error {
	r.a.f.world.Enter(0)
	defer r.a.f.world.Exit()
	if r.closed || r.a.closed {
		return nil
	}
	if _, err := r.a.registry.Remove(r.m, r.regions); err != nil {
		return err
	}
	r.closed = true
	r.a.version++
	return nil
}

func (a *agent) Metadata() ([]byte, error) {
	a.f.world.Enter(0)
	defer a.f.world.Exit()
	if err := a.open("metadata"); err != nil {
		return nil, err
	}
	m := metadata{life: a.life, name: a.name, regions: a.registry.Regions(nil)}
	return m.encode(), nil
}

func (a *agent) AddPeer(blob []byte) (nixl.Peer, error) {
	const op = "add peer"
	a.f.world.Enter(0)
	defer a.f.world.Exit()
	if err := a.open(op); err != nil {
		return nixl.Peer{}, err
	}
	m, err := decodeMetadata(blob)
	if err != nil {
		return nixl.Peer{}, nixl.Refuse(op, "", nixl.ErrInvalid, "metadata: %v", err)
	}
	remote := a.f.lives[m.life]
	if remote == nil || remote.name != m.name {
		return nixl.Peer{}, nixl.Refuse(op, m.name, nixl.ErrNoPeer, "no such agent on the fabric")
	}
	if remote.closed {
		return nixl.Peer{}, nixl.Refuse(op, m.name, nixl.ErrStalePeer, "the metadata is of a life that has ended")
	}
	var regions nixl.Registry
	for _, r := range m.regions {
		if err := regions.Learn(r); err != nil {
			return nixl.Peer{}, nixl.Refuse(op, m.name, nixl.ErrInvalid, "metadata: %v", err)
		}
	}
	// A connection found broken here has to be made anew, unless transfers
	// have still to hear of it.
	old, known, busy := a.peers.Current(m.name)
	if known && a.conns[old].broken && busy == 0 {
		a.lost(old)
	}
	p, fresh, err := a.peers.Add(m.name, strconv.FormatUint(m.life, 10))
	if err != nil {
		return nixl.Peer{}, err
	}
	if !fresh && a.conns[p].broken {
		return nixl.Peer{}, nixl.Refuse(op, m.name, nixl.ErrBusy, "disconnected with %d transfers in flight", busy)
	}
	if fresh {
		delete(a.conns, old)
		a.conns[p] = &conn{remote: remote}
	}
	a.conns[p].regions = regions
	return p, nil
}

func (a *agent) RemovePeer(p nixl.Peer) error {
	const op = "remove peer"
	a.f.world.Enter(0)
	defer a.f.world.Exit()
	if err := a.open(op); err != nil {
		return err
	}
	if err := a.peers.Remove(p); err != nil {
		return err
	}
	delete(a.conns, p)
	return nil
}

// lost makes a peer unknown, since the transport reported its disconnect.
func (a *agent) lost(p nixl.Peer) {
	a.peers.Lost(p)
	delete(a.conns, p)
	a.bump()
}

// connect returns the live connection to p. A connection found broken is the
// transport's news: the error then proves nothing.
func (a *agent) connect(op string, p nixl.Peer) (*conn, error) {
	if err := a.peers.Check(op, p); err != nil {
		return nil, err
	}
	c := a.conns[p]
	if c.broken {
		a.lost(p)
		return nil, &nixl.Error{Op: op, Peer: p.Name, Err: nixl.ErrDisconnected}
	}
	return c, nil
}

func (a *agent) Notify(p nixl.Peer, message []byte) error {
	const op = "notify"
	a.f.world.Enter(a.f.o.PostPerDescriptor)
	defer a.f.world.Exit()
	if err := a.open(op); err != nil {
		return err
	}
	c, err := a.connect(op, p)
	if err != nil {
		return err
	}
	a.f.posts++
	info := TransferInfo{ID: a.f.posts, Initiator: a.name, Peer: p.Name, Notification: slices.Clone(message)}
	switch a.f.choose(info).Kind {
	case FailPost:
		return nixl.Refuse(op, p.Name, nixl.ErrBackend, "injected")
	case LoseNotification:
		return nil
	case DuplicateNotification:
		a.f.notify(0, a, c.remote, info.Notification)
	}
	a.f.notify(0, a, c.remote, info.Notification)
	return nil
}

func (a *agent) Notifications(dst []nixl.Notification) ([]nixl.Notification, error) {
	a.f.world.Enter(a.f.o.StatusCost)
	defer a.f.world.Exit()
	if err := a.open("notifications"); err != nil {
		return dst, err
	}
	dst = append(dst, a.inbox...)
	clear(a.inbox)
	a.inbox = a.inbox[:0]
	return dst, nil
}

func (a *agent) Close() error {
	defer a.f.world.Notify()
	a.f.world.Enter(0)
	defer a.f.world.Exit()
	if a.closed {
		return nil
	}
	if a.inFlight > 0 {
		return nixl.Refuse("close agent", "", nixl.ErrBusy, "agent %s: %d transfers in flight", a.name, a.inFlight)
	}
	a.f.end(a, silence)
	return nil
}
