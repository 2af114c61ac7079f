package loadgate_test

import (
	"bytes"
	"context"
	"errors"
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
	_, err = p.Launch(r.step(10), r.closedStream())
	require.Error(t, err)
	require.ErrorIs(t, p.Abandon(), core.ErrStale, "a refused step is over")
	p, err = g.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	f, err := p.Launch(r.step(10))
	require.NoError(t, err)
	require.NoError(t, g.Wait(ctx, f))
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
	_, err = p.Launch(r.step(10), r.closedStream())
	require.Error(t, err)
	require.False(t, ticket.Done())
	require.NoError(t, ticket.Wait(context.Background()))
	require.True(t, r.intact(ts[1:]))
}

// TestStepsFunctionFails: after an error or a panic the step is over, nothing of
// it was launched, and everything else is as before.
func TestStepsFunctionFails(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	ts := r.alloc(1)
	r.fill(ts, 0x77)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	var marked event.Fence
	first := cuda.DevicePtr(r.table.Segments[0].Address(ts[0].Block))
	spare, err := stream.New(r.reg, cuda.StreamOptions{Name: "spare"})
	require.NoError(t, err)
	defer func() { require.NoError(t, spare.Close()) }()
	elsewhere := errors.New("the engine's own")
	for name, try := range map[string]struct {
		add  func(*loadgate.Commands) error
		want error
	}{
		"error":             {func(c *loadgate.Commands) error { _ = r.step(10)(c); return elsewhere }, elsewhere},
		"no stream":         {func(c *loadgate.Commands) error { c.Fill8(nil, first, 1, 1); return nil }, cuda.ErrInvalidHandle},
		"stream not named":  {func(c *loadgate.Commands) error { c.Fill8(spare, first, 1, 1); return nil }, core.ErrInvalid},
		"mark not named":    {func(c *loadgate.Commands) error { c.Mark(spare, &marked); return nil }, core.ErrInvalid},
		"wait on no stream": {func(c *loadgate.Commands) error { c.Wait(nil, marked); return nil }, cuda.ErrInvalidHandle},
		"typed elsewhere": {func(c *loadgate.Commands) error {
			return c.Typed(func(b *cuda.Batch) error { b.Fill8(spare.Handle(), first, 1, 1); return nil })
		}, core.ErrInvalid},
		"typed error": {func(c *loadgate.Commands) error {
			_ = c.Typed(func(b *cuda.Batch) error { b.Fill8(r.compute.Handle(), first, 1, 1); return elsewhere })
			return nil
		}, elsewhere},
	} {
		p, err := r.gate.Plan([]loadgate.Holder{h})
		require.NoError(t, err)
		_, err = p.Launch(try.add)
		require.ErrorIs(t, err, try.want, name)
		require.ErrorIs(t, p.Abandon(), core.ErrStale, name)
	}
	p, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	require.Panics(t, func() { _, _ = p.Launch(func(*loadgate.Commands) error { panic("engine") }) })
	require.ErrorIs(t, p.Abandon(), core.ErrStale)
	require.Empty(t, r.gate.OpenSteps(nil))
	require.Equal(t, uint64(0), r.gate.Counters().Launches, "nothing was launched")

	p, err = r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	f, err := p.Launch(func(c *loadgate.Commands) error {
		// The gate is not locked here: an engine may look at it.
		require.Equal(t, []loadgate.StepInfo{{Step: p}}, r.gate.OpenSteps(nil))
		c.Mark(r.compute, &marked)
		return c.Typed(func(b *cuda.Batch) error { b.Fill8(r.compute.Handle(), first, 5, 1); return nil })
	})
	require.NoError(t, err)
	require.NoError(t, r.gate.Wait(context.Background(), f))
	require.True(t, marked.Done())
	require.Equal(t, append([]byte{5}, make([]byte, segments*page-1)...), r.content(ts[0]))
}

