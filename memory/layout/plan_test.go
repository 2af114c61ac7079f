package layout

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

func plan(t testing.TB, m *Model, o Options) *Plan {
	t.Helper()
	p, err := NewPlan(m, o)
	require.NoError(t, err)
	return p
}

func full(heads, dim int) Layer {
	return Layer{Kind: FullAttention, KVHeads: heads, KeyDim: dim, ValueDim: dim}
}

func state(rows ...int) Layer { return Layer{Kind: Recurrent, State: &State{Temporal: rows}} }

// A model written by hand: three attention layers, four states.
func byHand() *Model {
	return &Model{Name: "by hand", MaxTokens: 1000, Layers: []Layer{
		state(4, 100), full(2, 8), state(4, 100), full(2, 8), state(4, 100), full(2, 8), state(4, 100)}}
}

func TestByHand(t *testing.T) {
	p := plan(t, byHand(), Options{Pool: 3})
	// 64 bytes a token, a state of 800: blocks of 16 tokens hold 1024.
	require.Equal(t, 16, p.BlockTokens)
	require.EqualValues(t, 4*1024, p.BlockBytes, "3 and 4 layers: one group of each kind")
	require.Equal(t, []Kind{Recurrent, FullAttention}, []Kind{p.Groups[0].Kind, p.Groups[1].Kind})
	require.True(t, p.NeedsZeroing)
	require.Contains(t, p.Why, "4 recurrent layers share blocks with 3 attention layers")

	a, err := p.Place(0x10000, 10)
	require.NoError(t, err)
	const all = 10 * 1024
	require.Equal(t, Table{Pool: 3, Blocks: 10, Segments: []Segment{
		{0x10000, 1024, 1024}, {0x10000 + all, 1024, 1024}, {0x10000 + 2*all, 1024, 1024}}}, a.SegmentsMerged(), "what only states use is not zeroed")
	require.Equal(t, a.SegmentsMerged(), a.Segments(1))
	require.Equal(t, Table{Pool: 3, Blocks: 10, Segments: []Segment{
		{0x10000, 1024, 800}, {0x10000 + all, 1024, 800}, {0x10000 + 2*all, 1024, 800}, {0x10000 + 3*all, 1024, 800}}}, a.Segments(0), "without padding")
	require.Equal(t, []Segment{{0x10000, 1024, 1024}, {0x10000 + all, 1024, 1024}, {0x10000 + 2*all, 1024, 1024}, {0x10000 + 3*all, 1024, 1024}},
		a.Tables().Transfer.Segments)

	p = plan(t, byHand(), Options{Order: BLNHC, RealNull: true})
	a, err = p.Place(0x10000, 10)
	require.NoError(t, err)
	require.Equal(t, Table{RealNull: true, Blocks: 10, Segments: []Segment{{0x10000, 4096, 1024}, {0x10400, 4096, 1024}, {0x10800, 4096, 1024}}}, a.SegmentsMerged())
	require.Equal(t, []Segment{{0x10000, 4096, 4096}}, a.Tables().Transfer.Segments)
}

func TestBlocks(t *testing.T) {
	p := plan(t, byHand(), Options{})
	n, err := p.Blocks(10*4096 - 1)
	require.NoError(t, err)
	require.Equal(t, 9, n)
	require.EqualValues(t, 9*4096, p.Size(n))
	_, err = p.Blocks(2*4096 - 1)
	require.ErrorIs(t, err, ErrOptions, "only the null block")
	n, err = p.Blocks(math.MaxUint64)
	require.NoError(t, err)
	require.Equal(t, MaxBlocks, n)
	p = plan(t, byHand(), Options{RealNull: true})
	n, err = p.Blocks(4096)
	require.NoError(t, err)
	require.Equal(t, 1, n)

	for _, c := range []struct {
		base   uint64
		blocks int
	}{{0, 1}, {1, 0}, {1, -1}, {1, math.MaxInt32 + 1}, {math.MaxUint64 - 5000, 2}} {
		_, err := p.Place(c.base, c.blocks)
		require.ErrorIs(t, err, ErrOptions)
	}
}

