//go:build cgo && linux

package softcuda_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
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

const (
	blocks   = 16
	segments = 2
	page     = 4096

	slow         = 20
	backlogBytes = 32 << 20
	backlogFills = 8
)

// rig is a whole gate on a driver's device: its C code, its kernels as PTX,
// its events; the NIC writes into the same simulated memory.
type rig struct {
	*testing.T
	dev     *driver.Device
	reg     *event.Registry
	compute *stream.Stream
	gate    *loadgate.Gate
	pool    loadgate.Pool
	table   layout.Table
	agent   nixl.Agent
	peer    nixl.Peer
	host    *softnic.HostMemory
	busy    cuda.DevicePtr
}

func newRig(t *testing.T, mode loadgate.Mode) *rig { return newRigOver(t, mode, sim.Options{}) }

func newRigOver(t *testing.T, mode loadgate.Mode, o sim.Options) *rig {
	world := vtime.NewReal(vtime.Options{}, slow)
	t.Cleanup(func() { require.NoError(t, world.Close()) })
	o.World = world
	soft := add(t, o)
	dev, err := driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal(), Clock: world})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	r := &rig{T: t, dev: dev, reg: event.NewRegistry(dev)}
	t.Cleanup(func() { require.NoError(t, r.reg.Close()) })
	set, err := kernels.Load(dev)
	require.NoError(t, err)
	r.compute, err = stream.New(r.reg, cuda.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.compute.Sync(bg))
		require.NoError(t, r.compute.Close())
	})
	base, err := dev.Alloc(blocks*segments*page, cuda.AllocOptions{Name: "kv"})
	require.NoError(t, err)
	r.busy, err = dev.Alloc(backlogBytes, cuda.AllocOptions{Name: "busy"})
	require.NoError(t, err)
	r.table = layout.Table{Blocks: blocks}
	for s := range uint64(segments) {
		r.table.Segments = append(r.table.Segments, layout.Segment{Base: uint64(base) + s*blocks*page, Stride: page, Page: page})
	}

	fabric := softnic.New(world, softnic.Options{})
	t.Cleanup(func() { require.NoError(t, fabric.Close()) })
	r.agent, err = fabric.NewAgent("decode", soft.Sim().NIC())
	require.NoError(t, err)
	r.host = softnic.NewHostMemory(1 << 20)
	for i := range r.host.Bytes() {
		r.host.Bytes()[i] = 0xAB
	}
	remote, err := fabric.NewAgent("prefill", r.host)
	require.NoError(t, err)
	_, err = r.agent.Register(nixl.VRAM, []nixl.Descriptor{{Addr: uint64(base), Len: blocks * segments * page}})
	require.NoError(t, err)
	_, err = remote.Register(nixl.DRAM, []nixl.Descriptor{{Addr: r.host.Addr(), Len: r.host.Len()}})
	require.NoError(t, err)
	blob, err := remote.Metadata()
	require.NoError(t, err)
	r.peer, err = r.agent.AddPeer(blob)
	require.NoError(t, err)

	r.gate, err = loadgate.New(r.reg, set, loadgate.Options{Mode: mode, Compute: r.compute, Agent: r.agent,
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: r.table, NeedsZero: true}}})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, dev.Sync(bg))
		_, err := r.reg.Poll()
		require.NoError(t, err)
		require.NoError(t, r.gate.Close(bg))
	})
	r.pool, err = r.gate.Pool(0)
	require.NoError(t, err)
	return r
}

// backlog keeps the compute stream busy.
func (r *rig) backlog() {
	b := stream.NewBatch(r.reg)
	for i := range backlogFills {
		b.Fill32(r.compute, r.busy, uint32(i), backlogBytes/4)
	}
	require.NoError(r, b.Submit())
}

