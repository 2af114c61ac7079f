package engine

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
	"github.com/kvgate/kvgate/stream"
)

// machine is a simulated device, a fabric with a prefill at its other end, and
// a gate over one pool of blocks.
type machine struct {
	dev     *sim.Device
	reg     *event.Registry
	clk     clock.Clock
	set     *kernels.Set
	compute *stream.Stream
	buffer  *memory.Buffer
	fabric  *softnic.Fabric
	agent   nixl.Agent
	peer    nixl.Peer
	gate    *loadgate.Gate
	pool    loadgate.Pool
	cache   *cache
	ledger  *ledger
	prefill *prefill
	zeroing zeroing
	forward cuda.Function
	sample  cuda.Function
}

// roomBeside is device memory beside the pool, for tables of kernels.
const roomBeside = 1 << 30

// build makes the machine. Cost tables are the defaults of cuda/sim and
// nixl/softnic but for what the configuration names.
func (e *engine) build(mode loadgate.Mode) (err error) {
	c := e.cfg
	blocks, err := c.Plan.Blocks(uint64(c.Pool))
	if err != nil {
		return err
	}
	plan, err := heldPlan(c)
	if err != nil {
		return err
	}
	if e.dev, err = sim.New(sim.Options{Name: mode.String(), Memory: uint64(c.Pool) + roomBeside, Bandwidth: c.HBM,
		Seed: c.Seed, Ran: e.ran}); err != nil {
		return err
	}
	e.clk, e.meter.costs = e.dev.World(), e.dev.Costs()
	e.reg = event.NewRegistry(e.dev)
	if e.set, err = kernels.Load(e.dev); err != nil {
		return err
	}
	if e.compute, err = stream.New(e.reg, cuda.StreamOptions{Name: computeName}); err != nil {
		return err
	}
	if e.buffer, err = memory.NewBuffer(e.dev, plan.Size(blocks), cuda.AllocOptions{Name: "kv cache", CostScale: plan.Scale}); err != nil {
		return err
	}
	arena, err := plan.Place(uint64(e.buffer.Ptr()), blocks)
	if err != nil {
		return err
	}
	if e.cache, err = newCache(c, arena); err != nil {
		return err
	}
	e.ledger = newLedger(e.cache, c)
	e.zeroing.ledger = e.ledger
	e.prefill = newPrefill(e.ledger, blocks*e.cache.pages)
	if err := e.connect(); err != nil {
		return err
	}
	if e.gate, err = loadgate.New(e.reg, e.set, loadgate.Options{Mode: mode, Log: slog.New(slog.DiscardHandler), Compute: e.compute, Agent: e.agent,
		Pools:    []loadgate.PoolOptions{{Name: "kv", Table: e.cache.table, NeedsZero: c.Zero}},
		Listener: loadgate.Listener{Launched: e.zeroing.told, Left: e.left}}); err != nil {
		return err
	}
	if e.pool, err = e.gate.Pool(0); err != nil {
		return err
	}
	return e.makeModels()
}

// ran is told of all device work that is over.
func (e *engine) ran(r sim.Ran) {
	e.meter.ran(r)
	e.zeroing.saw(r)
}

const computeName = "compute"

// connect joins the device's memory and the prefill's over a fabric.
func (e *engine) connect() (err error) {
	o := softnic.Options{Bandwidth: e.cfg.NIC, Latency: orNone(e.cfg.Latency), Jitter: orNone(e.cfg.Latency),
		Listener: softnic.Listener{Landed: e.prefill.landed}}
	if !e.cfg.Full { // a page of a reduced size lands whole, a block page by page
		o.Chunk, o.MinChunks = math.MaxInt, 1
	}
	e.fabric = softnic.New(e.dev.World(), o)
	if e.agent, err = e.fabric.NewAgent("decode", e.dev.Memory()); err != nil {
		return err
	}
	far, err := e.fabric.NewAgent("prefill", e.prefill)
	if err != nil {
		return err
	}
	if _, err := e.agent.Register(nixl.VRAM, []nixl.Descriptor{{Addr: e.cache.arena.Base, Len: e.cache.size()}}); err != nil {
		return err
	}
	if _, err := far.Register(nixl.DRAM, []nixl.Descriptor{{Addr: prefillBase, Len: prefillSize}}); err != nil {
		return err
	}
	blob, err := far.Metadata()
	if err != nil {
		return err
	}
	e.peer, err = e.agent.AddPeer(blob)
	return err
}

func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return softnic.None
	}
	return d
}

// close ends what was made, last first.
func (m *machine) close() error {
	if m.dev == nil {
		return nil
	}
	ctx := context.Background()
	errs := []error{m.dev.Sync(ctx)}
	if m.gate != nil {
		errs = append(errs, m.gate.Close(ctx))
	}
	if m.fabric != nil {
		errs = append(errs, m.fabric.Close())
	}
	if m.buffer != nil {
		errs = append(errs, m.buffer.Close())
	}
	if m.compute != nil {
		errs = append(errs, m.compute.Close())
	}
	if m.set != nil {
		errs = append(errs, m.set.Close())
	}
	return errors.Join(append(errs, m.reg.Close(), m.dev.Close())...)
}
