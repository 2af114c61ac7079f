package loadgate_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// pair is a gate that decodes, and one that has a prefilled request for it. The
// peer's memory is full of a pattern, and ours of 0xEE.
type pair struct {
	*openRig
	plan    *layout.Plan
	prefill *loadgate.Gate
	peer    loadgate.Peer
	source  loadgate.Request
}

func newPair(t testing.TB, o layout.Options, change func(*loadgate.Options)) *pair {
	p := &pair{plan: hybrid(t, o)}
	p.openRig = newOpenRig(t, p.plan, 40, change)
	p.prefill = p.other("prefill", p.plan)
	blob, err := p.prefill.Metadata()
	require.NoError(t, err)
	p.peer, err = p.gate.AddPeer(context.Background(), blob)
	require.NoError(t, err)
	for g, fill := range map[*loadgate.Gate]func(int) byte{
		p.prefill: func(i int) byte { return byte(1 + i%199) },
		p.gate:    func(int) byte { return 0xEE },
	} {
		b := make([]byte, p.plan.Size(g.Arena().Blocks))
		for i := range b {
			b[i] = fill(i)
		}
		require.NoError(t, p.dev.Write(cuda.DevicePtr(g.Arena().Base), b))
	}
	p.source, err = p.prefill.NewRequest()
	require.NoError(t, err)
	return p
}

// spec is a load of tokens of the source.
func (p *pair) spec(from, to int) loadgate.TransferSpec {
	return loadgate.TransferSpec{Peers: []loadgate.Peer{p.peer}, Blocks: lists(p.t, p.source, len(p.plan.Groups)),
		Tokens: layout.TokenRange{From: from, To: to}}
}

// page returns the bytes of a block in a group's only page.
func page1(t testing.TB, dev *sim.Device, g *loadgate.Gate, group int, b kv.Block) []byte {
	s := g.Arena().Page(group, 0)
	p := make([]byte, s.Page)
	require.NoError(t, dev.Read(p, cuda.DevicePtr(s.Address(b))))
	return p
}

// requireLoaded compares what the first tokens have in both arenas. What a load
// does not cover of a block has to be zero.
func (p *pair) requireLoaded(q loadgate.Request, tokens int) {
	p.t.Helper()
	ours, theirs := lists(p.t, q, 3), lists(p.t, p.source, 3)
	var c layout.Cover
	for g := range p.plan.Groups {
		from := p.plan.Live(g, tokens).From / 16
		if g == 2 {
			from = 0 // Cover tells the row
		}
		require.NoError(p.t, p.plan.Cover(&c, g, layout.TokenRange{From: 0, To: tokens}))
		for i := max(c.First, from); i < c.End; i++ {
			if i >= len(ours[g]) || ours[g][i] == kv.Pad {
				require.NotZero(p.t, g, "a window may lack blocks")
				continue
			}
			have, want := page1(p.t, p.dev, p.gate, g, ours[g][i]), page1(p.t, p.dev, p.prefill, g, theirs[g][i])
			if n := tokens - 16*i; g < 2 && n < 16 {
				clear(want[n*len(want)/16:])
			}
			if g == 2 {
				used := p.plan.Groups[2].Pages[0].Used
				have, want = have[:used], want[:used]
			}
			require.Equal(p.t, want, have, "group %d place %d", g, i)
		}
	}
}

func TestLoadByTokens(t *testing.T) {
	for _, state := range []layout.StateMode{layout.StateNone, layout.StateAlign} {
		ctx := context.Background()
		p := newPair(t, layout.Options{StateMode: state}, nil)
		require.NoError(t, p.source.Grow(101))
		q := p.request()
		require.NoError(t, q.GrowTo(loadgate.Room{Tokens: 101, Loaded: 100, Lookahead: 4}))
		load, err := q.Load(p.spec(0, 100))
		require.NoError(t, err)
		require.Equal(t, [3]int{105, 100, 0}, tokens(t, q))
		_, err = p.gate.NewStep([]loadgate.Use{{Request: q, Tokens: 1}})
		require.ErrorIs(t, err, loadgate.ErrLoading)
		require.NoError(t, load.Wait(ctx))
		require.Equal(t, [3]int{105, 100, 100}, tokens(t, q), "what has arrived is settled")
		p.step(loadgate.Use{Request: q, Tokens: 1})
		require.NoError(t, p.dev.Sync(ctx))
		p.requireLoaded(q, 100)
		require.NoError(t, q.Settle(1))
		ended := p.gate.Ended(nil)
		require.Len(t, ended, 1)
		require.Equal(t, q, ended[0].Request)
		require.NoError(t, ended[0].Err)
		require.NoError(t, q.Close())
		require.Empty(t, p.gate.Ended(nil))
	}
}

