package loadgate_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

func (r *rig) fill(ts []kv.Tenancy, v byte) {
	for _, t := range ts {
		for _, s := range r.table.Segments {
			require.NoError(r.t, r.dev.Write(cuda.DevicePtr(s.Address(t.Block)), bytes.Repeat([]byte{v}, page)))
		}
	}
}

func (r *rig) require(ts []kv.Tenancy, v byte) {
	r.t.Helper()
	for _, t := range ts {
		require.Equal(r.t, bytes.Repeat([]byte{v}, segments*page), r.content(t))
	}
}

// closedStream is a stream that no mark can be recorded on.
func (r *rig) closedStream() *stream.Stream {
	s, err := stream.New(r.reg, cuda.StreamOptions{Name: "closed"})
	require.NoError(r.t, err)
	require.NoError(r.t, s.Close())
	return s
}

// TestRefusedBatchLosesNothing: a batch that is refused because of something
// else leaves the reset in it, and a stranger's held load, as they were.
func TestRefusedBatchLosesNothing(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	g := rows(t, r)
	ctx := context.Background()
	ts := r.alloc(2)
	r.fill(ts, 0x77)
	h, err := g.Hold(0, ts[:1])
	require.NoError(t, err)
	_, err = g.Hold(0, ts[1:])
	require.NoError(t, err)
	require.NoError(t, g.Zero(loadgate.ZeroRequest{Filling: loadgate.Resetting, Tenancies: ts}))
	p, err := g.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	_, err = g.Submit(p, r.step(10), r.closedStream())
	require.Error(t, err)
	f, err := g.Submit(p, r.step(10))
	require.NoError(t, err, "the plan is open as before")
	require.NoError(t, g.WaitFence(ctx, f))
	r.require(ts, 0x33)
	require.NoError(t, g.Close(ctx))
}

// rows makes a second gate over the rig's memory, whose blocks need no zeroing
// and are reset to a row of 0x33.
func rows(t *testing.T, r *rig) *loadgate.Gate {
	set, err := kernels.Load(r.dev)
	require.NoError(t, err)
	row, err := r.dev.Alloc(segments*page, cuda.AllocOptions{Name: "template"})
	require.NoError(t, err)
	require.NoError(t, r.dev.Write(row, bytes.Repeat([]byte{0x33}, segments*page)))
	g, err := loadgate.New(r.reg, set, loadgate.Options{Mode: core.PerBlock, Compute: r.compute,
		Pools: []loadgate.PoolOptions{{Name: "rows", Table: r.table, Foreign: true,
			Groups: []loadgate.GroupOptions{{Name: "state", Fill: r.table, State: true, Template: row}}}}})
	require.NoError(t, err)
	return g
}

// TestStrangerSurvivesRefusal: a held load is not failed by a batch that its
// zeroing was in and that was refused for another reason.
func TestStrangerSurvivesRefusal(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	ts := r.alloc(2)
	h, err := r.gate.Hold(0, ts[:1])
	require.NoError(t, err)
	other, err := r.gate.Hold(0, ts[1:])
	require.NoError(t, err)
	ticket := r.load(other, ts[1:])
	p, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	_, err = r.gate.Submit(p, r.step(10), r.closedStream())
	require.Error(t, err)
	require.False(t, ticket.Done())
	require.NoError(t, r.gate.WaitTicket(context.Background(), ticket))
	require.True(t, r.intact(ts[1:]))
	require.NoError(t, r.gate.GiveUp(p))
}

// TestStepsFunctionFails: an error and a panic leave everything as it was.
func TestStepsFunctionFails(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	ts := r.alloc(1)
	r.fill(ts, 0x77)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	p, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	_, err = r.gate.Submit(p, func(b *stream.Batch) error { _ = r.step(10)(b); return core.ErrInvalid })
	require.ErrorIs(t, err, core.ErrInvalid)
	require.Panics(t, func() { _, _ = r.gate.Submit(p, func(*stream.Batch) error { panic("engine") }) })
	f, err := r.gate.Submit(p, r.step(10))
	require.NoError(t, err)
	require.NoError(t, r.gate.WaitFence(context.Background(), f))
	r.require(ts, 0)
}

