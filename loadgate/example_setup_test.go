package loadgate_test

import (
	"context"
	"errors"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
	"github.com/kvgate/kvgate/stream"
)

func init() {
	// busy keeps its stream occupied and touches nothing.
	sim.RegisterModel("busy", func(k *sim.ModelLaunch) error {
		k.Time = time.Duration(k.Geometry.Grid[0]) * time.Microsecond
		k.Chunks = 1
		return nil
	})
}

// Sizes of the pools that examples and tests run on.
const (
	blocks   = 16
	segments = 2
	page     = 4096
)

// machine is what the examples run on: a simulated device on virtual time, a
// pool of blocks of one page each, a gate over it, and a peer on the fabric
// whose memory is full of 0xAB.
type machine struct {
	dev     *sim.Device
	reg     *event.Registry
	set     *kernels.Set
	compute *stream.Stream
	fabric  *softnic.Fabric
	agent   nixl.Agent
	host    *softnic.HostMemory
	peer    nixl.Peer
	table   layout.Table
	gate    *loadgate.Gate
	pool    loadgate.Pool
	forward cuda.Function
}

func newMachine() *machine { return newMachineIn(core.PerBlock) }

func newMachineIn(mode loadgate.Mode) *machine {
	m := &machine{}
	var err error
	m.dev, err = sim.New(sim.Options{})
	check(err)
	m.reg = event.NewRegistry(m.dev)
	m.set, err = kernels.Load(m.dev)
	check(err)
	m.compute, err = stream.New(m.reg, cuda.StreamOptions{Name: "compute"})
	check(err)
	m.forward, err = m.dev.Model("busy") // keeps its stream busy
	check(err)

	// Where the blocks lie: block b is the page at base + b*page.
	base, err := m.dev.Alloc(blocks*page, cuda.AllocOptions{Name: "kv"})
	check(err)
	m.table = layout.Table{Blocks: blocks, Segments: []layout.Segment{{Base: uint64(base), Stride: page, Page: page}}}

	// Who sends: an agent in this process, with memory of its own.
	m.fabric = softnic.New(m.dev.World(), softnic.Options{})
	m.agent, err = m.fabric.NewAgent("decode", m.dev.Memory())
	check(err)
	_, err = m.agent.Register(nixl.VRAM, []nixl.Descriptor{{Addr: uint64(base), Len: blocks * page}})
	check(err)
	m.host = softnic.NewHostMemory(page)
	for i := range m.host.Bytes() {
		m.host.Bytes()[i] = 0xAB
	}
	prefill, err := m.fabric.NewAgent("prefill", m.host)
	check(err)
	_, err = prefill.Register(nixl.DRAM, []nixl.Descriptor{{Addr: m.host.Addr(), Len: page}})
	check(err)
	blob, err := prefill.Metadata()
	check(err)
	m.peer, err = m.agent.AddPeer(blob)
	check(err)

	m.gate, err = loadgate.New(m.reg, m.set, loadgate.Options{Mode: mode, Compute: m.compute, Agent: m.agent,
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: m.table, NeedsZero: true}}})
	check(err)
	m.pool, err = m.gate.Pool(0)
	check(err)
	return m
}

// close ends what was made, last first.
func (m *machine) close() {
	check(m.dev.Sync(context.Background()))
	check(errors.Join(m.gate.Close(context.Background()), m.fabric.Close(), m.compute.Close(), m.set.Close(),
		m.reg.Close(), m.dev.Close()))
}

// read makes a transfer of the peer's page into each of the blocks.
func (m *machine) read(ts []kv.Tenancy) nixl.Transfer {
	spec := nixl.Spec{Op: nixl.Read, Peer: m.peer, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM}
	for _, t := range ts {
		spec.Local = append(spec.Local, nixl.Descriptor{Addr: m.table.Segments[0].Address(t.Block), Len: page})
		spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: m.host.Addr(), Len: page})
	}
	t, err := m.agent.NewTransfer(spec)
	check(err)
	return t
}

// step returns a forward step that takes so many microseconds.
func (m *machine) step(us uint32) func(*loadgate.Commands) error {
	return func(b *loadgate.Commands) error {
		b.Launch(m.compute, m.forward, cuda.Geometry{Grid: [3]uint32{us, 1, 1}, Block: [3]uint16{1, 1, 1}}, 0)
		return nil
	}
}

// firstByte returns the first byte of a block.
func (m *machine) firstByte(t kv.Tenancy) byte {
	var p [1]byte
	check(m.dev.Read(p[:], cuda.DevicePtr(m.table.Segments[0].Address(t.Block))))
	return p[0]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