func TestRequestBlocks(t *testing.T) {
	p := plan(t, byHand(), Options{SpeculativeTokens: 2})
	require.Equal(t, []int{3, 3, 0}, []int{p.RequestBlocks(0, 33, 1), p.RequestBlocks(1, 33, 1), p.RequestBlocks(1, 0, 1)})
	p = plan(t, byHand(), Options{SpeculativeTokens: 2, StateMode: StateAlign})
	require.Equal(t, 4, p.RequestBlocks(0, 33, 1))

	window := full(2, 8)
	window.Kind, window.Window = SlidingWindow, 100
	p = plan(t, &Model{Layers: []Layer{window}}, Options{})
	require.Equal(t, []int{3, 8, 9}, []int{p.RequestBlocks(0, 33, 1), p.RequestBlocks(0, 10000, 1), p.RequestBlocks(0, 10000, 20)})
}

func TestRanks(t *testing.T) {
	m := &Model{Layers: []Layer{full(8, 16)}}
	heads := func(tp, rank int) [2]int {
		pg := plan(t, m, Options{TP: tp, Rank: rank}).Groups[0].Pages[0]
		return [2]int{pg.FirstHead, pg.Heads}
	}
	require.Equal(t, [2]int{0, 8}, heads(1, 0))
	require.Equal(t, [2]int{6, 2}, heads(4, 3))
	require.Equal(t, [2]int{7, 1}, heads(16, 15), "two ranks share a head")
	require.Equal(t, [2]int{2, 1}, heads(16, 5))
}

func TestZeroing(t *testing.T) {
	mixed := full(2, 8)
	mixed.DType = FP8
	for name, c := range map[string]struct {
		layers []Layer
		kv     DType
		needs  bool
		why    string
	}{
		"plain":           {[]Layer{full(2, 8), full(2, 8)}, 0, false, "2 attention layers, all of bfloat16"},
		"all of fp8":      {[]Layer{full(2, 8), full(2, 8)}, FP8, false, "all of fp8"},
		"mixed precision": {[]Layer{full(2, 8), mixed}, 0, true, "[bfloat16 fp8]"},
		"states alone":    {[]Layer{state(4, 100)}, 0, true, "nothing to zero"},
	} {
		p := plan(t, &Model{Layers: c.layers}, Options{KVDType: c.kv})
		require.Equal(t, c.needs, p.NeedsZeroing, name)
		require.Contains(t, p.Why, c.why, name)
	}
	p := plan(t, &Model{Layers: []Layer{state(4, 100)}}, Options{})
	a, err := p.Place(1, 4)
	require.NoError(t, err)
	require.Empty(t, a.SegmentsMerged().Segments)
	require.Zero(t, p.BlockTokens)
}

// Layers that differ are made equal: blocks of more tokens where the page
// divides the widest, padding elsewhere.
func TestUnequalPages(t *testing.T) {
	window := func(heads, dim int) Layer {
		l := full(heads, dim)
		l.Kind, l.Window = SlidingWindow, 64
		return l
	}
	p := plan(t, &Model{Layers: []Layer{full(4, 8), window(2, 8), window(3, 8)}}, Options{})
	type got struct {
		tokens     int
		page, used uint64
	}
	var all []got
	for _, g := range p.Groups {
		all = append(all, got{g.BlockTokens, g.Pages[0].Bytes, g.Pages[0].Used})
	}
	require.Equal(t, []got{{16, 2048, 2048}, {32, 2048, 2048}, {16, 2048, 1536}}, all)

	// A page with padding can't be cut into kernel blocks.
	chunked := full(3, 8)
	chunked.Kind, chunked.Window = ChunkedLocal, 64
	_, err := NewPlan(&Model{Layers: []Layer{full(4, 8), chunked}}, Options{BlockTokens: 128, Kernel: KernelBlocks{Exact: []int{128}}})
	require.NoError(t, err)
	_, err = NewPlan(&Model{Layers: []Layer{full(4, 8), chunked}}, Options{BlockTokens: 128, Kernel: FlashInfer()})
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "layer 1: a page with padding can't be cut into 2 kernel blocks")

	// Latent pages are neither padded nor multiplied to what they don't divide.
	latent := Layer{Kind: LatentAttention, KVHeads: 1, KeyDim: 3}
	_, err = NewPlan(&Model{Layers: []Layer{window(1, 8), latent}}, Options{})
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "layer 1: pages of 384 bytes don't divide the widest of 2048")

	// One kind, several sizes: one group, sizes together.
	p = plan(t, &Model{Layers: []Layer{full(1, 8), full(3, 8), full(1, 8)}}, Options{})
	require.Len(t, p.Groups, 1)
	a, err := p.Place(1<<20, 4)
	require.NoError(t, err)
	require.Equal(t, []Segment{{1 << 20, 512, 512}, {1<<20 + 4*512, 512, 512}, {1<<20 + 8*512, 1536, 1536}}, a.SegmentsMerged().Segments)
	require.Equal(t, []int{0, 2, 1}, []int{p.Groups[0].Pages[0].Layer, p.Groups[0].Pages[1].Layer, p.Groups[0].Pages[2].Layer})
}

