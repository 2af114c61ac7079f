// Package gatetest makes a gate over a simulated device and a simulated fabric:
// the one rig of tests, scenarios, examples and programs. It is not for engines.
//
//	sim.Device ── event.Registry ── compute stream ─┐
//	  │ memory of the blocks                        ├─ loadgate.Gate
//	softnic.Fabric ── agent ── peers ───────────────┘
package gatetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/sim/race"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
	"github.com/kvgate/kvgate/stream"
)

// Options describe a rig.
type Options struct {
	Sim sim.Options
	// Wrap returns the device that everything but the fabric uses; nil: the
	// simulated one itself.
	Wrap   func(*sim.Device) cuda.Device
	Events event.Options

	// Blocks is how many blocks the pool has, the null block included. Each has
	// Segments pages of Page bytes, which lie apart: all pages of a segment follow
	// each other.
	Blocks, Segments int
	Page             uint64
	// CostScale is how many bytes each byte of a block stands for in the cost of
	// copies and kernels; 0 is one.
	CostScale uint32
	// Clean says that blocks need no zeroing.
	Clean bool

	Fabric softnic.Options
	// Peers are the names of agents in this process, each with PeerBytes of host
	// memory.
	Peers     []string
	PeerBytes uint64
	// Connect makes another agent than the fabric's and sets [Rig.Agent]; nil:
	// the fabric and its peers. What it makes is ended by whoever made it.
	Connect func(*Rig) error

	// Gate has what is not said above. Its Compute, Agent and Pools are the
	// rig's; without a Log nothing is logged.
	Gate loadgate.Options

	// Check has the happens-before checker watch the rig: accesses that nothing orders
	// are an error of [Rig.Close]. What [Rig.Read] looks at is not held against what it
	// races with. It is for modes that order ([loadgate.Mode.Gated]).
	Check bool
}

// Rig is a gate with all that it stands on. Fields are not to be changed.
type Rig struct {
	Sim     *sim.Device
	Device  cuda.Device // Sim, or what Options.Wrap made of it
	Events  *event.Registry
	Kernels *kernels.Set
	Compute *stream.Stream
	Base    cuda.DevicePtr // of the blocks' memory
	Size    uint64
	Table   layout.Table
	Fabric  *softnic.Fabric // nil: Options.Connect made the agent
	Agent   nixl.Agent
	Peers   []Peer
	Gate    *loadgate.Gate
	Pool    loadgate.Pool

	races []race.Race
}

// Peer is an agent in this process with host memory of its own.
type Peer struct {
	ID    nixl.Peer
	Agent nixl.Agent
	Host  *softnic.HostMemory
}

// New makes a rig. When it fails it gives back what it took.
func New(o Options) (*Rig, error) {
	r := &Rig{}
	if err := r.build(o); err != nil {
		return nil, errors.Join(fmt.Errorf("gatetest: %w", err), r.Close())
	}
	return r, nil
}

func (r *Rig) build(o Options) (err error) {
	if o.Check {
		o.Sim.Races = &race.Checker{Found: func(x race.Race) {
			if x.First.What != sim.HostRead && x.Second.What != sim.HostRead {
				r.races = append(r.races, x)
			}
		}}
	}
	if r.Sim, err = sim.New(o.Sim); err != nil {
		return err
	}
	r.Device = r.Sim
	if o.Wrap != nil {
		r.Device = o.Wrap(r.Sim)
	}
	r.Events = event.NewRegistryWithOptions(r.Device, o.Events)
	if r.Kernels, err = kernels.Load(r.Device); err != nil {
		return err
	}
	if r.Compute, err = stream.New(r.Events, cuda.StreamOptions{Name: "compute"}); err != nil {
		return err
	}
	span := uint64(o.Blocks) * o.Page
	r.Size = uint64(o.Segments) * span
	if r.Base, err = r.Device.Alloc(r.Size, cuda.AllocOptions{Name: "kv", CostScale: o.CostScale}); err != nil {
		return err
	}
	r.Table = layout.Table{Blocks: o.Blocks}
	for s := range uint64(o.Segments) {
		r.Table.Segments = append(r.Table.Segments, layout.Segment{Base: uint64(r.Base) + s*span, Stride: o.Page, Page: o.Page})
	}
	if o.Connect != nil {
		err = o.Connect(r)
	} else {
		err = r.connect(o)
	}
	if err != nil {
		return err
	}
	g := o.Gate
	g.Compute, g.Agent = r.Compute, r.Agent
	g.Pools = []loadgate.PoolOptions{{Name: "kv", Table: r.Table, NeedsZero: !o.Clean}}
	if g.Log == nil {
		g.Log = slog.New(slog.DiscardHandler)
	}
	if r.Gate, err = loadgate.New(r.Events, r.Kernels, g); err != nil {
		return err
	}
	r.Pool, err = r.Gate.Pool(0)
	return err
}