// A stretch of tokens that a request computes, one that it loads behind it, and
// one loaded in two parts.
func TestLoadBehindWhatIsSettled(t *testing.T) {
	ctx := context.Background()
	p := newPair(t, layout.Options{StateMode: layout.StateAlign}, nil)
	require.NoError(t, p.source.Grow(64))
	q := p.request()
	require.NoError(t, q.Grow(64))
	first, err := q.Load(p.spec(0, 20))
	require.NoError(t, err)
	second, err := q.Load(p.spec(20, 64))
	require.NoError(t, err)
	require.NoError(t, second.Wait(ctx))
	require.NoError(t, first.Wait(ctx))
	require.Equal(t, [3]int{64, 64, 64}, tokens(t, q))
	p.step(loadgate.Use{Request: q})
	require.NoError(t, p.dev.Sync(ctx))
	p.requireLoaded(q, 64)
}

func TestLoadRefuses(t *testing.T) {
	p := newPair(t, layout.Options{}, nil)
	require.NoError(t, p.source.Grow(100))
	q := p.request()
	require.NoError(t, q.GrowTo(loadgate.Room{Tokens: 50, Lookahead: 20}))
	refused := func(why error, says string, spec loadgate.TransferSpec) {
		t.Helper()
		before := tokens(t, q)
		_, err := q.Load(spec)
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "load of request 0.1")
		require.Equal(t, before, tokens(t, q))
	}
	refused(loadgate.ErrInvalid, "tokens [0,51) reach behind the 50", p.spec(0, 51))
	refused(loadgate.ErrInvalid, "tokens [1,50)", p.spec(1, 50))
	refused(loadgate.ErrInvalid, "tokens [0,0)", p.spec(0, 0))
	refused(loadgate.ErrInvalid, "tokens [-1,4)", p.spec(-1, 4))
	spec := p.spec(0, 50)
	spec.Peers = nil
	refused(loadgate.ErrInvalid, "0 peers", spec)
	spec.Peers = []loadgate.Peer{{}}
	refused(loadgate.ErrInvalid, "not a peer of this gate", spec)
	spec = p.spec(0, 50)
	spec.Blocks = spec.Blocks[:2]
	refused(loadgate.ErrInvalid, "of 2 groups, want 3", spec)
	spec = p.spec(0, 50)
	spec.Blocks[0][1] = 140
	refused(layout.ErrRange, "group 0: place 1 of the peer's list is block 140 of 100", spec)
	spec = p.spec(0, 50)
	spec.Blocks[0] = spec.Blocks[0][:2]
	refused(layout.ErrNoBlock, "group 0: place 2 of the peer's list", spec)
	p.step(loadgate.Use{Request: q, Tokens: 5})
	refused(loadgate.ErrState, "behind a step that is not settled", p.spec(5, 50))
	require.NoError(t, q.Settle(5))
	_, err := q.Store(p.spec(0, 6))
	require.ErrorContains(t, err, "tokens [0,6), of 5 that are settled")
	require.NoError(t, q.Close())
	_, err = q.Load(p.spec(0, 1))
	require.ErrorIs(t, err, loadgate.ErrStale)
	alone := newOpenRig(t, p.plan, 20, func(o *loadgate.Options) { o.Agent = nil })
	other := alone.request()
	require.NoError(t, other.Grow(10))
	_, err = other.Load(p.spec(0, 10))
	require.ErrorIs(t, err, loadgate.ErrInvalid)
}

// A load that is canceled takes its tokens back, and those of loads behind it. The
// request is not ready until another brings them.
func TestLoadFails(t *testing.T) {
	ctx := context.Background()
	p := newPair(t, layout.Options{}, nil)
	require.NoError(t, p.source.Grow(100))
	q := p.request()
	require.NoError(t, q.Grow(101))
	first, err := q.Load(p.spec(0, 30))
	require.NoError(t, err)
	second, err := q.Load(p.spec(30, 100))
	require.NoError(t, err)
	_, err = first.Cancel()
	require.NoError(t, err)
	require.Equal(t, [3]int{101, 0, 0}, tokens(t, q))
	require.NoError(t, second.Wait(ctx))
	require.Equal(t, [3]int{101, 0, 0}, tokens(t, q))
	_, err = p.gate.NewStep([]loadgate.Use{{Request: q}})
	require.ErrorIs(t, err, loadgate.ErrLost)
	require.ErrorIs(t, err, loadgate.ErrCanceled)
	again, err := q.Load(p.spec(0, 100))
	require.NoError(t, err)
	require.NoError(t, again.Wait(ctx))
	require.Equal(t, [3]int{101, 100, 100}, tokens(t, q))
	p.step(loadgate.Use{Request: q, Tokens: 1})
	require.NoError(t, p.dev.Sync(ctx))
	p.requireLoaded(q, 100)
}

