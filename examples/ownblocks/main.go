// Ownblocks is an engine with a block manager of its own, which hands out ids and
// counts their tenancies, and makes its transfers itself. It uses the gate through
// loadgate.New: the manager tells which blocks a request holds and which it has
// let go of, and the gate tells when an id may be handed out again.
//
//	go run ./examples/ownblocks
//
// Device and fabric are simulated.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
	"github.com/kvgate/kvgate/stream"
)

const (
	blocks = 8 // of one page each; block 0 is the null block
	page   = 4096
	sent   = 0xAB // what the other side's memory is full of
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ownblocks:", err)
		os.Exit(1)
	}
}

// manager is the engine's block manager.
type manager struct {
	free        []kv.Block
	generations [blocks]kv.Generation
}

func newManager() *manager {
	m := &manager{}
	for b := kv.Block(blocks - 1); b > kv.Null; b-- {
		m.free = append(m.free, b)
	}
	return m
}

// take hands out n blocks, each in a new generation; nil where there are too few.
func (m *manager) take(n int) []kv.Tenancy {
	if n > len(m.free) {
		return nil
	}
	var ts []kv.Tenancy
	for _, b := range m.free[len(m.free)-n:] {
		m.generations[b]++
		ts = append(ts, kv.Tenancy{Block: b, Generation: m.generations[b]})
	}
	m.free = m.free[:len(m.free)-n]
	return ts
}

// giveBack takes what the gate says may be handed out again.
func (m *manager) giveBack(ts []kv.Tenancy) {
	for _, t := range ts {
		m.free = append(m.free, t.Block)
	}
}

// machine is what the engine made for its gate.
type machine struct {
	w      io.Writer
	dev    *sim.Device
	table  layout.Table
	agent  nixl.Agent
	peer   nixl.Peer
	remote uint64
	gate   *loadgate.Gate
	pool   loadgate.Pool
	step   *stream.Stream
	work   cuda.Function
}

// run sets all up, and ends it, last first.
func run(ctx context.Context, w io.Writer) (err error) {
	var ends []func() error
	defer func() {
		for i := range ends {
			err = errors.Join(err, ends[len(ends)-1-i]())
		}
	}()
	m := &machine{w: w}
	if m.dev, err = sim.New(sim.Options{}); err != nil {
		return err
	}
	ends = append(ends, m.dev.Close)
	reg := event.NewRegistry(m.dev)
	ends = append(ends, reg.Close)
	set, err := kernels.Load(m.dev)
	if err != nil {
		return err
	}
	ends = append(ends, set.Close)
	if m.step, err = stream.New(reg, cuda.StreamOptions{Name: "steps"}); err != nil {
		return err
	}
	ends = append(ends, m.step.Close, func() error { return m.step.Sync(ctx) })
	cache, err := memory.NewBuffer(m.dev, blocks*page, cuda.AllocOptions{Name: "kv"})
	if err != nil {
		return err
	}
	ends = append(ends, cache.Close)
	m.table = layout.Table{Blocks: blocks, Segments: []layout.Segment{{Base: uint64(cache.Ptr()), Stride: page, Page: page}}}
	fabric := softnic.New(m.dev.World(), softnic.Options{})
	ends = append(ends, fabric.Close)
	if err := m.connect(fabric); err != nil {
		return err
	}
	m.gate, err = loadgate.New(reg, set, loadgate.Options{Compute: m.step, Agent: m.agent,
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: m.table, NeedsZero: true, Foreign: true}}})
	if err != nil {
		return err
	}
	ends = append(ends, func() error { return m.gate.Close(ctx) })
	if m.pool, err = m.gate.Pool(0); err != nil {
		return err
	}
	m.work, err = m.dev.NewModel("step", func(k *sim.ModelLaunch) error { k.Time, k.Chunks = time.Millisecond, 1; return nil })
	if err != nil {
		return err
	}
	return m.serve(ctx)
}

