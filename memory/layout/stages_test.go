package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// shares returns how many of depth layers each of the stages has.
func shares(t *testing.T, depth int, o Options) (out []int) {
	m := &Model{Depth: depth, Layers: []Layer{full(1, 1)}}
	for o.Stage = range o.PP {
		require.NoError(t, o.checkStages(m))
		first, end := o.stage(m)
		out = append(out, end-first)
	}
	return out
}

func TestStageShares(t *testing.T) {
	require.Equal(t, []int{23, 24, 24, 23}, shares(t, 94, Options{PP: 4}))
	require.Equal(t, []int{15, 15, 16, 15}, shares(t, 61, Options{PP: 4}))
	require.Equal(t, []int{2, 2, 2, 1}, shares(t, 7, Options{PP: 4}))
	require.Equal(t, []int{8}, shares(t, 8, Options{PP: 1}))
	require.Equal(t, []int{1, 5, 2}, shares(t, 8, Options{PP: 3, StageLayers: []int{1, 5, 2}}))
}

// A stage keeps its layers of each group, and is as wide as its widest group.
func TestStages(t *testing.T) {
	m := byHand() // R A R A R A R
	for i := range m.Layers {
		m.Layers[i].Index = i
	}
	whole := plan(t, m, Options{})
	for stage, want := range map[int][2][]int{0: {{0}, {1}}, 1: {{2}, {3}}, 2: {{4, 6}, {5}}} {
		p := plan(t, m, Options{PP: 3, Stage: stage, StageLayers: []int{2, 2, 3}})
		require.Equal(t, whole.BlockTokens, p.BlockTokens)
		require.Contains(t, p.String(), "of 3, LBNHC")
		widest := 0
		for g := range p.Groups {
			var got []int
			for i := range p.Groups[g].Pages {
				got = append(got, p.Groups[g].Pages[i].Layer)
				require.EqualValues(t, i*1024, p.Groups[g].Pages[i].before)
			}
			require.Equal(t, want[g], got, "stage %d group %d", stage, g)
			widest = max(widest, len(got))
		}
		require.EqualValues(t, widest*1024, p.BlockBytes)
		checkTables(t, p)
	}
	// A group without layers on a stage is there nevertheless.
	p := plan(t, m, Options{PP: 2, StageLayers: []int{1, 6}})
	require.Len(t, p.Groups, 2)
	require.Empty(t, p.Groups[1].Pages)
	require.Equal(t, FullAttention, p.Groups[1].Kind)
	require.Equal(t, 3, p.RequestBlocks(1, 33, 1))
	require.True(t, p.NeedsZeroing)
	a, err := p.Place(1<<20, 4)
	require.NoError(t, err)
	require.Empty(t, a.SegmentsMerged().Segments)
	require.Len(t, a.Tables().Transfer.Segments, 1)
	require.Empty(t, a.Tables().Groups[1].Fill.Segments)
	checkTables(t, p)
	_, err = p.Scaled(p.MaxScale(16))
	require.NoError(t, err)

	for want, o := range map[string]Options{
		"8 pipeline stages for 7 layers": {PP: 8},
		"-1 pipeline stages":             {PP: -1},
		"stage is 2, want 0 to 1":        {PP: 2, Stage: 2},
		"stage is 1, want 0 to 0":        {Stage: 1},
		"layers of 1 stages, want 2":     {PP: 2, StageLayers: []int{7}},
		"the stages have 6 layers":       {PP: 2, StageLayers: []int{3, 3}},
		"stage 0 has 0 layers":           {PP: 2, StageLayers: []int{0, 7}},
	} {
		_, err := NewPlan(m, o)
		require.ErrorIs(t, err, ErrOptions)
		require.ErrorContains(t, err, want)
	}
	bare := &Model{Name: "m", Depth: 4, Layers: []Layer{full(1, 8)}}
	_, err = NewPlan(bare, Options{PP: 2, Stage: 1})
	require.ErrorContains(t, err, "stage 1 has no layer with a cache")
}