func TestStoreByTokens(t *testing.T) {
	ctx := context.Background()
	p := newPair(t, layout.Options{}, nil)
	require.NoError(t, p.source.Grow(40))
	q := p.request()
	require.NoError(t, q.Grow(40))
	load, err := q.Load(p.spec(0, 40))
	require.NoError(t, err)
	require.NoError(t, load.Wait(ctx))
	into, err := p.prefill.NewRequest()
	require.NoError(t, err)
	require.NoError(t, into.Grow(40))
	spec := p.spec(0, 40)
	spec.Blocks, spec.Message = lists(t, into, 3), []byte("stored")
	store, err := q.Store(spec)
	require.NoError(t, err)
	require.NoError(t, store.Wait(ctx))
	p.source = into
	p.requireLoaded(q, 32) // whole blocks
}

// A token that was rejected gives its block back while the next step, which was
// launched on the optimistic count, still writes it. The block's next owner loads
// into it: without order the step's late writes land in the loaded bytes.
func TestRejectedTokensStepWritesATrimmedBlock(t *testing.T) {
	for _, mode := range []loadgate.Mode{loadgate.PerBlock, loadgate.PerBlockSkipCovered, loadgate.StepFIFO, loadgate.SkipCovered} {
		t.Run(mode.String(), func(t *testing.T) {
			ctx := context.Background()
			p := newPair(t, layout.Options{}, func(o *loadgate.Options) { o.Mode = mode })
			require.NoError(t, p.source.Grow(16*19))
			a := p.request()
			require.NoError(t, a.Grow(16))
			p.step(loadgate.Use{Request: a, Tokens: 16})
			require.NoError(t, a.Settle(16))

			// Steps of 16 and 15 tokens, the second before the first is settled.
			require.NoError(t, a.GrowTo(loadgate.Room{Tokens: 17, Lookahead: 30}))
			p.step(loadgate.Use{Request: a, Tokens: 16})
			last := lists(t, a, 1)[0][2]
			scribble, err := p.dev.NewModel("scribble", func(k *sim.ModelLaunch) error {
				k.Time, k.Chunks = 2*time.Millisecond, 4
				k.Step = func(m *sim.Memory, i int) error {
					s := p.gate.Arena().Page(0, 0)
					return m.Write(s.Address(last)+uint64(i)*s.Page/4, bytes.Repeat([]byte{0x77}, int(s.Page/4)))
				}
				return nil
			})
			require.NoError(t, err)
			s, err := p.gate.NewStep([]loadgate.Use{{Request: a, Tokens: 15}})
			require.NoError(t, err)
			_, err = s.Launch(func(c *loadgate.Commands) error {
				c.Launch(p.gate.Compute(), scribble, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}, 0)
				return nil
			})
			require.NoError(t, err)
			require.Len(t, lists(t, a, 1)[0], 3)
			require.NoError(t, a.Settle(1)) // 15 rejected: the last block goes
			require.Len(t, lists(t, a, 1)[0], 2)

			// The pool is small: the next request gets that block too.
			b := p.request()
			n := 16
			for p.counters().Free >= 2 {
				require.NoError(t, b.Grow(n))
				n += 16
			}
			n -= 16
			group, place := -1, 0
			for g, bs := range lists(t, b, 2) {
				for i, have := range bs {
					if have == last {
						group, place = g, i
					}
				}
			}
			require.GreaterOrEqual(t, group, 0, "the block was not handed out again")
			require.GreaterOrEqual(t, place, min(group, 1)*(n-32)/16, "in the window")
			load, err := b.Load(p.spec(0, n))
			require.NoError(t, err)
			require.NoError(t, p.gate.EndStep())
			require.NoError(t, load.Wait(ctx))
			p.step(loadgate.Use{Request: b})
			require.NoError(t, p.dev.Sync(ctx))
			if !mode.Gated() {
				require.NotEqual(t, page1(t, p.dev, p.prefill, group, lists(t, p.source, 2)[group][place]), page1(t, p.dev, p.gate, group, last),
					"the hazard did not show")
				return
			}
			p.requireLoaded(b, n)
		})
	}
}
