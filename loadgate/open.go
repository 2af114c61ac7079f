package loadgate

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// owned is what [Open] made for a gate.
type owned struct {
	arena        *layout.Arena
	reg          *event.Registry
	set          *kernels.Set
	compute      *stream.Stream
	memory       *memory.Buffer // nil: the engine's, or freed
	registration nixl.Registration
	kind         nixl.MemoryType
	tables       tables
	requests     requests
	peers        []peer
}

// Open makes a gate over a device, with all that it needs: memory for the blocks
// of [Options.Plan] (or the engine's own, [Options.Arena]), the kernels, a compute
// stream, and the registration of the memory with [Options.Agent]. The engine
// keeps the device and the agent, and closes them after the gate. When Open
// fails, it gives back all that it took.
//
// The gate has one pool, with the groups of the plan in their order, and
// requests: [Gate.NewRequest].
func Open(dev cuda.Device, o Options) (*Gate, error) {
	if dev == nil {
		return nil, fmt.Errorf("loadgate: open: no device: %w", core.ErrInvalid)
	}
	if len(o.Pools) > 0 || o.Compute != nil {
		return nil, fmt.Errorf("loadgate: open: Pools and Compute are for New: %w", core.ErrInvalid)
	}
	plan, blocks, err := o.size()
	if err != nil {
		return nil, fmt.Errorf("loadgate: open: %w", err)
	}
	have := &owned{arena: o.Arena}
	g, err := have.open(dev, plan, blocks, o)
	if err != nil {
		// Nothing was handed to the agent, so that all of it can go.
		if g != nil {
			err = errors.Join(err, g.Close(context.Background()))
		} else {
			err = errors.Join(err, have.close())
		}
		return nil, fmt.Errorf("loadgate: open: %w", err)
	}
	return g, nil
}

// size returns the plan, and how many blocks of it there are.
func (o *Options) size() (*layout.Plan, int, error) {
	if a := o.Arena; a != nil {
		if o.Plan != nil && o.Plan != a.Plan || o.Memory != 0 {
			return nil, 0, fmt.Errorf("an arena has a plan and memory already: %w", core.ErrInvalid)
		}
		return a.Plan, a.Blocks, nil
	}
	if o.Plan == nil {
		return nil, 0, fmt.Errorf("neither a plan nor an arena: %w", core.ErrInvalid)
	}
	n, err := o.Plan.Blocks(o.Memory)
	return o.Plan, n, err
}

func (h *owned) open(dev cuda.Device, plan *layout.Plan, blocks int, o Options) (*Gate, error) {
	var err error
	h.reg = event.NewRegistry(dev)
	if h.set, err = kernels.LoadWithOptions(dev, kernels.LoadOptions{Tuning: o.Tuning, Compile: o.Compile}); err != nil {
		return nil, err
	}
	if h.compute, err = stream.New(h.reg, cuda.StreamOptions{Name: "compute"}); err != nil {
		return nil, err
	}
	if h.arena == nil {
		if h.memory, err = memory.NewBuffer(dev, plan.Size(blocks), cuda.AllocOptions{Name: "kv", CostScale: plan.Scale}); err != nil {
			return nil, err
		}
		if h.arena, err = plan.Place(uint64(h.memory.Ptr()), blocks); err != nil {
			return nil, err
		}
	}
	if err := h.tables.open(h, o.Tables); err != nil {
		return nil, err
	}
	o.Pools, o.Compute = []PoolOptions{ArenaPool("kv", h.arena)}, h.compute
	g, err := newGate(h.reg, h.set, o)
	if err != nil {
		return nil, err
	}
	g.owned = h
	h.requests.init(h.arena.Plan, o.Tables)
	if o.Agent != nil {
		region := nixl.Descriptor{Addr: h.arena.Base, Len: plan.Size(blocks)}
		h.kind = nixl.VRAM
		if o.HostMemory {
			h.kind = nixl.DRAM
		}
		if h.registration, err = o.Agent.Register(h.kind, []nixl.Descriptor{region}); err != nil {
			return g, err
		}
	}
	return g, nil
}

// close gives back what is left, last first. Memory that the agent does not give
// up is kept, and named in the error; a later call tries again.
func (h *owned) close() error {
	if h == nil {
		return nil
	}
	dead := h.reg.Err() != nil
	var errs []error
	if h.registration != nil {
		if err := h.registration.Close(); err != nil && !errors.Is(err, nixl.ErrClosed) {
			errs = append(errs, fmt.Errorf("loadgate: close: %d bytes at %#x stay allocated and registered: %w",
				h.arena.Plan.Size(h.arena.Blocks), h.arena.Base, err))
		} else {
			h.registration = nil
		}
	}
	if h.memory != nil && h.registration == nil {
		errs = append(errs, alive(dead, h.memory.Close()))
		h.memory = nil
	}
	errs = append(errs, alive(dead, h.tables.close()))
	if h.compute != nil {
		var err error
		if !dead {
			err = h.compute.Sync(context.Background())
		}
		if err = errors.Join(err, h.compute.Close()); err == nil || dead {
			h.compute = nil
		}
		errs = append(errs, alive(dead, err))
	}
	if h.set != nil && h.compute == nil {
		errs = append(errs, alive(dead, h.set.Close()))
		h.set = nil
	}
	if h.compute == nil {
		errs = append(errs, alive(dead, h.reg.Close()))
	}
	return errors.Join(errs...)
}

// alive drops errors of a dead device, with which all that is on it goes.
func alive(dead bool, err error) error {
	if dead {
		return nil
	}
	return err
}

// PlanLedger returns a ledger that the gates of so many tensor-parallel ranks share,
// each opened with a plan of these groups and so much memory; see [Ledger]. The
// plan is that of any rank.
func PlanLedger(ranks int, p *layout.Plan, bytes uint64) (*Ledger, error) {
	n, err := p.Blocks(bytes)
	if err != nil {
		return nil, fmt.Errorf("loadgate: ledger: %w", err)
	}
	pool := PoolOptions{Name: "kv", Groups: make([]GroupOptions, len(p.Groups))}
	pool.Table.Blocks, pool.Table.RealNull = n, p.Options.RealNull
	return NewLedger(ranks, []PoolOptions{pool})
}

// ArenaPool returns the options of the pool of an arena, with a group for each
// of its plan.
func ArenaPool(name string, a *layout.Arena) PoolOptions {
	t := a.Tables()
	p := PoolOptions{Name: name, Table: t.Transfer}
	for _, g := range t.Groups {
		p.Groups = append(p.Groups, GroupOptions{Name: g.Name, Fill: g.Fill, NeedsZero: g.NeedsZero, State: g.State})
	}
	return p
}

// Arena returns where the blocks of a gate that [Open] made lie, for the engine's
// kernels; nil for one that [New] made.
func (g *Gate) Arena() *layout.Arena {
	if g.owned == nil {
		return nil
	}
	return g.owned.arena
}

// Compute returns the stream of the steps that name none.
func (g *Gate) Compute() *stream.Stream { return g.compute }

// Registry returns the registry that the gate's streams belong to: an engine
// adopts streams of its own into it (stream.Adopt) before it names them in steps.
func (g *Gate) Registry() *event.Registry { return g.reg }
