package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
	"github.com/kvgate/kvgate/stream"
)

// The pool of a scenario. Each byte stands for costScale of a real block, so
// that a block costs what 2 MiB do and content stays cheap to look at.
const (
	segments   = 2
	pageBytes  = 1024
	blockBytes = segments * pageBytes
	costScale  = 1024
	peerBytes  = 512 << 10
)

var peerNames = []string{"prefill", "prefill2"}

// rig is a device, a fabric with two peers, a pool and the gate.
type rig struct {
	dev     *sim.Device
	faults  cuda.Device // dev, made to fail
	reg     *event.Registry
	compute *stream.Stream
	other   *stream.Stream
	busy    cuda.Function
	step    cuda.Function
	fabric  *softnic.Fabric
	agent   nixl.Agent
	peers   map[string]*peer
	table   layout.Table
	gate    *loadgate.Gate
	pool    loadgate.Pool
}

type peer struct {
	id   nixl.Peer
	host *softnic.HostMemory
	used uint64
}

// gateSpec is what the statement gate says.
type gateSpec struct {
	mode   loadgate.Mode
	blocks int
	limit  time.Duration
	clean  bool   // blocks need no zeroing
	first  kv.Seq // how many marks each stream counts as past
}

func newRig(r *run, o Options, spec gateSpec) (g *rig, err error) {
	g = &rig{peers: map[string]*peer{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("scenario: rig: %w", err), g.close(nil))
		}
	}()
	if g.dev, err = sim.New(sim.Options{Seed: o.Seed, Chooser: o.Chooser, Real: o.Real, Slow: o.Slow}); err != nil {
		return g, err
	}
	g.faults = faultdev.Wrap(g.dev, r.failCommand)
	g.reg = event.NewRegistryWithOptions(g.faults, event.Options{FirstSeq: spec.first})
	set, err := kernels.Load(g.faults)
	if err != nil {
		return g, err
	}
	if g.compute, err = stream.New(g.reg, cuda.StreamOptions{Name: "compute"}); err != nil {
		return g, err
	}
	if g.other, err = stream.New(g.reg, cuda.StreamOptions{Name: "other"}); err != nil {
		return g, err
	}
	if g.busy, err = g.dev.Model(busyModel); err != nil {
		return g, err
	}
	if g.step, err = g.dev.Model(stepModel); err != nil {
		return g, err
	}
	size := uint64(spec.blocks) * blockBytes
	base, err := g.dev.Alloc(size, cuda.AllocOptions{Name: "kv", CostScale: costScale})
	if err != nil {
		return g, err
	}
	g.table = layout.Table{Blocks: spec.blocks}
	for s := range uint64(segments) {
		g.table.Segments = append(g.table.Segments, layout.Segment{
			Base: uint64(base) + s*uint64(spec.blocks)*pageBytes, Stride: pageBytes, Page: pageBytes})
	}
	if err := g.connect(r, o, base, size); err != nil {
		return g, err
	}
	g.gate, err = loadgate.New(g.reg, set, loadgate.Options{Mode: spec.mode, Log: slog.New(slog.DiscardHandler), Compute: g.compute, Agent: g.agent,
		HoldLimit: spec.limit, Listener: r.listener(),
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: g.table, NeedsZero: !spec.clean}}})
	if err != nil {
		return g, err
	}
	g.pool, err = g.gate.Pool(0)
	return g, err
}

func (g *rig) connect(r *run, o Options, base cuda.DevicePtr, size uint64) (err error) {
	var fo softnic.Options
	if o.Seed != 0 {
		fo.Reorder, fo.Jitter = true, 20*time.Microsecond
	}
	g.fabric = softnic.New(g.dev.World(), fo)
	g.fabric.Inject(r.chooseFault)
	if g.agent, err = g.fabric.NewAgent("decode", g.dev.Memory()); err != nil {
		return err
	}
	if _, err = g.agent.Register(nixl.VRAM, []nixl.Descriptor{{Addr: uint64(base), Len: size}}); err != nil {
		return err
	}
	for _, name := range peerNames {
		p := &peer{host: softnic.NewHostMemory(peerBytes)}
		a, err := g.fabric.NewAgent(name, p.host)
		if err != nil {
			return err
		}
		if _, err = a.Register(nixl.DRAM, []nixl.Descriptor{{Addr: p.host.Addr(), Len: p.host.Len()}}); err != nil {
			return err
		}
		blob, err := a.Metadata()
		if err != nil {
			return err
		}
		if p.id, err = g.agent.AddPeer(blob); err != nil {
			return err
		}
		g.peers[name] = p
	}
	return nil
}

// read returns the content of a block.
func (g *rig) read(b kv.Block) ([]byte, error) {
	out := make([]byte, blockBytes)
	for i, seg := range g.table.Segments {
		if err := g.dev.Read(out[i*pageBytes:(i+1)*pageBytes], cuda.DevicePtr(seg.Address(b))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// descriptors returns where bytes of a block lie.
func (g *rig) descriptors(b kv.Block, bytes kv.Range) []nixl.Descriptor {
	var ds []nixl.Descriptor
	for i, seg := range g.table.Segments {
		page := kv.Range{Off: uint64(i) * pageBytes, Len: pageBytes}
		from, to := max(bytes.Off, page.Off), min(bytes.End(), page.End())
		if from < to {
			ds = append(ds, nixl.Descriptor{Addr: seg.Address(b) + from - page.Off, Len: to - from})
		}
	}
	return ds
}

// close ends everything, whatever is in flight. quiet is asked before the
// fabric goes whether the gate is to end by itself first.
func (g *rig) close(quiet func() error) error {
	var errs []error
	if g.gate != nil {
		err := error(context.Canceled)
		if quiet != nil {
			err = quiet()
		}
		if err != nil { // something hangs: take its transport away
			errs = append(errs, g.fabric.Close())
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if err := g.gate.Close(ctx); g.gate.Counters().Poisoned == 0 {
				errs = append(errs, err)
			}
		}
	}
	if g.fabric != nil {
		errs = append(errs, g.fabric.Close())
	}
	dead := g.reg == nil || g.reg.Err() != nil
	if !dead {
		errs = append(errs, g.mark())
	}
	for _, s := range []*stream.Stream{g.compute, g.other} {
		if s != nil {
			if err := s.Close(); !dead {
				errs = append(errs, err)
			}
		}
	}
	if g.reg != nil {
		if err := g.reg.Close(); !dead {
			errs = append(errs, err)
		}
	}
	if g.dev != nil {
		errs = append(errs, g.dev.Close())
	}
	return errors.Join(errs...)
}

// mark covers what is in the rig's own streams, marks that failed too, and waits
// for it.
func (g *rig) mark() error {
	var errs []error
	for _, s := range []*stream.Stream{g.compute, g.other} {
		if s != nil {
			_, err := s.Mark()
			errs = append(errs, err)
		}
	}
	errs = append(errs, g.dev.Sync(context.Background()))
	_, err := g.reg.Poll()
	return errors.Join(append(errs, err)...)
}