func TestPackedForms(t *testing.T) {
	latent := Layer{Kind: LatentAttention, KVHeads: 1, KeyDim: 576}
	index := Layer{Kind: SparseIndex, KVHeads: 1, KeyDim: 128, DType: FP8Index}
	for d, want := range map[DType]uint64{DefaultDType: 1152, FP8MLA: 656, NVFP4MLA: 352} {
		p := plan(t, &Model{Layers: []Layer{latent, index}}, Options{KVDType: d})
		require.Equal(t, []uint64{64 * want, 64 * 132}, []uint64{p.Groups[0].Pages[0].Bytes, p.Groups[0].Pages[1].Bytes})
	}
	require.EqualValues(t, 64*576, plan(t, &Model{Layers: []Layer{latent}}, Options{KVDType: FP8}).BlockBytes)
	for want, c := range map[string]struct {
		layers []Layer
		d      DType
	}{
		"full attention in a cache of fp8_ds_mla":                {[]Layer{full(2, 8)}, FP8MLA},
		"latent attention in a cache of nvfp4":                   {[]Layer{latent}, NVFP4},
		"latent attention in a cache of int8_per_token_head":     {[]Layer{latent}, INT8PerTokenHead},
		"ask for fp8_ds_mla":                                     {[]Layer{latent, index}, FP8},
		"keys of 8 and values of 8 elements in a cache of nvfp4": {[]Layer{full(2, 8)}, NVFP4},
	} {
		_, err := NewPlan(&Model{Layers: c.layers}, Options{KVDType: c.d})
		require.ErrorContains(t, err, want)
	}

	// Keys and values with their scales: 2 heads of 64 and 32 elements.
	l := Layer{Kind: FullAttention, KVHeads: 2, KeyDim: 64, ValueDim: 32}
	for d, want := range map[DType]uint64{BFloat16: 384, FP8: 192, INT8: 192, FP8PerTokenHead: 208, INT8PerTokenHead: 208} {
		require.EqualValues(t, 16*want, plan(t, &Model{Layers: []Layer{l}}, Options{KVDType: d}).BlockBytes, "%v", d)
	}
	_, err := NewPlan(&Model{Layers: []Layer{l}}, Options{KVDType: NVFP4})
	require.ErrorContains(t, err, "nvfp4 takes keys and values of one size, not of 64 and 32")
	require.EqualValues(t, 16*2*2*36, plan(t, &Model{Layers: []Layer{full(2, 64)}}, Options{KVDType: NVFP4}).BlockBytes)
}