// TestStepsFunctionTakesTheBatch: it may not reset or submit the batch that it
// was lent; the gate finds out, and what is due is still done.
func TestStepsFunctionTakesTheBatch(t *testing.T) {
	for name, try := range map[string]struct {
		f      func(*rig) func(*stream.Batch) error
		closed bool // the step may have run, so its plan is closed
	}{
		"reset": {func(r *rig) func(*stream.Batch) error {
			return func(b *stream.Batch) error { b.Reset(); return r.step(10)(b) }
		}, false},
		"submit": {func(r *rig) func(*stream.Batch) error {
			return func(b *stream.Batch) error { _ = r.step(10)(b); return b.Submit() }
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, core.PerBlock, false, nil)
			ts := r.alloc(1)
			r.fill(ts, 0x77)
			h, err := r.gate.Hold(0, ts)
			require.NoError(t, err)
			p, err := r.gate.Plan([]loadgate.Holder{h})
			require.NoError(t, err)
			_, err = r.gate.Submit(p, try.f(r))
			require.ErrorIs(t, err, core.ErrInvalid)
			if try.closed {
				require.ErrorIs(t, r.gate.GiveUp(p), core.ErrStale)
				p, err = r.gate.Plan([]loadgate.Holder{h})
				require.NoError(t, err)
			}
			f, err := r.gate.Submit(p, r.step(10))
			require.NoError(t, err)
			require.NoError(t, r.gate.WaitFence(context.Background(), f))
			r.require(ts, 0)
		})
	}
}

// TestPoolsAndTemplates: memory that two pools have, and rows that do not fit,
// are refused with the pool's name.
func TestPoolsAndTemplates(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	set, err := kernels.Load(r.dev)
	require.NoError(t, err)
	second := r.table
	second.Pool = 1
	try := func(template cuda.DevicePtr, pools ...loadgate.PoolOptions) error {
		if len(pools) == 0 {
			pools = []loadgate.PoolOptions{{Name: "rows", Table: r.table,
				Groups: []loadgate.GroupOptions{{Name: "state", Fill: r.table, State: true, Template: template}}}}
		}
		_, err := loadgate.New(r.reg, set, loadgate.Options{Compute: r.compute, Pools: pools})
		return err
	}
	require.ErrorContains(t, try(0, loadgate.PoolOptions{Name: "a", Table: r.table}, loadgate.PoolOptions{Name: "b", Table: second}),
		"pool 1 (b): block 0 lies in the memory of pool 0 (a)")
	require.ErrorContains(t, try(5), "pool 0 (rows): group 0 (state): template")
	short, err := r.dev.Alloc(segments*page-1, cuda.AllocOptions{Name: "short"})
	require.NoError(t, err)
	require.ErrorContains(t, try(short), "template of 8191 bytes for rows of 8192")
	outside := r.table
	outside.Segments = slices.Clone(outside.Segments)
	outside.Segments[1].Page++
	fewer := r.table
	fewer.Blocks--
	for says, o := range map[string]loadgate.GroupOptions{
		"segment 1 of what is filled: block 0": {Fill: outside},
		"its table has":                        {Fill: fewer},
		"a template is for groups of state":    {Fill: r.table, Template: short},
	} {
		err := try(0, loadgate.PoolOptions{Name: "a", Table: r.table, Groups: []loadgate.GroupOptions{o}})
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, set.Close())
}

