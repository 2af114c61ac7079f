package loadgate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// slowTransfer counts how many of its like are in a call of Post at a time.
type slowTransfer struct {
	noopTransfer
	r        *rig
	in, most *int
}

func (t *slowTransfer) Post() error {
	*t.in++
	*t.most = max(*t.most, *t.in)
	err := t.r.dev.World().Sleep(context.Background(), 1000)
	*t.in--
	t.agent.activity.Add(1)
	return err
}

func (t *slowTransfer) Status() (nixl.Status, error) {
	if *t.most == 0 {
		return nixl.Idle, nil
	}
	return nixl.Done, nil
}

// TestPostersKeepToThePeerLimit: of three posters, only as many as the limit
// says are in a call for one peer.
func TestPostersKeepToThePeerLimit(t *testing.T) {
	for limit := 1; limit <= 3; limit++ {
		agent := &noopAgent{}
		r := newRig(t, core.Ungated, false, func(o *loadgate.Options) { o.Posters, o.PerPeer, o.Agent = 3, limit, agent })
		in, most := 0, 0
		ts := r.alloc(9)
		h, err := r.gate.Hold(0, ts)
		require.NoError(t, err)
		var tickets []loadgate.Transfer
		for _, b := range ts {
			tr := &slowTransfer{noopTransfer: noopTransfer{agent: agent}, r: r, in: &in, most: &most}
			tr.local[0] = nixl.Descriptor{Addr: r.table.Segments[0].Address(b.Block), Len: page}
			tr.spec = nixl.Spec{Op: nixl.Read, Local: tr.local[:]}
			ticket, err := r.gate.Load(h, tr)
			require.NoError(t, err)
			tickets = append(tickets, ticket)
		}
		for _, ticket := range tickets {
			require.NoError(t, ticket.Wait(context.Background()))
		}
		require.Equal(t, limit, most)
	}
}

// TestPartlyAcceptedLaunch: of a zeroing in two kernels the second is refused.
// The first runs, and is covered by a mark that the gate records by itself: a
// load into its blocks waits for it, and its blocks are zeroed anew.
func TestPartlyAcceptedLaunch(t *testing.T) {
	const n = 1500 // more ids than one launch takes
	dev, err := sim.New(sim.Options{})
	require.NoError(t, err)
	kernelsSeen, armed := 0, false
	faulty := faultdev.Wrap(dev, func(c faultdev.Call) error {
		if !armed || c.Op != cuda.OpLaunch {
			return nil
		}
		if kernelsSeen++; kernelsSeen == 2 {
			return cuda.ErrOutOfMemory
		}
		return nil
	})
	reg := event.NewRegistry(faulty)
	set, err := kernels.Load(faulty)
	require.NoError(t, err)
	compute, err := stream.New(reg, cuda.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	base, err := faulty.Alloc((n+1)*64, cuda.AllocOptions{Name: "kv"})
	require.NoError(t, err)
	g, err := loadgate.New(reg, set, loadgate.Options{Mode: core.PerBlock, Compute: compute, Pools: []loadgate.PoolOptions{{
		Name: "kv", Table: layout.Table{Blocks: n + 1, Segments: []layout.Segment{{Base: uint64(base), Stride: 64, Page: 64}}}, NeedsZero: true}}})
	require.NoError(t, err)
	ts, err := g.Alloc([]loadgate.Want{{Blocks: n}}, nil)
	require.NoError(t, err)
	h, err := g.Hold(0, ts)
	require.NoError(t, err)
	require.NoError(t, g.Zero(loadgate.ZeroRequest{Tenancies: ts}))
	armed = true
	require.ErrorIs(t, g.Flush(), cuda.ErrOutOfMemory)
	armed = false
	info, err := g.Block(0, 1)
	require.NoError(t, err)
	require.True(t, info.Busy && info.Dirty, "%+v", info)
	require.NoError(t, dev.Sync(context.Background()))
	for range 3 { // records the mark, and sees it fire
		_, err = g.Progress(0)
		require.NoError(t, err)
		require.NoError(t, dev.Sync(context.Background()))
	}
	info, err = g.Block(0, 1)
	require.NoError(t, err)
	require.False(t, info.Busy, "the part that runs is covered by no mark")

	p, err := g.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	f, err := p.Launch(nil)
	require.NoError(t, err)
	require.NoError(t, g.Wait(context.Background(), f))
	got := make([]byte, n*64)
	require.NoError(t, dev.Read(got, base+64))
	require.Equal(t, make([]byte, n*64), got)

	require.NoError(t, g.Close(context.Background()))
	require.NoError(t, set.Close())
	require.NoError(t, compute.Close())
	require.NoError(t, reg.Close())
	require.NoError(t, dev.Close())
}

// lostTransfer finds its peer gone.
type lostTransfer struct {
	noopTransfer
	posts *int
}

func (t *lostTransfer) Post() error {
	*t.posts++
	return nixl.Refuse("post", "p", nixl.ErrNoPeer, "gone")
}

func (t *lostTransfer) Status() (nixl.Status, error) { return nixl.Idle, nil }

// TestPeerLostTakesBack: when the first of a peer's transfers finds it gone,
// those that wait for a poster are not posted any more.
func TestPeerLostTakesBack(t *testing.T) {
	agent := &noopAgent{}
	r := newRig(t, core.Ungated, false, func(o *loadgate.Options) { o.Agent = agent })
	posts := 0
	ts := r.alloc(5)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	var tickets []loadgate.Transfer
	post := func(b kv.Tenancy) {
		tr := &lostTransfer{noopTransfer: noopTransfer{agent: agent}, posts: &posts}
		tr.local[0] = nixl.Descriptor{Addr: r.table.Segments[0].Address(b.Block), Len: page}
		tr.spec = nixl.Spec{Op: nixl.Read, Local: tr.local[:], Peer: nixl.Peer{Name: "p", Generation: 1}}
		ticket, err := r.gate.Load(h, tr)
		require.NoError(t, err)
		tickets = append(tickets, ticket)
	}
	post(ts[0])
	require.NoError(t, r.dev.World().Sleep(context.Background(), 1000)) // the poster has it
	for _, b := range ts[1:] {
		post(b)
	}
	_, err = r.gate.Progress(0)
	require.NoError(t, err)
	for i, ticket := range tickets {
		require.True(t, ticket.Done(), "%d", i)
		require.Error(t, ticket.Err())
	}
	require.NoError(t, r.dev.World().Sleep(context.Background(), 1000))
	require.Equal(t, 1, posts)
	require.Zero(t, r.gate.Counters().Poisoned)
}
