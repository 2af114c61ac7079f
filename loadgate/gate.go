package loadgate

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// Options configure a gate that [Open] makes, or [New].
type Options struct {
	// Plan is the layout of a model's cache, and Memory how many bytes Open
	// allocates for its blocks.
	Plan   *layout.Plan
	Memory uint64
	// Arena stands for both where the engine has allocated the memory itself.
	Arena *layout.Arena
	// HostMemory says that the agent takes the device's memory for host memory
	// (nixl.DRAM): that of a simulated device with a real transport.
	HostMemory bool
	// Tables are the block tables that the gate keeps in device memory.
	Tables TableOptions
	// Tuning is how the kernels are launched on this device, as bench/tune finds it;
	// nil: the defaults. See [kernels.ParseTuning]. A tuning of another device is
	// refused.
	Tuning *kernels.Tuning
	// Compile makes the kernels of a tuning whose variant is not embedded, as the
	// tuner may find it where NVRTC is installed; see [kernels.LoadOptions] and
	// cuda/nvrtc. Without it such a tuning is refused.
	Compile func(kernels.Source) ([]byte, error)

	// Mode is how zeroing and transfers are ordered. The zero Mode is
	// [PerBlock]. A mode that is not gated promises nothing, and says so once
	// in the log.
	Mode Mode
	// Log takes what is worth a line; nil is [slog.Default].
	Log *slog.Logger
	// Pools are the pools of blocks; a pool's id is its index. They are for New,
	// which takes none of the fields above.
	Pools []PoolOptions
	// Ledger is shared by the gates of a process's tensor-parallel ranks, and
	// Rank is which of them this gate is for; see [NewLedger]. Without one the
	// gate has a ledger of its own.
	Ledger *Ledger
	Rank   int
	// Compute is the stream of the steps; an engine lends its own by stream.Adopt.
	// In modes that zero in line, zeroing goes to it. Open makes one.
	Compute *stream.Stream
	// Agent is the agent that the transfers are made with; nil: none are. Open
	// registers the memory with it, for New the engine has done so.
	Agent nixl.Agent
	// HoldLimit is how long a transfer may be held before
	// [Listener.Overdue] is told; 0 is never. Age frees and fails nothing.
	HoldLimit time.Duration
	// Posters is how many goroutines hand transfers to the transport, which
	// can take tens of microseconds and more each; 0 is one.
	Posters int
	// PerPeer is how many of them may be busy with one peer; 0 is one.
	PerPeer int
	// Listener is told of what happens.
	Listener Listener
}

// Gate orders device work and transfers on the same blocks. All methods are
// safe for use by several goroutines; the order between calls of different
// goroutines is the order in which they get in.
//
// The gate does not run by itself: it moves in [Gate.Progress], in the waits,
// and in the calls that hand it work.
type Gate struct {
	reg   *event.Registry
	clk   clock.Clock
	set   *kernels.Set
	agent nixl.Agent

	mu      *clock.Mutex // guards what follows; held across crossings
	core    *core.Core
	feed    *event.Feed
	pools   []pool
	groups  []group
	compute *stream.Stream
	idle    *stream.Stream
	busy    *stream.Stream
	streams map[kv.Timeline]*stream.Stream // that a mark was recorded on
	unmarks []*stream.Stream               // whose last mark was not recorded

	launches []core.LaunchID // asked for, not carried out
	steps    []openStep      // by slot
	batch    *stream.Batch
	fences   []launched // what batch holds

	posters  *posters                        // nil without an agent
	handed   map[nixl.Transfer]core.Transfer // what the gate has not closed
	bySlot   []*ticket                       // of transfers whose end has not been told
	ofHolder []*ticket                       // the first of each holder, by slot
	free     []*ticket
	news     []Ended // not told yet
	kept     int     // of news, when it was looked through
	spare    atomic.Pointer[Commands]
	ended    []*ticket // the core is done with them
	flying   []*ticket // posted, polled to their end
	unclosed []nixl.Transfer
	peers    map[nixl.Peer]core.Peer
	lastPeer nixl.Peer // the peer that was looked up last
	lastID   core.Peer

	rdma    RDMAReport
	flusher cuda.RDMADevice // nil: what a NIC writes needs no flush

	owned *owned // nil: the gate was made by New

	limit    time.Duration
	listener Listener
	notices  []notice
	closed   bool // no new transfers
	released bool
	fault    error // see must

	// Scratch, kept so that a steady state allocates nothing.
	points  []kv.Point
	actions []core.Action
	pieces  []core.Piece
	marks   []event.Fence
	results []posting
	arrived []arrival
	leaving []*ticket
	lost    []posting
	own     [1]*stream.Stream

	// What waits look at without the lock.
	seen     atomic.Uint64 // the agent's activity before the last polling
	inFlight atomic.Int64  // length of flying
	handled  atomic.Uint64 // counts results of transfers that the core was told
	woke     bool          // waits have something to look at; guarded by the lock
}