func TestOptionErrors(t *testing.T) {
	m := byHand()
	for want, o := range map[string]Options{
		"TP is -1":                      {TP: -1},
		"TP is 65537":                   {TP: MaxTP + 1},
		"rank is 2, want 0 to 1":        {TP: 2, Rank: 2},
		"rank is -1":                    {Rank: -1},
		"the longest sequence is of -5": {MaxTokens: -5},
		"block tokens are -16":          {BlockTokens: -16},
		"blocks of 20 tokens, but the backend takes multiples of 16":   {BlockTokens: 20},
		"blocks of 40 tokens, but the backend takes one of [16 32 64]": {BlockTokens: 40, Kernel: FlashInfer()},
		"export tokens are -1":           {ExportTokens: -1},
		"speculative tokens are 1025":    {SpeculativeTokens: 1025},
		"a KV cache of dtype 77":         {KVDType: 77},
		"a KV cache of fp8_index":        {KVDType: FP8Index},
		"a temporal state of fp8_ds_mla": {StateDType: FP8MLA},
		"unknown state mode 9":           {StateMode: 9},
		"conv order 9":                   {ConvOrder: 9},
		"order 9":                        {Order: 9},
		"multiples of -3":                {Kernel: KernelBlocks{Multiple: -3}},
		"only one can be":                {Kernel: KernelBlocks{Multiple: 3, Exact: []int{3}}},
		"size 0":                         {Kernel: KernelBlocks{Exact: []int{16, 0}}},
		"17 sizes":                       {Kernel: KernelBlocks{Exact: make([]int, 17)}},
		"4 units of the temporal state can't be spread over 8 ranks":     {TP: 8},
		"2 kv heads can't be spread over 3 ranks":                        {TP: 3},
		"LHBNC takes pages apart by heads":                               {Order: LHBNC},
		"BHLNC takes pages apart by heads":                               {Order: BHLNC},
		"under BLNHC blocks of 128 tokens can't be cut into those of 64": {Order: BLNHC, BlockTokens: 128, Kernel: FlashMLA()},
	} {
		m := m
		if o.TP == 3 {
			m = &Model{Layers: []Layer{full(2, 8)}}
		}
		p, err := NewPlan(m, o)
		require.Nil(t, p)
		require.ErrorIs(t, err, ErrOptions, want)
		require.ErrorContains(t, err, want)
	}
	_, err := NewPlan(&Model{Layers: []Layer{state(1)}}, Options{StateMode: StateAlign})
	require.ErrorContains(t, err, "block tokens have to be given")
	p := plan(t, &Model{Layers: []Layer{state(1)}}, Options{StateMode: StateAlign, BlockTokens: 32})
	require.Equal(t, 32, p.Groups[0].BlockTokens)
	for _, parse := range []func(string) error{
		func(s string) error { _, err := ParseOrder(s); return err },
		func(s string) error { _, err := ParseStateMode(s); return err },
		func(s string) error { _, err := ParseDType(s); return err },
	} {
		require.ErrorIs(t, parse("nonsense"), ErrOptions)
	}
}

func TestModelErrors(t *testing.T) {
	bad := func(change func(*Layer)) *Model {
		l := full(2, 8)
		change(&l)
		return &Model{Name: "m", Layers: []Layer{full(2, 8), l}}
	}
	huge := []int{MaxDim, MaxDim, MaxDim, MaxDim}
	for want, m := range map[string]*Model{
		"0 layers":                              {Name: "m"},
		"4097 layers":                           {Name: "m", Layers: make([]Layer, MaxLayers+1)},
		"MaxTokens is -1":                       {Name: "m", MaxTokens: -1, Layers: []Layer{full(1, 1)}},
		"dtype fp8_ds_mla":                      {Name: "m", DType: FP8MLA, Layers: []Layer{full(1, 1)}},
		"layer 1: kind 9":                       bad(func(l *Layer) { l.Kind = 9 }),
		"layer 1: KVHeads is 0":                 bad(func(l *Layer) { l.KVHeads = 0 }),
		"layer 1: KeyDim is -8":                 bad(func(l *Layer) { l.KeyDim = -8 }),
		"layer 1: ValueDim is 16777217":         bad(func(l *Layer) { l.ValueDim = MaxDim + 1 }),
		"Window is 0":                           bad(func(l *Layer) { l.Kind = SlidingWindow }),
		"full attention with a window":          bad(func(l *Layer) { l.Window = 5 }),
		"latent attention with 2 heads":         bad(func(l *Layer) { l.Kind = LatentAttention }),
		"full attention with a State":           bad(func(l *Layer) { l.State = &State{} }),
		"recurrent without a State":             bad(func(l *Layer) { l.Kind = Recurrent }),
		"a state of nothing":                    bad(func(l *Layer) { *l = state() }),
		"ConvKernel is 0":                       bad(func(l *Layer) { *l = state(); l.State.Conv = []Part{{"x", 1, 1, false}} }),
		"x units is 0":                          bad(func(l *Layer) { *l = state(); l.State.ConvKernel = 4; l.State.Conv = []Part{{Name: "x", Width: 1}} }),
		"temporal dimension is 0":               bad(func(l *Layer) { *l = state(2, 0) }),
		"0 parts and 9 dimensions":              bad(func(l *Layer) { *l = state(1, 1, 1, 1, 1, 1, 1, 1, 1) }),
		"a temporal state of fp8_ds_mla":        bad(func(l *Layer) { *l = state(1); l.State.DType = FP8MLA }),
		"a state of 18446744073709551615 bytes": bad(func(l *Layer) { *l = state(huge...) }),
		"bytes a token, want at most":           bad(func(l *Layer) { l.KVHeads, l.KeyDim, l.ValueDim = MaxDim, MaxDim, MaxDim }),
		"a cache of fp8_index":                  bad(func(l *Layer) { l.DType = FP8Index }),
	} {
		p, err := NewPlan(m, Options{})
		require.Nil(t, p)
		require.ErrorIs(t, err, ErrModel, want)
		require.ErrorContains(t, err, want)
	}
}