// connect makes the fabric with its agents.
func (r *Rig) connect(o Options) (err error) {
	r.Fabric = softnic.New(r.Sim.World(), o.Fabric)
	if r.Agent, err = r.Fabric.NewAgent("decode", r.Sim.NIC()); err != nil {
		return err
	}
	if _, err = r.Agent.Register(nixl.VRAM, []nixl.Descriptor{{Addr: uint64(r.Base), Len: r.Size}}); err != nil {
		return err
	}
	for _, name := range o.Peers {
		p := Peer{Host: softnic.NewHostMemory(o.PeerBytes)}
		if p.Agent, err = r.Fabric.NewAgent(name, p.Host); err != nil {
			return err
		}
		if _, err = p.Agent.Register(nixl.DRAM, []nixl.Descriptor{{Addr: p.Host.Addr(), Len: p.Host.Len()}}); err != nil {
			return err
		}
		blob, err := p.Agent.Metadata()
		if err != nil {
			return err
		}
		if p.ID, err = r.Agent.AddPeer(blob); err != nil {
			return err
		}
		r.Peers = append(r.Peers, p)
	}
	return nil
}

// Read returns the content of a block.
func (r *Rig) Read(b kv.Block) ([]byte, error) {
	var out []byte
	for _, s := range r.Table.Segments {
		at := len(out)
		out = append(out, make([]byte, s.Page)...)
		if err := r.Device.Read(out[at:], cuda.DevicePtr(s.Address(b))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Descriptors returns where bytes of a block lie.
func (r *Rig) Descriptors(b kv.Block, bytes kv.Range) []nixl.Descriptor {
	var ds []nixl.Descriptor
	var off uint64
	for _, s := range r.Table.Segments {
		from, to := max(bytes.Off, off), min(bytes.End(), off+s.Page)
		if from < to {
			ds = append(ds, nixl.Descriptor{Addr: s.Address(b) + from - off, Len: to - from})
		}
		off += s.Page
	}
	return ds
}

// Transfer makes a transfer between bytes of a block each and a peer's host
// memory from off on, in the order of the blocks.
func (r *Rig) Transfer(op nixl.Op, p Peer, off uint64, bytes kv.Range, blocks ...kv.Tenancy) (nixl.Transfer, error) {
	spec := nixl.Spec{Op: op, Peer: p.ID, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM}
	for _, t := range blocks {
		for _, d := range r.Descriptors(t.Block, bytes) {
			spec.Local = append(spec.Local, d)
			spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: p.Host.Addr() + off, Len: d.Len})
			off += d.Len
		}
	}
	return r.Agent.NewTransfer(spec)
}

// Close ends everything, whatever is in flight. On a dead device errors that
// come of that are not told; nor are poisoned blocks, which
// [loadgate.Gate.Counters] tells.
func (r *Rig) Close() error {
	var errs []error
	dead := r.Events == nil || r.Events.Err() != nil
	keep := func(err error) {
		if !dead {
			errs = append(errs, err)
		}
	}
	if r.Fabric != nil { // what hangs ends with its transport
		errs = append(errs, r.Fabric.Close())
	}
	if r.Gate != nil {
		if err := r.Gate.Close(context.Background()); r.Gate.Counters().Poisoned == 0 {
			errs = append(errs, err)
		}
	}
	if r.Compute != nil {
		if !dead {
			_, err := r.Compute.Mark() // covers a mark that failed
			keep(errors.Join(err, r.Device.Sync(context.Background())))
			_, err = r.Events.Poll()
			keep(err)
		}
		keep(r.Compute.Close())
	}
	if r.Kernels != nil {
		keep(r.Kernels.Close())
	}
	if r.Events != nil {
		keep(r.Events.Close())
	}
	if r.Sim != nil {
		errs = append(errs, r.Sim.Close())
	}
	if len(r.races) > 0 {
		errs = append(errs, fmt.Errorf("gatetest: %d times nothing orders two accesses, first: %v", len(r.races), r.races[0]))
	}
	return errors.Join(errs...)
}
