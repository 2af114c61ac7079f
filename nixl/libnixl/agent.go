package libnixl

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/internal/leak"
	"github.com/kvgate/kvgate/nixl"
)

// Agent is an agent of the library. It implements [nixl.Agent]; see there for
// what its methods promise.
//
// Locks are taken in the order of the fields: calls that change what the
// library knows of peers or memory run one at a time, every other call runs
// beside them, and mu is held for bookkeeping only and for releases, which are
// short, never across another call of the library.
type Agent struct {
	lib  *Library
	d    driver
	name string
	cfg  Config
	clk  clock.Clock
	open *leak.Ticket
	kept *tracked

	peersMu sync.Mutex   // adding, removing, losing peers; address
	address *ownAddress  // over UCX; nil: not asked yet, or none
	memMu   sync.Mutex   // registering and deregistering
	life    sync.RWMutex // read: the native agent stays; write: it ends

	mu       sync.Mutex
	h        handle // nil: closed
	closed   bool
	backends []*backend
	self     nixl.Peer
	selfName []byte // with a zero byte
	peers    nixl.Peers
	remotes  map[string]*remote
	aliases  aliases
	past     map[string]map[string]bool // lives of a name that others followed
	registry nixl.Registry
	inFlight int
	making   int                // requests that are just being made
	made     *sync.Cond         // of mu: making is 0
	requests *Transfer          // those with a native request, linked
	lists    map[*List]struct{} // those with a native list

	// For Activity: a post since it was last asked, and when it saw that.
	posted   atomic.Bool
	lastPost atomic.Int64
}

var (
	_ nixl.Agent = (*Agent)(nil)
	_ nixl.Owned = (*Transfer)(nil)
)

// remote is what is known of a peer's memory.
type remote struct {
	peer    nixl.Peer
	life    string
	regions nixl.Registry
	keys    map[keyOf]string
	ucx     *ucxAddress     // nil: none, or not known
	reached map[string]bool // the backends that it has connections of
	name    []byte          // with a zero byte
}

func zeroEnded(name string) []byte { return append([]byte(name), 0) }

// reachable is what the agent keeps with a region that the library has.
var reachable = new(struct{ _ byte })

// NewAgent makes an agent and its backends, which takes tenths of a second and,
// with a transport that hangs, for ever: when ctx is done it returns ctx's
// cause, and closes the agent should it still come about. On error nothing else
// is left.
func (l *Library) NewAgent(ctx context.Context, name string, c Config) (*Agent, error) {
	if err := c.check(name); err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = clock.Wall()
	}
	if c.Backends == nil {
		c.Backends = []BackendConfig{{Plugin: ucxPlugin}}
	}
	if ctx.Done() == nil {
		return l.newAgent(name, c)
	}
	var made struct {
		sync.Mutex
		a            *Agent
		err          error
		done, orphan bool
	}
	c.Clock.Go("new NIXL agent "+name, func() {
		a, err := l.newAgent(name, c)
		made.Lock()
		made.a, made.err, made.done = a, err, true
		orphan := made.orphan
		made.Unlock()
		if orphan && err == nil {
			_ = a.Close() // nobody is left to be told
		}
		c.Clock.Notify()
	})
	ready := clock.Func("new NIXL agent "+name, func() bool {
		made.Lock()
		defer made.Unlock()
		return made.done
	})
	err := c.Clock.WaitUntil(ctx, ready, clock.Never)
	made.Lock()
	defer made.Unlock()
	if made.done { // that wins over ctx
		return made.a, made.err
	}
	made.orphan = true
	return nil, err
}

func (l *Library) newAgent(name string, c Config) (*Agent, error) {
	a := &Agent{
		lib: l, d: l.d, name: name, selfName: zeroEnded(name), cfg: c, clk: c.Clock,
		remotes: map[string]*remote{}, past: map[string]map[string]bool{},
		lists: map[*List]struct{}{},
	}
	a.made = sync.NewCond(&a.mu)
	var err error
	if a.self, _, err = a.peers.Add(name, "self"); err != nil {
		return nil, err
	}
	if err := a.start(c.Backends); err != nil {
		return nil, err
	}
	a.open, a.kept = leak.Open("NIXL agent", name), track(a)
	return a, nil
}

// start makes the native agent with its backends.
func (a *Agent) start(backends []BackendConfig) error {
	const op = "new agent"
	var h handle
	var s status
	var err error
	set := a.lib.withPlugins(func() {
		a.guard(func() { h, s, err = a.d.createAgent(a.name, a.cfg.native()) })
	})
	if err = failed(op, "", s, both(set, err)); err != nil {
		return err
	}
	a.h, a.address = h, nil
	a.mu.Lock()
	a.backends = nil
	a.mu.Unlock()
	for _, b := range backends {
		if err := a.addBackend(b); err != nil {
			a.end()
			return err
		}
	}
	return nil
}

// end destroys the native agent.
func (a *Agent) end() status {
	for _, b := range a.backends {
		if b.h != nil {
			_, _ = a.d.destroyBackend(b.h) // frees a box; it can not fail
			b.h = nil
		}
	}
	s, _ := a.d.destroyAgent(a.h) // resolved when the agent was made
	a.h = nil
	return s
}

func (a *Agent) guard(fn func()) { a.lib.noteSignals(a.d.guard(fn)) }

// Name returns the agent's name.
func (a *Agent) Name() string { return a.name }

// Self returns the agent as its own peer, which is the other side of transfers
// within the agent: to and from files and objects.
func (a *Agent) Self() nixl.Peer { return a.self }

// Clock returns the clock of the agent's waits.
func (a *Agent) Clock() clock.Clock { return a.clk }