func (r *rig) load(h loadgate.Holder, ts []kv.Tenancy) loadgate.Transfer {
	spec := nixl.Spec{Op: nixl.Read, Peer: r.peer, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM}
	for i, t := range ts {
		for s, seg := range r.table.Segments {
			spec.Local = append(spec.Local, nixl.Descriptor{Addr: seg.Address(t.Block), Len: page})
			spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: r.host.Addr() + uint64((i*segments+s)*page), Len: page})
		}
	}
	tr, err := r.agent.NewTransfer(spec)
	require.NoError(r, err)
	ticket, err := r.gate.Load(h, tr)
	require.NoError(r, err)
	return ticket
}

func (r *rig) all(ts []kv.Tenancy, want byte) bool {
	for _, t := range ts {
		for _, seg := range r.table.Segments {
			p := make([]byte, page)
			require.NoError(r, r.dev.Read(p, cuda.DevicePtr(seg.Address(t.Block))))
			if !bytes.Equal(p, bytes.Repeat([]byte{want}, page)) {
				return false
			}
		}
	}
	return true
}

// The race that the project exists for, through the driver's code: zeroing
// waits behind a backlog while a load into the same blocks is posted; without a
// gate the backlog lasts until the load is over. Beside them, blocks without a
// load have to be zero.
func TestGateOverDriver(t *testing.T) {
	for _, mode := range core.Modes() {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, mode)
			for range 3 {
				fresh, err := r.pool.Alloc(2, nil)
				require.NoError(t, err)
				ts, err := r.pool.Alloc(3, nil)
				require.NoError(t, err)
				release, _ := cudatest.Hold(t, r.dev, r.compute.Handle())
				r.backlog()
				if mode != core.Ungated {
					release() // in some modes the host waits for the zeroing behind it
				}
				hf, err := r.gate.Hold(0, fresh)
				require.NoError(t, err)
				h, err := r.gate.Hold(0, ts)
				require.NoError(t, err)
				require.NoError(t, r.gate.Zero(loadgate.ZeroRequest{Tenancies: fresh}))
				require.NoError(t, r.gate.Zero(loadgate.ZeroRequest{Tenancies: ts, Covered: true}))
				require.NoError(t, r.gate.Flush())
				require.NoError(t, r.gate.WaitBlocks(bg, 0, ts))
				ticket := r.load(h, ts)
				require.NoError(t, r.gate.EndStep())
				require.NoError(t, ticket.Wait(bg))
				release()
				plan, err := r.gate.Plan([]loadgate.Holder{h, hf})
				require.NoError(t, err)
				f, err := plan.Launch(func(b *loadgate.Commands) error {
					b.Fill32(r.compute, r.busy, 0, 256)
					return nil
				})
				require.NoError(t, err)
				require.NoError(t, r.gate.Wait(bg, f))
				if mode == core.Ungated {
					require.False(t, r.all(ts, 0xAB), "the race did not show")
				} else {
					require.True(t, r.all(ts, 0xAB))
				}
				require.True(t, r.all(fresh, 0), "fresh blocks")
				for _, x := range []loadgate.Holder{h, hf} {
					require.NoError(t, r.gate.Drop(x))
				}
				require.NoError(t, r.pool.Free(ts))
				require.NoError(t, r.pool.Free(fresh))
			}
		})
	}
}

// On a device that does not order what a NIC writes the gate has the driver
// flush it, before anybody hears that it arrived.
func TestGateFlushesOverDriver(t *testing.T) {
	r := newRigOver(t, core.PerBlock, sim.Options{NICWritesLate: true})
	ts, err := r.pool.Alloc(3, nil)
	require.NoError(t, err)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	require.NoError(t, r.load(h, ts).Wait(bg))
	require.True(t, r.all(ts, 0xAB))
	report := r.gate.RDMA()
	require.Equal(t, cuda.RDMA{Supported: true, NeedsFlush: true, CanFlush: true}, report.RDMA)
	require.EqualValues(t, 1, report.Flushes)
	require.Len(t, report.Memory, 1)
	require.Equal(t, cuda.SyncRange, report.Memory[0].Sync)
	require.NoError(t, r.gate.Drop(h))
}
