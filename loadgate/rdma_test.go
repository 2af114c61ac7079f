package loadgate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/loadgate/gatetest"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

var bg = context.Background()

var late = sim.Options{NICWritesLate: true}

func plain(d *sim.Device) cuda.Device { return d }

// What a NIC has written is seen by the device when the ticket is done, also by
// one that does not order such writes: the gate flushes in between.
func TestLoadsAreFlushed(t *testing.T) {
	r := newRigOver(t, core.PerBlock, late, plain, nil)
	ts := r.alloc(4)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	first, second := r.load(h, ts[:2]), r.load(h, ts[2:])
	require.NoError(t, first.Wait(bg))
	require.NoError(t, second.Wait(bg))
	require.True(t, r.intact(ts[:2]))
	require.True(t, r.intact(ts[2:]))
	report := r.gate.RDMA()
	require.True(t, report.Known)
	require.Equal(t, cuda.RDMA{Supported: true, NeedsFlush: true, CanFlush: true}, report.RDMA)
	require.Contains(t, []uint64{1, 2}, report.Flushes, "one for all that arrived together")

	// A store brings nothing in.
	spec := nixl.Spec{Op: nixl.Write, Peer: r.peer, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM,
		Local:  []nixl.Descriptor{{Addr: r.table.Segments[0].Address(ts[0].Block), Len: page}},
		Remote: []nixl.Descriptor{{Addr: r.host.Addr(), Len: page}}}
	tr, err := r.agent.NewTransfer(spec)
	require.NoError(t, err)
	store, err := r.gate.Store(h, tr)
	require.NoError(t, err)
	require.NoError(t, store.Wait(bg))
	require.Equal(t, report.Flushes, r.gate.RDMA().Flushes)
	require.NoError(t, r.gate.Drop(h))
}

// Without the gate the device reads what was there before: the simulated device
// would show a flush that is missing.
func TestWithoutFlushTheDeviceSeesOldBytes(t *testing.T) {
	r := newRigOver(t, core.PerBlock, late, plain, nil)
	ts := r.alloc(1)
	tr := r.read(ts)
	require.NoError(t, tr.Post())
	require.NoError(t, nixl.Wait(bg, r.dev.World(), r.agent, tr, clock.Never))
	require.False(t, r.intact(ts))
	require.NoError(t, r.dev.FlushRDMA())
	require.True(t, r.intact(ts))
	require.NoError(t, tr.Close())
}

func TestDeviceThatOrdersNeedsNoFlush(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	ts := r.alloc(1)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	require.NoError(t, r.load(h, ts).Wait(bg))
	report := r.gate.RDMA()
	require.Zero(t, report.Flushes)
	require.Equal(t, []loadgate.RDMAMemory{{Base: cuda.DevicePtr(r.table.Segments[0].Base), Size: blocks * segments * page,
		Sync: cuda.SyncRange}}, report.Memory, "segments side by side are one run")
	require.NoError(t, r.gate.Drop(h))
}

// A load whose bytes the device may not see has failed, and its blocks are
// refused; nothing touches them any more.
func TestFlushFails(t *testing.T) {
	var fail error
	r := newRigOver(t, core.PerBlock, late, func(d *sim.Device) cuda.Device {
		return faultdev.Wrap(d, func(c faultdev.Call) error {
			if c.Method == "FlushRDMA" {
				return fail
			}
			return nil
		})
	}, nil)
	ts := r.alloc(1)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	fail = &cuda.Error{Code: cuda.ErrUnknown, Op: "flush RDMA writes"}
	err = r.load(h, ts).Wait(bg)
	require.ErrorIs(t, err, cuda.ErrUnknown)
	require.ErrorContains(t, err, "bytes that arrived")
	plan, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	_, err = plan.Launch(r.step(1))
	require.ErrorIs(t, err, core.ErrLost)
	require.Zero(t, r.gate.Counters().Poisoned)
	fail = nil
	require.NoError(t, r.load(h, ts).Wait(bg), "another load repairs it")
	require.True(t, r.intact(ts))
	require.NoError(t, r.gate.Drop(h))
}

// rdmaOf is a device that knows nothing of NICs, or not enough.
type rdmaOf struct {
	cuda.Device
	rdma cuda.RDMA
	err  error
}

func (d rdmaOf) RDMA() cuda.RDMA { return d.rdma }
func (d rdmaOf) PrepareRDMA(cuda.DevicePtr, uint64) (cuda.MemorySync, error) {
	return cuda.SyncContext, d.err
}
func (d rdmaOf) FlushRDMA() error { return cuda.ErrNotSupported }

func TestRDMAReport(t *testing.T) {
	unknown := func(d *sim.Device) cuda.Device { return struct{ cuda.Device }{d} }
	r := newRigOver(t, core.PerBlock, sim.Options{}, unknown, nil)
	require.Equal(t, loadgate.RDMAReport{}, r.gate.RDMA(), "the device does not tell")

	alone, err := gatetest.New(gatetest.Options{Blocks: blocks, Segments: segments, Page: page, Connect: func(*gatetest.Rig) error { return nil }})
	require.NoError(t, err)
	require.Equal(t, loadgate.RDMAReport{}, alone.Gate.RDMA(), "no transfers")
	require.NoError(t, alone.Close())

	lacks := &cuda.Error{Code: cuda.ErrNotSupported, Op: "prepare for RDMA"}
	r = newRigOver(t, core.PerBlock, sim.Options{}, func(d *sim.Device) cuda.Device { return rdmaOf{d, cuda.RDMA{}, lacks} }, nil)
	require.Len(t, r.gate.RDMA().Memory, 1)
	require.ErrorIs(t, r.gate.RDMA().Memory[0].Err, cuda.ErrNotSupported)
}

func TestGateIsRefusedWhereRDMACannotWork(t *testing.T) {
	for _, c := range []struct {
		name string
		dev  rdmaOf
		is   error
		says string
	}{
		{"needs a flush and has none", rdmaOf{rdma: cuda.RDMA{Supported: true, NeedsFlush: true}}, cuda.ErrNotSupported, "needs a flush"},
		{"memory that is none", rdmaOf{err: &cuda.Error{Code: cuda.ErrInvalidValue, Op: "prepare for RDMA"}}, cuda.ErrInvalidValue, "pool 0 (kv)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, core.PerBlock, false, nil)
			c.dev.Device = r.dev
			reg := event.NewRegistry(c.dev)
			set, err := kernels.Load(c.dev)
			require.NoError(t, err)
			_, err = loadgate.New(reg, set, loadgate.Options{Mode: core.PerBlock, Compute: r.compute, Agent: r.agent,
				Pools: []loadgate.PoolOptions{{Name: "kv", Table: r.table}}})
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.NoError(t, set.Close())
			require.NoError(t, reg.Close())
		})
	}
}

var _ softnic.Memory = (*sim.NIC)(nil)
