package loadgate_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/loadgate/gatetest"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
	"github.com/kvgate/kvgate/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is one device, one pool and a remote agent whose memory is full of 0xAB.
type rig struct {
	t       *testing.T
	all     *gatetest.Rig
	dev     *sim.Device
	reg     *event.Registry
	compute *stream.Stream
	gate    *loadgate.Gate
	pool    loadgate.Pool
	table   layout.Table
	agent   nixl.Agent
	remote  nixl.Agent
	peer    nixl.Peer
	host    *softnic.HostMemory
	fabric  *softnic.Fabric
	busy    cuda.Function
}

func newRig(t *testing.T, mode loadgate.Mode, real bool, change func(*loadgate.Options)) *rig {
	return newRigOver(t, mode, sim.Options{Real: real}, func(d *sim.Device) cuda.Device { return d }, change)
}

// newRigOver is newRig with a device that is wrapped for all but the fabric.
func newRigOver(t *testing.T, mode loadgate.Mode, so sim.Options, wrap func(*sim.Device) cuda.Device, change func(*loadgate.Options)) *rig {
	o := loadgate.Options{Mode: mode}
	if change != nil {
		change(&o)
	}
	g, err := gatetest.New(gatetest.Options{Check: o.Mode.Gated(), Sim: so, Wrap: wrap, Blocks: blocks, Segments: segments, Page: page,
		Peers: []string{"prefill"}, PeerBytes: 1 << 20, Gate: o})
	require.NoError(t, err)
	r := &rig{t: t, all: g, dev: g.Sim, reg: g.Events, compute: g.Compute, gate: g.Gate, pool: g.Pool, table: g.Table, agent: g.Agent,
		remote: g.Peers[0].Agent, peer: g.Peers[0].ID, host: g.Peers[0].Host, fabric: g.Fabric}
	for i := range r.host.Bytes() {
		r.host.Bytes()[i] = 0xAB
	}
	r.busy, err = r.dev.Model("busy")
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background()
		if r.dev.Activity(); r.reg.Err() == nil {
			require.NoError(t, r.dev.Sync(ctx))
			_, _ = r.reg.Poll()
		}
		err := r.gate.Close(ctx)
		if r.gate.Counters().Poisoned == 0 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, core.ErrPoisoned)
		}
		require.NoError(t, g.Close())
	})
	return r
}

func (r *rig) alloc(n int) []kv.Tenancy {
	ts, err := r.pool.Alloc(n, nil)
	require.NoError(r.t, err)
	return ts
}

func (r *rig) read(ts []kv.Tenancy) nixl.Transfer {
	tr, err := r.all.Transfer(nixl.Read, r.all.Peers[0], 0, kv.WholeBlock, ts...)
	require.NoError(r.t, err)
	return tr
}

func (r *rig) load(h loadgate.Holder, ts []kv.Tenancy) loadgate.Transfer {
	t, err := r.gate.Load(h, r.read(ts))
	require.NoError(r.t, err)
	return t
}

// backlog occupies the compute stream.
func (r *rig) backlog(us uint32) {
	b := stream.NewBatch(r.reg)
	b.Launch(r.compute, r.busy, cuda.Geometry{Grid: [3]uint32{us, 1, 1}, Block: [3]uint16{1, 1, 1}}, 0)
	require.NoError(r.t, b.Submit())
}

func (r *rig) step(us uint32) func(*loadgate.Commands) error {
	return func(b *loadgate.Commands) error {
		b.Launch(r.compute, r.busy, cuda.Geometry{Grid: [3]uint32{us, 1, 1}, Block: [3]uint16{1, 1, 1}}, 0)
		return nil
	}
}

func (r *rig) content(t kv.Tenancy) []byte {
	var out []byte
	for _, seg := range r.table.Segments {
		p := make([]byte, page)
		require.NoError(r.t, r.dev.Read(p, cuda.DevicePtr(seg.Address(t.Block))))
		out = append(out, p...)
	}
	return out
}

func (r *rig) intact(ts []kv.Tenancy) bool {
	for _, t := range ts {
		if !bytes.Equal(r.content(t), bytes.Repeat([]byte{0xAB}, segments*page)) {
			return false
		}
	}
	return true
}

// TestZeroingBehindBacklog is the race that the project exists for: zeroing
// waits behind the compute backlog while the load is posted.
func TestZeroingBehindBacklog(t *testing.T) {
	for _, mode := range core.Modes() {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRig(t, mode, false, nil)
			ctx := context.Background()
			r.backlog(2000)
			ts := r.alloc(2)
			h, err := r.gate.Hold(0, ts)
			require.NoError(t, err)
			require.NoError(t, r.gate.Zero(loadgate.ZeroRequest{Tenancies: ts, Covered: true}))
			require.NoError(t, r.gate.Flush())
			require.NoError(t, r.gate.WaitBlocks(ctx, 0, ts))
			ticket := r.load(h, ts)
			require.NoError(t, r.gate.EndStep())
			require.NoError(t, ticket.Wait(ctx))
			plan, err := r.gate.Plan([]loadgate.Holder{h})
			require.NoError(t, err)
			f, err := plan.Launch(r.step(100))
			require.NoError(t, err)
			require.NoError(t, r.gate.Wait(ctx, f))
			if mode == core.Ungated {
				require.False(t, r.intact(ts), "the race did not show")
			} else {
				require.True(t, r.intact(ts))
			}
			require.NoError(t, r.gate.Drop(h))
			require.NoError(t, r.pool.Free(ts))
		})
	}
}

// none is no transfer.
var none loadgate.Transfer