// The layers of a draft model are grouped with the model's own, on the last
// stage, and don't change the block size.
func TestDraft(t *testing.T) {
	m := byHand()
	for i := range m.Layers {
		m.Layers[i].Index = i
	}
	draft := &Model{Name: "draft", Layers: []Layer{full(2, 8)}}
	both, err := m.WithDraft(draft)
	require.NoError(t, err)
	require.Equal(t, 7, both.Depth)
	require.Equal(t, Layer{Kind: FullAttention, Index: 7, Draft: true, KVHeads: 2, KeyDim: 8, ValueDim: 8}, both.Layers[7])
	require.Len(t, m.Layers, 7)
	p := plan(t, both, Options{PP: 2, Stage: 1})
	require.Equal(t, 16, p.BlockTokens)
	require.Len(t, p.Groups[1].Pages, 2, "of layers 4 to 6, and the draft's")
	require.Len(t, plan(t, both, Options{PP: 2}).Groups[1].Pages, 2, "of layers 0 to 3")

	// Larger pages of a draft: the model's own are made equal to them.
	both, err = m.WithDraft(&Model{Name: "draft", Layers: []Layer{full(4, 8)}})
	require.NoError(t, err)
	p = plan(t, both, Options{})
	require.Equal(t, 16, p.BlockTokens)
	require.Equal(t, []int{1000, 32, 16}, []int{p.Groups[0].BlockTokens, p.Groups[4].BlockTokens, p.Groups[len(p.Groups)-1].BlockTokens})
	for g := range p.Groups {
		require.EqualValues(t, 2048, p.Groups[g].Pages[0].Bytes)
	}

	_, err = m.WithDraft(&Model{Name: "draft", DType: Float32, Layers: []Layer{full(4, 8)}})
	require.ErrorIs(t, err, ErrModel)
	require.ErrorContains(t, err, `of bfloat16 with draft "draft" of float32`)
	_, err = m.WithDraft(&Model{})
	require.ErrorIs(t, err, ErrModel)
}

// Block outermost, pages of several sizes are packed side by side: buckets that
// have as many pages of each size are cut alike, and windows and states so that
// they don't widen the block.
func TestPack(t *testing.T) {
	window := func(heads int) Layer {
		l := full(heads, 8)
		l.Kind, l.Window = SlidingWindow, 64
		return l
	}
	m := &Model{Name: "m"}
	for range 3 {
		m.Layers = append(m.Layers, full(4, 8), window(2), window(2))
	}
	for i := range m.Layers {
		m.Layers[i].Index = i
	}
	sizes := func(p *Plan) (out [][2]int) {
		for g := range p.Groups {
			out = append(out, [2]int{len(p.Groups[g].Pages), int(p.Groups[g].Bytes())})
		}
		return out
	}
	p := plan(t, m, Options{Order: BLNHC})
	require.Equal(t, [][2]int{{3, 6144}, {6, 6144}}, sizes(p), "six windows of half the size fit beside three full pages")
	require.EqualValues(t, 6144, p.BlockBytes)
	require.Equal(t, 16, p.Groups[1].BlockTokens)
	checkTables(t, p)
	m.Layers = m.Layers[:7]
	require.Equal(t, [][2]int{{3, 6144}, {4, 4096}}, sizes(plan(t, m, Options{Order: BLNHC})))
	m.Layers = append(m.Layers[:1], window(2), window(2), window(2))
	require.Equal(t, [][2]int{{1, 2048}, {2, 2048}, {1, 1024}}, sizes(plan(t, m, Options{Order: BLNHC})))

	require.Equal(t, 22, leastPadding([]int{43, 21, 20}, 21), "DeepSeek-V4-Flash")
	require.Equal(t, 6, leastPadding([]int{6, 6}, 2), "of several the largest")
}

func TestRows(t *testing.T) {
	m := loadModel(t, "deepseek-v3.2")
	require.EqualValues(t, 5012736, plan(t, m, Options{Order: BLNHC}).BlockBytes)
	require.EqualValues(t, 5013504, plan(t, m, Options{Order: BLNHC, RowTokens: 1}).BlockBytes)
	require.EqualValues(t, 5012736, plan(t, m, Options{RowTokens: 1}).BlockBytes)
	p := plan(t, m, Options{Order: BLNHC, RowTokens: 1})
	checkTables(t, p)
	_, err := NewPlan(m, Options{RowTokens: -1})
	require.ErrorContains(t, err, "row tokens are -1")
}
