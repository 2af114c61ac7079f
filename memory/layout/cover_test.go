package layout

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

// tokenBytes is the plain twin of Cover: it calls f with the bytes of a block
// that hold one token, page by page, from the order of dimensions alone.
func tokenBytes(a *Arena, g, token int, f func(page int, o uint64)) {
	gr := &a.Plan.Groups[g]
	kernel := token / gr.KernelTokens
	for i := range gr.Pages {
		pg := &gr.Pages[i]
		each := max(a.Plan.Model.Layers[pg.Layer].Compression, 1) // tokens of a vector
		at, token, kernelTokens, blockTokens := token%gr.KernelTokens/each, token/each, gr.KernelTokens/each, gr.BlockTokens/each
		n := pg.Used / uint64(blockTokens) // bytes of a vector
		add := func(o, length uint64) {
			for k := range length {
				f(i, o+k)
			}
		}
		start := uint64(kernel) * pg.Used / uint64(gr.Ratio)
		content := n / uint64(pg.Heads) // of a head
		switch {
		case pg.DType == FP8Index:
			elements := n / 132 * 128
			add(start+uint64(at)*elements, elements)
			add(start+uint64(kernelTokens)*elements+uint64(at)*(n-elements), n-elements)
		case pg.DType == FP8MLAV4:
			add(start+uint64(at)*576, 576)
			add(start+uint64(kernelTokens)*576+uint64(at)*8, 8)
		case a.Plan.Options.Order == LBHNC || a.Plan.Options.Order == BLHNC:
			for h := range uint64(pg.Heads) {
				add(start+(h*uint64(kernelTokens)+uint64(at))*content, content)
			}
		case a.Plan.Options.Order.splitsPages():
			for h := range uint64(pg.Heads) {
				add((h*uint64(blockTokens)+uint64(token))*content, content)
			}
		default:
			add(start+uint64(at)*n, n)
		}
	}
}

// checkCover holds Cover against the twin and against the fill table.
func checkCover(t require.TestingT, a *Arena, c *Cover, g int, tokens TokenRange) {
	p, gr, tables := a.Plan, &a.Plan.Groups[g], a.Tables()
	require.NoError(t, p.Cover(c, g, tokens))
	if tokens.From == tokens.To {
		require.Equal(t, []int{0, 0, 0, 0, 0}, []int{c.First, c.End, c.WholeFirst, c.WholeEnd, len(c.Parts)})
		return
	}
	if gr.Kind == Recurrent {
		want := 0
		if p.Options.StateMode == StateAlign {
			want = (tokens.To - 1) / gr.BlockTokens
		}
		require.Equal(t, []int{want, want + 1, want, want + 1, 0}, []int{c.First, c.End, c.WholeFirst, c.WholeEnd, len(c.Parts)})
		return
	}
	fill, err := tables.Transfer.Ranges(tables.Groups[g].Fill)
	require.NoError(t, err)
	touched := map[int][]int{}
	for token := tokens.From; token < tokens.To; token++ {
		touched[token/gr.BlockTokens] = append(touched[token/gr.BlockTokens], token%gr.BlockTokens)
	}
	require.Equal(t, len(touched), c.End-c.First)
	require.Equal(t, tokens.From/gr.BlockTokens, c.First)
	parts := map[int]BlockPart{}
	for _, part := range c.Parts {
		parts[part.Index] = part
	}
	for index, of := range touched {
		whole := index >= c.WholeFirst && index < c.WholeEnd
		require.Equal(t, len(of) == gr.BlockTokens, whole, "block %d", index)
		part, ok := parts[index]
		require.Equal(t, !whole, ok, "block %d", index)
		if whole {
			continue
		}
		require.Equal(t, TokenRange{of[0], of[len(of)-1] + 1}, part.Tokens)
		require.Equal(t, of[0]/gr.KernelTokens, part.KernelFirst)
		require.Equal(t, of[len(of)-1]/gr.KernelTokens+1, part.KernelEnd)
		shared := slices.ContainsFunc(gr.Pages, func(pg Page) bool { return p.Model.Layers[pg.Layer].Compression > 1 })
		set, rest := make([]bool, tables.Transfer.Bytes()), make([]bool, tables.Transfer.Bytes())
		for _, r := range fill {
			for o := r.Off; o < r.End(); o++ {
				rest[o] = true
			}
		}
		for _, token := range of {
			tokenBytes(a, g, token, func(page int, at uint64) {
				_, o := placeOf(a, g, page, 1, at)
				if !rest[o] && !(set[o] && shared) {
					require.True(t, rest[o], "byte %d is of two tokens, or of none", o)
				}
				set[o], rest[o] = true, false
			})
		}
		require.True(t, slices.Equal(runsOf(set), part.Bytes), "%v, want %v", part.Bytes, runsOf(set))
		require.True(t, slices.Equal(runsOf(rest), part.Rest), "%v, want %v", part.Rest, runsOf(rest))
	}
}

