package loadgate_test

import (
	"context"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/loadgate/gatetest"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
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
	rig     *gatetest.Rig
	dev     *sim.Device
	compute *stream.Stream
	gate    *loadgate.Gate
	pool    loadgate.Pool
	forward cuda.Function
}

func newMachine() *machine { return newMachineIn(core.PerBlock) }

func newMachineIn(mode loadgate.Mode) *machine {
	r, err := gatetest.New(gatetest.Options{Blocks: blocks, Segments: 1, Page: page, Peers: []string{"prefill"}, PeerBytes: blocks * page,
		Gate: loadgate.Options{Mode: mode}})
	check(err)
	m := &machine{rig: r, dev: r.Sim, compute: r.Compute, gate: r.Gate, pool: r.Pool}
	m.forward, err = m.dev.Model("busy") // keeps its stream busy
	check(err)
	for i := range r.Peers[0].Host.Bytes() {
		r.Peers[0].Host.Bytes()[i] = 0xAB
	}
	return m
}

// close ends what was made.
func (m *machine) close() {
	check(m.dev.Sync(context.Background()))
	check(m.gate.Close(context.Background()))
	check(m.rig.Close())
}

// read makes a transfer of the peer's bytes into the blocks.
func (m *machine) read(ts []kv.Tenancy) nixl.Transfer {
	t, err := m.rig.Transfer(nixl.Read, m.rig.Peers[0], 0, kv.WholeBlock, ts...)
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
	check(m.dev.Read(p[:], cuda.DevicePtr(m.rig.Table.Segments[0].Address(t.Block))))
	return p[0]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