// How closely waits look at the library, which tells nobody when something has
// ended: every eager after a post while transfers of usual size end, then
// every calm.
const (
	eager       = time.Microsecond
	eagerPeriod = 100 * time.Microsecond
	calm        = 50 * time.Microsecond
)

// Activity changes as time goes by: the library does not tell when something
// happens, so whoever waits has to poll.
func (a *Agent) Activity() uint64 {
	now := a.clk.Now()
	if a.posted.Load() {
		a.posted.Store(false)
		a.lastPost.Store(int64(now))
	}
	step := calm
	if now-time.Duration(a.lastPost.Load()) < eagerPeriod {
		step = eager
	}
	return uint64(now - now%step)
}

// enter keeps the native agent alive until leave.
func (a *Agent) enter(op string) error {
	a.life.RLock()
	if a.h == nil {
		a.life.RUnlock()
		return nixl.Refuse(op, "", nixl.ErrClosed, "agent %s", a.name)
	}
	return nil
}

func (a *Agent) leave() { a.life.RUnlock() }

// Close ends the agent and with it its backends, registrations and peers. It
// is refused with [nixl.ErrBusy] while transfers are in flight. It waits for
// calls of other goroutines that are under way.
func (a *Agent) Close() error {
	a.peersMu.Lock()
	defer a.peersMu.Unlock()
	a.memMu.Lock()
	defer a.memMu.Unlock()
	a.life.Lock()
	defer a.life.Unlock()
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	for a.making > 0 {
		a.made.Wait()
	}
	if a.inFlight > 0 {
		defer a.mu.Unlock()
		return &nixl.Error{Op: "close agent", Err: nixl.ErrBusy, Detail: a.name}
	}
	a.closed = true
	a.mu.Unlock()
	a.stop()
	a.mu.Lock()
	a.registry.Clear()
	a.mu.Unlock()
	a.open.Close()
	a.kept.close()
	return nil
}

// stop releases everything native, also what is in flight, and then the native
// agent. The caller holds all locks but mu.
func (a *Agent) stop() {
	a.mu.Lock()
	for a.requests != nil {
		a.requests.dropLocked()
	}
	a.mu.Unlock()
	for l := range a.lists {
		l.release()
	}
	if a.h != nil {
		a.end()
	}
}

// dropRequests releases the native requests of transfers that are not in
// flight and for which match holds. They keep nothing of the library alive
// that is about to go; a later post makes them anew, or is refused.
func (a *Agent) dropRequests(match func(*Transfer) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for t := a.requests; t != nil; {
		next := t.next
		if t.status != nixl.InProgress && match(t) {
			t.dropLocked()
		}
		t = next
	}
}

// Metadata returns the blob for [Agent.AddPeer] of a peer, and for the
// corresponding calls of the library's other bindings.
func (a *Agent) Metadata() ([]byte, error) {
	const op = "metadata"
	if err := a.enter(op); err != nil {
		return nil, err
	}
	defer a.leave()
	b, s, err := a.d.metadata(a.h)
	if err == nil && s == statusInvalid {
		return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "agent %s has no backend that peers could reach it by", a.name)
	}
	return seal(b), failed(op, "", s, err)
}

// PartialMetadata returns a blob with these regions only, which must be
// registered, and without connections: it adds to what a peer knows already. For
// one inside another it has the outer one.
// Without regions it is a blob with connections only.
func (a *Agent) PartialMetadata(m nixl.MemoryType, regions []nixl.Descriptor) ([]byte, error) {
	const op = "partial metadata"
	if err := a.enter(op); err != nil {
		return nil, err
	}
	defer a.leave()
	if m > nixl.File {
		return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "%s", m)
	}
	held := make([]nixl.Descriptor, 0, len(regions)) // by the library
	a.mu.Lock()
	for _, d := range regions {
		e := a.registry.Entry(nixl.Region{Type: m, Descriptor: d})
		if e == nil || !e.Registered() || e.Container().Cookie == nil {
			a.mu.Unlock()
			return nil, nixl.Refuse(op, "", nixl.ErrNotRegistered, "%s %s", m, d)
		}
		if c := e.Container().Region.Descriptor; c == d || !slices.Contains(held, c) {
			held = append(held, c)
		}
	}
	a.mu.Unlock()
	b, s, err := a.d.partialMetadata(a.h, m, held)
	return seal(b), failed(op, "", s, err)
}

// Notify sends a message that belongs to no transfer.
func (a *Agent) Notify(p nixl.Peer, message []byte) error {
	const op = "notify"
	if err := a.enter(op); err != nil {
		return err
	}
	defer a.leave()
	a.mu.Lock()
	err := a.peers.Check(op, p)
	if err == nil {
		a.peers.Begin(p) // so that the peer stays
		defer func() {
			a.mu.Lock()
			a.peers.End(p)
			a.mu.Unlock()
		}()
	}
	a.mu.Unlock()
	if err != nil {
		return err
	}
	s, err := a.d.notify(a.h, a.aliases.of(p.Name), message)
	if err == nil && s < 0 {
		return a.classify(op, p, s)
	}
	return failed(op, p.Name, s, err)
}

// Notifications appends the messages that have arrived to dst. Messages of one
// peer keep their order.
func (a *Agent) Notifications(dst []nixl.Notification) ([]nixl.Notification, error) {
	const op = "notifications"
	if err := a.enter(op); err != nil {
		return dst, err
	}
	defer a.leave()
	dst, s, err := a.d.notifications(a.h, dst)
	return dst, failed(op, "", s, err)
}

func (a *Agent) takes(m nixl.MemoryType) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.backends, func(b *backend) bool { return slices.Contains(b.info.memories, m) })
}