func drawTokens(t *rapid.T, p *Plan, g int) TokenRange {
	n := max(p.Groups[g].BlockTokens, 1)
	at := rapid.OneOf(rapid.IntRange(0, 4*n), rapid.Map(rapid.IntRange(0, 4), func(i int) int { return i * n }))
	from, to := at.Draw(t, "from"), at.Draw(t, "to")
	return TokenRange{min(from, to), max(from, to)}
}

func TestCoverOfAnyPlan(t *testing.T) {
	parts := 0
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawModel(t)
		p, err := NewPlan(m, o)
		if err != nil {
			return
		}
		a, err := p.Place(1<<30, 2)
		require.NoError(t, err)
		var c Cover
		for range 3 {
			g := rapid.IntRange(0, len(p.Groups)-1).Draw(t, "group")
			checkCover(t, a, &c, g, drawTokens(t, p, g))
			parts += len(c.Parts)
		}
	})
	require.Positive(t, parts)
}

// In a scaled plan tokens have no bytes of their own, but ranges of tokens that
// follow each other are bytes that follow each other, and what is left is left.
func TestCoverOfScaledModels(t *testing.T) {
	eachModel(t, func(t *testing.T, p *Plan) {
		p, err := p.Scaled(p.MaxScale(4))
		require.NoError(t, err)
		a, err := p.Place(1<<30, 2)
		require.NoError(t, err)
		tables := a.Tables()
		for g := range p.Groups {
			gr := &p.Groups[g]
			if gr.Kind == Recurrent {
				continue
			}
			fill, err := tables.Transfer.Ranges(tables.Groups[g].Fill)
			require.NoError(t, err)
			cuts := []int{0, 1, gr.KernelTokens - 1, gr.BlockTokens/2 + 1, gr.BlockTokens - 1, gr.BlockTokens}
			for i := range gr.Pages { // a vector of several tokens is touched by each of them
				for j := range cuts {
					cuts[j] -= cuts[j] % int(gr.Pages[i].perState)
				}
			}
			slices.Sort(cuts)
			var all []kv.Range
			var c Cover
			for i := 1; i < len(cuts); i++ {
				if cuts[i-1] == cuts[i] {
					continue
				}
				require.NoError(t, p.Cover(&c, g, TokenRange{gr.BlockTokens + cuts[i-1], gr.BlockTokens + cuts[i]}))
				if c.WholeEnd > c.WholeFirst {
					all = append(all, fill...)
					continue
				}
				require.Len(t, c.Parts, 1)
				part := c.Parts[0]
				require.Equal(t, 1, part.Index)
				both := slices.Concat(part.Bytes, part.Rest)
				require.Equal(t, lengths(fill), lengths(both))
				require.Equal(t, fill, mergeRanges(both))
				all = append(all, part.Bytes...)
			}
			require.Equal(t, lengths(fill), lengths(all))
			require.Equal(t, fill, mergeRanges(all), "group %d", g)
		}
	})
}

func lengths(ranges []kv.Range) (n uint64) {
	for _, r := range ranges {
		n += r.Len
	}
	return n
}

func TestCoverByHand(t *testing.T) {
	m := byHand()
	var c Cover
	p := plan(t, m, Options{Order: LBHNC, BlockTokens: 16, Kernel: KernelBlocks{Exact: []int{8}}})
	// Pages of 1024: kernel blocks of 8 tokens and 512 bytes, two heads of 256 each.
	require.Equal(t, 2, p.Groups[1].Ratio)
	require.NoError(t, p.Cover(&c, 1, TokenRange{10, 50}))
	require.Equal(t, []int{0, 4, 1, 3}, []int{c.First, c.End, c.WholeFirst, c.WholeEnd})
	require.Len(t, c.Parts, 2)
	require.Equal(t, BlockPart{Index: 0, Tokens: TokenRange{10, 16}, KernelFirst: 1, KernelEnd: 2,
		Bytes: []kv.Range{{Off: 576, Len: 192}, {Off: 832, Len: 192}, {Off: 1600, Len: 192}, {Off: 1856, Len: 192}, {Off: 2624, Len: 192}, {Off: 2880, Len: 192}},
		Rest:  []kv.Range{{Off: 0, Len: 576}, {Off: 768, Len: 64}, {Off: 1024, Len: 576}, {Off: 1792, Len: 64}, {Off: 2048, Len: 576}, {Off: 2816, Len: 64}}},
		c.Parts[0])
	require.Equal(t, []any{3, TokenRange{0, 2}, 0, 1}, []any{c.Parts[1].Index, c.Parts[1].Tokens, c.Parts[1].KernelFirst, c.Parts[1].KernelEnd})

	require.NoError(t, p.Cover(&c, 0, TokenRange{10, 50}))
	require.Equal(t, Cover{End: 1, WholeEnd: 1}, Cover{First: c.First, End: c.End, WholeFirst: c.WholeFirst, WholeEnd: c.WholeEnd}, "one row")
	require.Empty(t, c.Parts)
	align := plan(t, m, Options{StateMode: StateAlign})
	for to, want := range map[int]int{1: 0, 16: 0, 17: 1, 50: 3} {
		require.NoError(t, align.Cover(&c, 0, TokenRange{0, to}))
		require.Equal(t, []int{want, want + 1}, []int{c.First, c.End}, "the row at the place of token %d", to-1)
	}

	for _, bad := range []struct {
		group  int
		tokens TokenRange
		says   string
	}{
		{2, TokenRange{0, 1}, "group 2 of 2"}, {-1, TokenRange{0, 1}, "group -1"}, {0, TokenRange{-1, 1}, "tokens [-1,1)"},
		{1, TokenRange{5, 4}, "tokens [5,4)"}, {1, TokenRange{0, MaxTokens + 1}, "tokens [0,1073741825)"}, {0, TokenRange{math.MinInt, math.MaxInt}, "tokens"},
	} {
		err := p.Cover(&c, bad.group, bad.tokens)
		require.ErrorIs(t, err, ErrTokens)
		require.ErrorContains(t, err, bad.says)
		require.Zero(t, c.End)
		require.Empty(t, c.Parts)
	}
}