func TestScaled(t *testing.T) {
	p := plan(t, byHand(), Options{})
	// Pages of 1024, states of 800.
	require.EqualValues(t, 256, p.MaxScale(4))
	require.EqualValues(t, 32, p.MaxScale(16))
	require.EqualValues(t, 1, p.MaxScale(1<<20))
	s, err := p.Scaled(8)
	require.NoError(t, err)
	require.EqualValues(t, 8, s.Scale)
	require.Equal(t, "by hand, TP 1, LBNHC: blocks of 16 tokens and 4096 bytes (the model names no dtype: bfloat16); groups: 4 recurrent, 3 full attention", p.String())
	require.Equal(t, "by hand, TP 1, LBNHC: blocks of 16 tokens and 512 bytes (1/8 of the true size) (the model names no dtype: bfloat16); groups: 4 recurrent, 3 full attention", s.String())
	require.EqualValues(t, 4*128, s.BlockBytes)
	require.Equal(t, []Region{{"temporal", 0, 100}}, s.Groups[0].Pages[0].Regions)
	require.EqualValues(t, 4*1024, p.BlockBytes, "the plan itself stays as it was")
	require.Equal(t, []Region{{"temporal", 0, 800}}, p.Groups[0].Pages[0].Regions)

	half, err := p.Scaled(2)
	require.NoError(t, err)
	quarter, err := half.Scaled(4)
	require.NoError(t, err)
	require.Equal(t, s, quarter)
	same, err := p.Scaled(1)
	require.NoError(t, err)
	require.Equal(t, p, same)
	for _, k := range []uint32{0, 3, 512, math.MaxUint32} {
		_, err := p.Scaled(k)
		require.ErrorIs(t, err, ErrOptions)
	}
	_, err = s.Scaled(math.MaxUint32 / 4)
	require.ErrorIs(t, err, ErrOptions, "64 bits would not overflow, the scale does")
}

// Borders inside a state go to the nearest multiple of 4; a region that would
// be lost keeps the scale down.
func TestScaledRegions(t *testing.T) {
	m := &Model{Name: "m", Layers: []Layer{full(2, 8), {Kind: Recurrent, State: &State{
		ConvKernel: 2, Conv: []Part{{Name: "x", Units: 50, Width: 1}}, Temporal: []int{4, 100}}}}}
	p := plan(t, m, Options{})
	require.Equal(t, []Region{{"conv", 0, 100}, {"temporal", 100, 800}}, p.Groups[1].Pages[0].Regions)
	s, err := p.Scaled(8)
	require.NoError(t, err)
	require.Equal(t, []Region{{"conv", 0, 12}, {"temporal", 12, 100}}, s.Groups[1].Pages[0].Regions)
	require.EqualValues(t, 112, s.Groups[1].Pages[0].Used)
	s, err = p.Scaled(32)
	require.NoError(t, err)
	require.Equal(t, []Region{{"conv", 0, 4}, {"temporal", 4, 24}}, s.Groups[1].Pages[0].Regions)
	_, err = p.Scaled(64)
	require.ErrorContains(t, err, "scale 64 leaves nothing of a region")
	require.EqualValues(t, 32, p.MaxScale(4))

	// 2112 of 8192 bytes are used by the index.
	p = plan(t, &Model{Layers: []Layer{full(4, 16), {Kind: SparseIndex, KVHeads: 1, KeyDim: 128, DType: FP8Index}}}, Options{TP: 4})
	_, err = p.Scaled(p.MaxScale(4) * 2)
	require.ErrorIs(t, err, ErrOptions)
	s, err = p.Scaled(p.MaxScale(4))
	require.NoError(t, err)
	for g := range s.Groups {
		require.Positive(t, s.Groups[g].Pages[0].Used)
	}
}