// TestStepsAreValues: a step that is over is refused, also when its slot is used
// again; the zero Step and streams of nobody are refused.
func TestStepsAreValues(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	h, err := r.gate.Hold(0, r.alloc(1))
	require.NoError(t, err)
	old, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	require.NoError(t, old.Abandon())
	p, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	require.NotEqual(t, old, p)
	for name, err := range map[string]error{"abandon": old.Abandon(), "begin": old.Begin(),
		"end": func() error { _, err := old.End(); return err }(), "launch": func() error { _, err := old.Launch(nil); return err }()} {
		require.ErrorIs(t, err, core.ErrStale, name)
	}
	require.ErrorIs(t, loadgate.Step{}.Abandon(), core.ErrInvalid)
	_, err = p.End()
	require.ErrorIs(t, err, core.ErrState, "it was not begun")
	require.Equal(t, []loadgate.StepInfo{{Step: p}}, r.gate.OpenSteps(nil))

	reg := event.NewRegistry(r.dev)
	foreign, err := stream.New(reg, cuda.StreamOptions{Name: "foreign"})
	require.NoError(t, err)
	for says, s := range map[string]*stream.Stream{"another registry": foreign, "is nil": nil, "closed": r.closedStream()} {
		p, err := r.gate.Plan([]loadgate.Holder{h})
		require.NoError(t, err)
		require.ErrorContains(t, p.Begin(r.compute, s), says)
		require.ErrorIs(t, p.Abandon(), core.ErrStale)
	}
	require.NoError(t, foreign.Close())
	require.NoError(t, reg.Close())
	_, err = p.Launch(nil, r.compute, r.compute)
	require.ErrorContains(t, err, "listed twice")
}

// TestBegunStepIsProtected: between Begin and End the blocks that a step names
// are as good as in use, those that it names singly too (the zeroing would run
// before what the engine launches).
func TestBegunStepIsProtected(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	ts := r.alloc(2)
	h, err := r.gate.Hold(0, ts[:1])
	require.NoError(t, err)
	_, err = r.gate.Hold(0, ts[1:])
	require.NoError(t, err)
	for _, filling := range []loadgate.Filling{loadgate.Zeroing, loadgate.Resetting} {
		p, err := r.gate.Plan([]loadgate.Holder{h}, loadgate.Access{Tenancy: ts[1], Write: true})
		require.NoError(t, err)
		require.NoError(t, p.Begin())
		for i := range ts {
			require.ErrorIs(t, r.gate.Zero(loadgate.ZeroRequest{Filling: filling, Tenancies: ts[i : i+1]}), core.ErrInUse)
		}
		_, err = p.End()
		require.NoError(t, err)
		require.NoError(t, r.gate.Zero(loadgate.ZeroRequest{Filling: filling, Tenancies: ts}))
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
	outside.Segments[1].Base++
	fewer := r.table
	fewer.Blocks--
	for says, o := range map[string]loadgate.GroupOptions{
		"segment 1 of the fill: the byte at": {Fill: outside},
		"its table has":                      {Fill: fewer},
		"a template is for groups of state":  {Fill: r.table, Template: short},
	} {
		err := try(0, loadgate.PoolOptions{Name: "a", Table: r.table, Groups: []loadgate.GroupOptions{o}})
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, set.Close())
}

// TestEndMarksWhatBeginNamed: a step is over when every stream that it was begun
// on says so.
func TestEndMarksWhatBeginNamed(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	other, err := stream.New(r.reg, cuda.StreamOptions{Name: "other"})
	require.NoError(t, err)
	ts := r.alloc(1)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	p, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	require.NoError(t, p.Begin(other, r.compute))
	r.backlog(1000)
	f, err := p.End()
	require.NoError(t, err)
	require.NoError(t, r.gate.Wait(context.Background(), f))
	info, err := r.gate.Block(0, ts[0].Block)
	require.NoError(t, err)
	require.True(t, info.Busy, "the other stream is not past it")
	require.NoError(t, r.compute.Sync(context.Background()))
	_, err = r.gate.Progress(0)
	require.NoError(t, err)
	info, err = r.gate.Block(0, ts[0].Block)
	require.NoError(t, err)
	require.False(t, info.Busy)
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
	require.ErrorIs(t, r.gate.Wait(context.Background(), f), cuda.ErrNotRecorded)
	b.Reset()
	require.NoError(t, r.compute.Sync(context.Background()), "a good mark covers the dropped one")
	o := newRig(t, core.PerBlock, false, nil)
	o.backlog(1000)
	foreign, err := o.compute.Mark()
	require.NoError(t, err)
	require.ErrorIs(t, r.gate.Wait(context.Background(), foreign), event.ErrUnknownTimeline)
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
	require.ErrorIs(t, p.Begin(), loadgate.ErrClosed)
	_, err = p.Launch(r.step(1))
	require.ErrorIs(t, err, loadgate.ErrClosed)
	tr := r.read(ts)
	_, err = r.gate.Load(h, tr)
	require.ErrorIs(t, err, loadgate.ErrClosed)
	require.NoError(t, tr.Close())
}
