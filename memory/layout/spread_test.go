package layout

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

// Between equal layouts the general way finds the same bytes as the direct one.
func TestSpreadOfEqual(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawModel(t)
		p, err := NewPlan(m, o)
		if err != nil {
			return
		}
		local, remote := sides(t, p)
		pairing, err := NewPairing(local, remote.Description())
		require.NoError(t, err)
		spread, err := newSpread(local, []*Description{remote.Description()})
		require.NoError(t, err)
		general := &Pairing{local: newSide(local), peers: 1, spread: spread}
		tokens := drawTokens(t, p, rapid.IntRange(0, len(p.Groups)-1).Draw(t, "group"))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		ours, theirs := request(p, tokens.To, local.Blocks, r), request(p, tokens.To, remote.Blocks, r)
		tr := &Transfer{Tokens: tokens}
		for g := range ours {
			tr.Groups = append(tr.Groups, GroupBlocks{Local: ours[g], Remote: theirs[g], Skip: rapid.Bool().Draw(t, "skip")})
		}
		var a, b Moves
		wantErr, gotErr := pairing.Moves(&a, tr), general.Moves(&b, tr)
		if wantErr != nil {
			require.Error(t, gotErr)
			require.Empty(t, b.Peers[0])
			return
		}
		require.NoError(t, gotErr)
		require.Equal(t, flat(a.Peers[0]), flat(b.Peers[0]))
		moved += len(a.Peers[0])
	})
	require.Positive(t, moved)
}

// flat returns moves in order of our addresses, as long as they can be.
func flat(moves []Move) (out []Move) {
	moves = slices.Clone(moves)
	slices.SortFunc(moves, func(x, y Move) int { return int(x.Local) - int(y.Local) })
	for _, m := range moves {
		out = join(out, m.Local, m.Remote, m.Len)
	}
	return out
}

// engineOf describes an arena as the oracles do.
func engineOf(a *Arena) *engineOracle {
	o := &a.Plan.Options
	e := &engineOracle{TP: o.TP, Rank: o.Rank, Layout: o.Order.String(), ConvOrder: o.ConvOrder.String(), NumBlocks: a.Blocks}
	for g := range a.Plan.Groups {
		gr := &a.Plan.Groups[g]
		e.GroupTokens = append(e.GroupTokens, max(gr.BlockTokens, 1))
		e.KernelTokens = max(e.KernelTokens, gr.KernelTokens)
		for i := range gr.Pages {
			s := a.Page(g, i)
			x := struct {
				Group       int
				Cache       string
				Layers      []int
				Offset      uint64
				LayerStride uint64 `json:"layer_stride"`
				BlockStride uint64 `json:"block_stride"`
				PageBytes   uint64 `json:"page_bytes"`
			}{Group: g, Layers: []int{a.Plan.Model.Layers[gr.Pages[i].Layer].Index}, Offset: s.Base - a.Base, BlockStride: s.Stride, PageBytes: s.Page}
			e.Tensors = append(e.Tensors, x)
		}
	}
	return e
}