// Any model and options: refused, or a plan whose tables make sense, whose
// scaled tables are the tables divided, and in which every byte of a block that
// any group uses is a byte of the transfer table.
func TestAnyPlan(t *testing.T) {
	planned := 0
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawModel(t)
		p, err := NewPlan(m, o)
		if err != nil {
			return
		}
		planned++
		const blocks, base = 4, 1 << 30
		a, err := p.Place(base, blocks)
		require.NoError(t, err)
		whole, err := NewMap(a.Tables().Transfer)
		require.NoError(t, err)
		tables := []Table{a.Tables().Transfer, a.SegmentsMerged()}
		for g := range p.Groups {
			tables = append(tables, a.Segments(g))
		}
		for _, table := range tables {
			require.NoError(t, table.Validate())
			for _, s := range table.Segments {
				require.LessOrEqual(t, s.end(blocks), base+p.Size(blocks))
				for b := range kv.Block(blocks) {
					got, _, err := whole.Locate(s.Address(b), s.Page)
					require.NoError(t, err)
					require.Equal(t, b, got)
				}
			}
		}
		covered(t, a)

		k := p.MaxScale(4)
		s, err := p.Scaled(k)
		require.NoError(t, err)
		b, err := s.Place(base, blocks)
		require.NoError(t, err)
		want := a.SegmentsMerged().Segments
		for i := range want {
			want[i] = Segment{base + (want[i].Base-base)/uint64(k), want[i].Stride / uint64(k), max(border(want[i].Page, uint64(k)), minSegment)}
		}
		require.Equal(t, want, b.SegmentsMerged().Segments)
	})
	require.Positive(t, planned)
}

// drawModel draws a model and options, which need not fit each other.
func drawModel(t *rapid.T) (*Model, Options) {
	m := &Model{Name: "any", MaxTokens: 1 << 12}
	layer := rapid.SampledFrom([]Layer{
		full(4, 16), full(4, 32), full(8, 16), full(2, 24),
		{Kind: SlidingWindow, KVHeads: 4, KeyDim: 16, ValueDim: 16, Window: 100},
		{Kind: ChunkedLocal, KVHeads: 4, KeyDim: 32, ValueDim: 16, Window: 64},
		{Kind: LatentWindow, KVHeads: 1, KeyDim: 512, DType: FP8MLAV4, Window: 100, BlockTokens: 8, PageAlign: 576},
		{Kind: LatentAttention, KVHeads: 1, KeyDim: 24, DType: BFloat16, Compression: 4, PageAlign: 576},
		{Kind: CompressorState, KVHeads: 1, KeyDim: 40, DType: Float32, Window: 8, BlockTokens: 4, PageAlign: 576},
		{Kind: LatentAttention, KVHeads: 1, KeyDim: 64},
		{Kind: SparseIndex, KVHeads: 1, KeyDim: 128, DType: FP8Index},
		mamba1(256, 16, 4), mamba2Layer(8, 16, 2, 32, 4), deltaNet(4, 16, 8, 16, 4), state(8, 3),
	})
	kinds := rapid.SliceOfN(layer, 1, 3).Draw(t, "kinds")
	for range rapid.IntRange(1, 12).Draw(t, "layers") {
		l := rapid.SampledFrom(kinds).Draw(t, "layer")
		l.Index = len(m.Layers)
		m.Layers = append(m.Layers, l)
	}
	return m, Options{
		PP:                rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "pp"),
		RowTokens:         rapid.SampledFrom([]int{0, 1, 64}).Draw(t, "rows"),
		TP:                rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "tp"),
		BlockTokens:       rapid.SampledFrom([]int{0, 16, 64, 128}).Draw(t, "block"),
		Order:             Order(rapid.IntRange(0, 5).Draw(t, "order")),
		ConvOrder:         ConvOrder(rapid.IntRange(0, 1).Draw(t, "conv order")),
		SpeculativeTokens: rapid.IntRange(0, 3).Draw(t, "speculative"),
		StateMode:         StateMode(rapid.IntRange(0, 1).Draw(t, "mode")),
		Kernel:            rapid.SampledFrom([]KernelBlocks{{}, FlashInfer(), FlashMLA()}).Draw(t, "kernel"),
	}
}

// covered checks that zeroing by the merged table writes what zeroing by the
// table of each attention group would, and no other byte.
func covered(t *rapid.T, a *Arena) {
	bytesOf := func(tables ...Table) []bool {
		set := make([]bool, a.Plan.Size(a.Blocks))
		for _, table := range tables {
			for _, s := range table.Segments {
				for i := range s.Page {
					set[s.Address(1)-a.Base+i] = true
				}
			}
		}
		return set
	}
	var each []Table
	for g := range a.Plan.Groups {
		if a.Plan.Groups[g].Kind.Attention() {
			each = append(each, a.Segments(g))
		}
	}
	require.True(t, slices.Equal(bytesOf(each...), bytesOf(a.SegmentsMerged())))
}