// Tokens times bytes do not fit in 64 bits, the shares do.
func TestShare(t *testing.T) {
	require.EqualValues(t, maxPage/2, share(maxPage, MaxTokens/2, MaxTokens))
	require.EqualValues(t, uint64(math.MaxUint64), share(math.MaxUint64, 7, 7))
	require.EqualValues(t, uint64(math.MaxUint64)/3*2, share(math.MaxUint64, 2, 3))
	require.EqualValues(t, 3, share(10, 1, 3))
}

func TestLive(t *testing.T) {
	window := full(2, 8)
	window.Kind, window.Window = SlidingWindow, 100
	p := plan(t, &Model{Layers: []Layer{full(2, 8), window, state(4, 50)}}, Options{})
	for _, c := range []struct{ settled, full, window, state int }{
		{0, 0, 0, 0}, {1, 0, 0, 0}, {99, 0, 0, 98}, {100, 0, 1, 99}, {500, 0, 401, 499},
	} {
		for g := range p.Groups {
			want := map[Kind]int{FullAttention: c.full, SlidingWindow: c.window, Recurrent: c.state}[p.Groups[g].Kind]
			require.Equal(t, TokenRange{want, c.settled}, p.Live(g, c.settled), "%v", p.Groups[g].Kind)
		}
	}
}

// A chunk begins anew: the next token looks at nothing before its own.
func TestLiveChunk(t *testing.T) {
	chunk := full(2, 8)
	chunk.Kind, chunk.Window = ChunkedLocal, 100
	p := plan(t, &Model{Layers: []Layer{chunk}}, Options{})
	for settled, from := range map[int]int{0: 0, 99: 0, 100: 100, 101: 100, 250: 200} {
		require.Equal(t, TokenRange{from, settled}, p.Live(0, settled))
	}
	require.Equal(t, []int{2, 7}, []int{p.RequestBlocks(0, 20, 1), p.RequestBlocks(0, 1000, 1)})
}

// A vector of several tokens is touched by each of them, and is no rest.
func TestCoverOfCompressed(t *testing.T) {
	l := Layer{Kind: LatentAttention, KVHeads: 1, KeyDim: 8, DType: BFloat16, Compression: 4} // 16 bytes for 4 tokens
	p := plan(t, &Model{Layers: []Layer{l}}, Options{Kernel: KernelBlocks{Exact: []int{32}}})
	require.EqualValues(t, 128, p.BlockBytes)
	var c Cover
	require.NoError(t, p.Cover(&c, 0, TokenRange{5, 14}))
	require.Equal(t, []kv.Range{{Off: 16, Len: 48}}, c.Parts[0].Bytes)
	require.Equal(t, []kv.Range{{Off: 0, Len: 16}, {Off: 64, Len: 64}}, c.Parts[0].Rest)
	require.NoError(t, p.Cover(&c, 0, TokenRange{30, 31}))
	require.Equal(t, []kv.Range{{Off: 112, Len: 16}}, c.Parts[0].Bytes)

	p = plan(t, &Model{Layers: []Layer{full(2, 16)}}, Options{KVDType: NVFP4})
	require.NoError(t, p.Cover(&c, 0, TokenRange{16, 48}))
	require.Equal(t, []int{1, 3}, []int{c.WholeFirst, c.WholeEnd})
	require.ErrorIs(t, p.Cover(&c, 0, TokenRange{16, 47}), ErrTokens)
	require.Zero(t, c.End)
}

func TestCoverAllocatesNothing(t *testing.T) {
	p := plan(t, byHand(), Options{Order: LBHNC})
	var c Cover
	run := func() {
		for g := range p.Groups {
			if err := p.Cover(&c, g, TokenRange{5, 1000}); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))
}