// Any two splits of a model, in ranks, stages, blocks and orders: each head of
// each token and each unit of a state comes from where the peer has it.
func TestSpreadOfAnySplits(t *testing.T) {
	planned := 0
	rapid.Check(t, func(t *rapid.T) {
		heads := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "heads")
		window := full(heads, 16)
		window.Kind, window.Window = SlidingWindow, 40
		kinds := []Layer{full(heads, 16), window, mamba2Layer(8, 8, rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "groups"), 4, 4)}
		m := &Model{Name: "any", MaxTokens: 1 << 12}
		for i := range rapid.IntRange(2, 6).Draw(t, "layers") {
			l := rapid.SampledFrom(kinds).Draw(t, "layer")
			l.Index = i
			m.Layers = append(m.Layers, l)
		}
		conv := ConvOrder(rapid.IntRange(0, 1).Draw(t, "conv order"))
		draw := func(side string) Options {
			return Options{TP: rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, side+" tp"), BlockTokens: 16 * rapid.IntRange(1, 4).Draw(t, side+" block"),
				Order: rapid.SampledFrom([]Order{LBNHC, LBHNC, BLNHC, BLHNC}).Draw(t, side+" order"), ConvOrder: conv}
		}
		lo, ro := draw("local"), draw("remote")
		lo.Rank, ro.PP = rapid.IntRange(0, lo.TP-1).Draw(t, "rank"), rapid.IntRange(1, 2).Draw(t, "stages")
		c := &transferOracle{Facts: map[string]any{"kv_heads": float64(heads)}}
		p, err := NewPlan(m, lo)
		require.NoError(t, err)
		local, err := p.Place(localBase, 24)
		require.NoError(t, err)
		c.Local = *engineOf(local)
		var peers []*Description
		for ro.Stage = range ro.PP {
			for ro.Rank = range ro.TP {
				p, err := NewPlan(m, ro)
				if err != nil { // a stage without layers
					return
				}
				remote, err := p.Place(remoteBase(len(peers)), 24)
				require.NoError(t, err)
				c.peers = append(c.peers, peerOracle{engineOf(remote), ro.Rank})
				c.Remote = *engineOf(remote)
				peers = append(peers, remote.Description())
			}
		}
		pairing, err := NewPairing(local, peers...)
		require.NoError(t, err)
		if c.Local.KernelTokens == 0 {
			c.Local.KernelTokens = 16
		}
		planned++
		c.Request.Tokens = rapid.IntRange(1, 100).Draw(t, "tokens")
		next := [2]kv.Block{1, 1}
		for g := range p.Groups {
			var lists [2][]kv.Block
			for side, tokens := range []int{c.Local.GroupTokens[g], c.Remote.GroupTokens[g]} {
				n := 1
				if p.Groups[g].Kind != Recurrent {
					n = (c.Request.Tokens + tokens - 1) / tokens
				}
				for range n {
					lists[side] = append(lists[side], next[side])
					next[side] = next[side]%23 + 1
				}
			}
			c.Request.Groups = append(c.Request.Groups, struct {
				Local  []kv.Block `json:"local_table"`
				Hit    int        `json:"local_hit_blocks"`
				Remote []kv.Block `json:"remote_table"`
			}{Local: lists[0], Remote: lists[1]})
		}
		for g := range p.Groups {
			c.meaningOf(t, local, pairing, g)
		}
	})
	require.Positive(t, planned)
}

func TestSpreadErrors(t *testing.T) {
	m := &Model{Name: "m", Layers: []Layer{full(4, 16), full(4, 16)}}
	m.Layers[1].Index = 1
	arena := func(m *Model, o Options, base uint64) *Arena {
		a, err := plan(t, m, o).Place(base, 8)
		require.NoError(t, err)
		return a
	}
	local := arena(m, Options{}, 1<<30)
	far := func(o Options) *Description { return arena(m, o, 1<<40).Description() }
	narrow := &Model{Name: "m", Layers: []Layer{full(2, 16), full(2, 16)}}
	narrow.Layers[1].Index = 1
	for want, peers := range map[string][]*Description{
		"head: ours is 2, the peer's not on the ranks told": {far(Options{TP: 2})},
		"layer 1, full attention, the peer's not on":        {far(Options{PP: 2})},
		"dtype: ours is bfloat16, the peer's fp8":           {far(Options{KVDType: FP8})},
		"head: ours is 2":  {arena(narrow, Options{}, 1<<40).Description()},
		"model: ours is m": {arena(&Model{Name: "other", Layers: m.Layers}, Options{}, 1<<40).Description()},
		"the peer's ranks have blocks of 16 and of 32 tokens": {far(Options{TP: 2}), far(Options{TP: 2, Rank: 1, BlockTokens: 32})},
		"groups: ours is a list of 1, the peer's a list of 2": {arena(&Model{Name: "m", Layers: []Layer{full(4, 16), state(4, 4)}}, Options{}, 1<<40).Description()},
	} {
		_, err := NewPairing(local, peers...)
		require.ErrorContains(t, err, want)
	}
	p, err := NewPairing(local, far(Options{TP: 2}), far(Options{TP: 2, Rank: 1}))
	require.NoError(t, err)
	read, told := p.Sources()
	require.Equal(t, []int{0, 1}, read)
	require.Empty(t, told)
	var mv Moves
	list := []kv.Block{1}
	for _, g := range []GroupBlocks{{Local: list}, {Remote: list}, {Local: list, Remote: []kv.Block{9}}, {Local: []kv.Block{9}, Remote: list}} {
		require.Error(t, p.Moves(&mv, &Transfer{Tokens: TokenRange{0, 5}, Groups: []GroupBlocks{g}}))
		require.Empty(t, slices.Concat(mv.Peers...))
	}
	require.ErrorIs(t, p.Moves(&mv, &Transfer{}), ErrNoBlock)
	require.ErrorIs(t, p.Moves(&mv, &Transfer{Tokens: TokenRange{5, 4}, Groups: make([]GroupBlocks, 1)}), ErrTokens)
	tr := &Transfer{Tokens: TokenRange{0, 5}, Groups: []GroupBlocks{{Local: list, Remote: list}}}
	require.NoError(t, p.Moves(&mv, tr))
	require.Zero(t, testing.AllocsPerRun(20, func() { _ = p.Moves(&mv, tr) }))
}