// New makes a gate over the device of reg, with kernels loaded into it. The
// memory of the pools has to be allocated, and outlives the gate.
func New(reg *event.Registry, set *kernels.Set, o Options) (*Gate, error) {
	if reg == nil || set == nil {
		return nil, fmt.Errorf("loadgate: a gate needs a registry and kernels: %w", core.ErrInvalid)
	}
	if o.Plan != nil || o.Arena != nil || o.Memory != 0 || o.HostMemory || o.Tables != (TableOptions{}) || o.Tuning != nil {
		return nil, fmt.Errorf("loadgate: new: Plan, Memory, Arena, HostMemory, Tables and Tuning are for Open: %w", core.ErrInvalid)
	}
	if set.Device() != reg.Device() {
		return nil, fmt.Errorf("loadgate: new: the kernels are of another device than the registry: %w", core.ErrInvalid)
	}
	return newGate(reg, set, o)
}

func newGate(reg *event.Registry, set *kernels.Set, o Options) (*Gate, error) {
	g := &Gate{reg: reg, clk: reg.Clock(), set: set, agent: o.Agent, compute: o.Compute,
		batch: stream.NewBatch(reg), streams: map[kv.Timeline]*stream.Stream{},
		peers: map[nixl.Peer]core.Peer{}, handed: map[nixl.Transfer]core.Transfer{}, limit: o.HoldLimit, listener: o.Listener}
	g.mu = clock.NewMutex(g.clk)
	g.own[0] = o.Compute
	if err := g.init(o); err != nil {
		return nil, errors.Join(err, g.release())
	}
	return g, nil
}

func (g *Gate) init(o Options) (err error) {
	if o.Compute == nil {
		return fmt.Errorf("loadgate: no compute stream: %w", core.ErrInvalid)
	}
	if o.Posters < 0 || o.PerPeer < 0 {
		return fmt.Errorf("loadgate: %d posters, %d for a peer: %w", o.Posters, o.PerPeer, core.ErrInvalid)
	}
	var pools []core.Pool
	for _, p := range o.Pools {
		cp, err := g.addPool(p)
		if err != nil {
			return err
		}
		pools = append(pools, cp)
	}
	if g.core, err = core.New(pools, core.Options{Mode: o.Mode, HoldLimit: kv.Instant(o.HoldLimit), Ledger: o.Ledger, Rank: o.Rank}); err != nil {
		return err
	}
	if !o.Mode.Gated() {
		log := o.Log
		if log == nil {
			log = slog.Default()
		}
		log.Warn("loadgate: this mode does not order transfers against the device: blocks may be corrupted", "mode", o.Mode)
	}
	if g.idle, err = stream.New(g.reg, cuda.StreamOptions{Name: "gate idle", HighPriority: true}); err != nil {
		return fmt.Errorf("loadgate: %w", err)
	}
	if g.busy, err = stream.New(g.reg, cuda.StreamOptions{Name: "gate busy", HighPriority: true}); err != nil {
		return fmt.Errorf("loadgate: %w", err)
	}
	for _, s := range []*stream.Stream{g.compute, g.idle, g.busy} {
		g.streams[s.ID()] = s
	}
	g.feed = g.reg.NewFeed()
	if o.Agent != nil {
		if err = g.readyRDMA(); err != nil {
			return err
		}
		g.posters = newPosters(g.clk, max(1, o.Posters), max(1, o.PerPeer))
	}
	return nil
}

// Mode returns the mode that the gate was made with.
func (g *Gate) Mode() Mode { return g.core.Mode() }

// Counters returns what the gate did and what it holds.
func (g *Gate) Counters() Counters {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Counters()
}

// Block returns the state of a block.
func (g *Gate) Block(p kv.PoolID, b kv.Block) (BlockInfo, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Block(p, b)
}

// Poisoned appends the tenancies that a transfer not proven quiet may touch.
func (g *Gate) Poisoned(p kv.PoolID, dst []kv.Tenancy) []kv.Tenancy {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Poisoned(p, dst)
}