// TestFinishMarksWhatStartUsed: a step is not over on a stream that it was
// started on before that stream says so.
func TestFinishMarksWhatStartUsed(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	other, err := stream.New(r.reg, cuda.StreamOptions{Name: "other"})
	require.NoError(t, err)
	ts := r.alloc(1)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	p, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	_, err = r.gate.Finish(p)
	require.ErrorIs(t, err, core.ErrState, "it was not started")
	require.NoError(t, r.gate.Start(p))
	r.backlog(1000)
	_, err = r.gate.Finish(p, other)
	require.ErrorContains(t, err, `"compute"`)
	f, err := r.gate.Finish(p, r.compute, other)
	require.NoError(t, err)
	require.NoError(t, r.gate.WaitFence(context.Background(), f))
	require.NoError(t, other.Sync(context.Background()))
	require.NoError(t, other.Close())
}

// TestTransfersOfOthers: a transfer that the gate could not poll, or that is
// under way already, stays with its caller.
func TestTransfersOfOthers(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	ctx := context.Background()
	ts := r.alloc(1)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)

	posted := r.read(ts)
	require.NoError(t, posted.Post())
	_, err = r.gate.Load(h, posted)
	require.ErrorIs(t, err, nixl.ErrBusy)
	require.NoError(t, nixl.Wait(ctx, r.dev.World(), r.agent, posted, 1<<62))
	require.NoError(t, posted.Close())

	agent, err := r.fabric.NewAgent("stranger", r.dev.Memory())
	require.NoError(t, err)
	blob, err := r.remote.Metadata()
	require.NoError(t, err)
	peer, err := agent.AddPeer(blob)
	require.NoError(t, err)
	base := r.table.Segments[0].Base
	_, err = agent.Register(nixl.VRAM, []nixl.Descriptor{{Addr: base, Len: blocks * segments * page}})
	require.NoError(t, err)
	tr, err := agent.NewTransfer(nixl.Spec{Op: nixl.Read, Peer: peer, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM,
		Local:  []nixl.Descriptor{{Addr: r.table.Segments[0].Address(ts[0].Block), Len: page}},
		Remote: []nixl.Descriptor{{Addr: r.host.Addr(), Len: page}}})
	require.NoError(t, err)
	_, err = r.gate.Load(h, tr)
	require.ErrorContains(t, err, "a transfer of agent stranger, not of decode")
	require.NoError(t, tr.Close())
	_, err = r.gate.Load(h, nil)
	require.ErrorIs(t, err, core.ErrInvalid)
}

// TestFencesThatNeverFire are refused rather than waited for.
func TestFencesThatNeverFire(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	b := stream.NewBatch(r.reg)
	f := b.Record(r.compute)
	require.ErrorIs(t, r.gate.WaitFence(context.Background(), f), cuda.ErrNotRecorded)
	b.Reset()
	require.NoError(t, r.compute.Sync(context.Background()), "a good mark covers the dropped one")
	o := newRig(t, core.PerBlock, false, nil)
	o.backlog(1000)
	foreign, err := o.compute.Mark()
	require.NoError(t, err)
	require.ErrorIs(t, r.gate.WaitFence(context.Background(), foreign), event.ErrUnknownTimeline)
}

// TestClosedGateRefuses: nothing is accepted that would not be done.
func TestClosedGateRefuses(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	ts := r.alloc(1)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	p, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	require.NoError(t, r.gate.Close(context.Background()))
	require.NoError(t, r.gate.Close(context.Background()))
	require.ErrorIs(t, r.gate.Zero(loadgate.ZeroRequest{Tenancies: ts}), loadgate.ErrClosed)
	require.ErrorIs(t, r.gate.Flush(), loadgate.ErrClosed)
	require.ErrorIs(t, r.gate.EndStep(), loadgate.ErrClosed)
	require.ErrorIs(t, r.gate.Start(p), loadgate.ErrClosed)
	_, err = r.gate.Submit(p, r.step(1))
	require.ErrorIs(t, err, loadgate.ErrClosed)
	tr := r.read(ts)
	_, err = r.gate.Load(h, tr)
	require.ErrorIs(t, err, loadgate.ErrClosed)
	require.NoError(t, tr.Close())
}