// Heads that follow each other on both sides are one move, a page of ours then.
func TestSpreadIsMerged(t *testing.T) {
	m := &Model{Name: "m", Layers: []Layer{full(8, 16), full(8, 16)}}
	m.Layers[1].Index = 1
	for want, o := range map[int][2]Options{
		6:      {{TP: 2, Rank: 1, Order: LBHNC}, {Order: LBHNC}},
		12:     {{TP: 2, Rank: 1, Order: LBHNC, BlockTokens: 32, Kernel: KernelBlocks{Exact: []int{16}}}, {Order: LBHNC}},
		2 * 48: {{TP: 2, Rank: 1}, {}}, // heads of a token side by side: a move for each token
	} {
		local, err := plan(t, m, o[0]).Place(1<<30, 8)
		require.NoError(t, err)
		remote, err := plan(t, m, o[1]).Place(1<<40, 8)
		require.NoError(t, err)
		p, err := NewPairing(local, remote.Description())
		require.NoError(t, err)
		n := 48
		if o[0].BlockTokens > 0 {
			n = 96
		}
		var mv Moves
		require.NoError(t, p.Moves(&mv, &Transfer{Tokens: TokenRange{0, n}, Groups: []GroupBlocks{{Local: []kv.Block{1, 4, 6}, Remote: []kv.Block{1, 3, 5, 7, 2, 4}}}}))
		require.Len(t, mv.Peers[0], want)
	}
}

// What a descriptor costs where a rank of two reads from one, at 512 blocks.
func BenchmarkSpread(b *testing.B) {
	m := &Model{Name: "m"}
	for i := range 16 {
		l := full(8, 64)
		l.Index = i
		m.Layers = append(m.Layers, l)
	}
	local, err := plan(b, m, Options{TP: 2, Order: LBHNC}).Place(1<<36, 1100)
	require.NoError(b, err)
	remote, err := plan(b, m, Options{Order: LBHNC}).Place(1<<44, 1100)
	require.NoError(b, err)
	p, err := NewPairing(local, remote.Description())
	require.NoError(b, err)
	tr := &Transfer{Tokens: TokenRange{0, 512 * 16}, Groups: make([]GroupBlocks, 1)}
	for i := range kv.Block(512) {
		tr.Groups[0].Local = append(tr.Groups[0].Local, 1+2*i)
		tr.Groups[0].Remote = append(tr.Groups[0].Remote, 1024-2*i)
	}
	var mv Moves
	for b.Loop() {
		if err := p.Moves(&mv, tr); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(mv.Peers[0])), "ns/move")
	require.Len(b, mv.Peers[0], 16*512)
}