// connect makes our agent and the other side's, and registers both memories.
func (m *machine) connect(fabric *softnic.Fabric) (err error) {
	if m.agent, err = fabric.NewAgent("decode", m.dev.NIC()); err != nil {
		return err
	}
	region := nixl.Descriptor{Addr: m.table.Segments[0].Base, Len: blocks * page}
	if _, err := m.agent.Register(nixl.VRAM, []nixl.Descriptor{region}); err != nil {
		return err
	}
	host := softnic.NewHostMemory(page)
	for i := range host.Bytes() {
		host.Bytes()[i] = sent
	}
	m.remote = host.Addr()
	other, err := fabric.NewAgent("prefill", host)
	if err != nil {
		return err
	}
	if _, err := other.Register(nixl.DRAM, []nixl.Descriptor{{Addr: host.Addr(), Len: page}}); err != nil {
		return err
	}
	blob, err := other.Metadata()
	if err != nil {
		return err
	}
	m.peer, err = m.agent.AddPeer(blob)
	return err
}

// serve has two requests, one after the other, in a pool that is too small for
// both. The first ends while its last step still runs: the second gets its blocks
// and loads into them, and the gate holds the load until that step is over.
func (m *machine) serve(ctx context.Context) error {
	manager := newManager()
	first := manager.take(5)
	h, err := m.gate.Hold(0, first) // their tenancies begin
	if err != nil {
		return err
	}
	if _, err := m.launch(h); err != nil {
		return err
	}
	if err := errors.Join(m.gate.Drop(h), m.pool.Retire(first)); err != nil {
		return err
	}
	manager.giveBack(m.pool.Reusable(nil))
	fmt.Fprintf(m.w, "the first request is over; %d blocks are free, and its step still runs\n", len(manager.free))

	second := manager.take(6)
	if h, err = m.gate.Hold(0, second); err != nil {
		return err
	}
	load, err := m.load(h, second)
	if err != nil {
		return err
	}
	fmt.Fprintln(m.w, "the second request's load is over at once:", load.Done())
	if err := load.Wait(ctx); err != nil {
		return err
	}
	out, err := m.launch(h)
	if err != nil {
		return err
	}
	if err := m.gate.Wait(ctx, out); err != nil {
		return err
	}
	for _, t := range second {
		p := make([]byte, page)
		if err := m.dev.Read(p, cuda.DevicePtr(m.table.Segments[0].Address(t.Block))); err != nil {
			return err
		}
		for i, v := range p {
			if v != sent {
				return fmt.Errorf("%v: byte %d is %#x, sent was %#x", t, i, v, sent)
			}
		}
	}
	fmt.Fprintf(m.w, "%d blocks are as sent\n", len(second))
	return errors.Join(m.gate.Drop(h), m.pool.Retire(second))
}

// launch launches a step of a holder.
func (m *machine) launch(h loadgate.Holder) (event.Fence, error) {
	step, err := m.gate.Plan([]loadgate.Holder{h})
	if err != nil {
		return event.Fence{}, err
	}
	return step.Launch(func(c *loadgate.Commands) error {
		c.Launch(m.step, m.work, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}, 0)
		return nil
	})
}

// load reads the other side's page into each block.
func (m *machine) load(h loadgate.Holder, ts []kv.Tenancy) (loadgate.Transfer, error) {
	spec := nixl.Spec{Op: nixl.Read, Peer: m.peer, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM}
	for _, t := range ts {
		spec.Local = append(spec.Local, nixl.Descriptor{Addr: m.table.Segments[0].Address(t.Block), Len: page})
		spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: m.remote, Len: page})
	}
	tr, err := m.agent.NewTransfer(spec)
	if err != nil {
		return loadgate.Transfer{}, err
	}
	t, err := m.gate.Load(h, tr)
	if err != nil {
		return loadgate.Transfer{}, errors.Join(err, tr.Close()) // it stays ours
	}
	return t, nil
}
