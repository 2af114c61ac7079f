package layout

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/memory/kv"
)

// Every model of the reference files is read and laid out, with or without an
// oracle, and its tables make sense under all orders that it can take.
func TestAllModels(t *testing.T) {
	for _, name := range allModels(t) {
		t.Run(name, func(t *testing.T) {
			m := loadModel(t, name)
			hybrid, mixed := false, m.sparse()
			for i := range m.Layers {
				hybrid = hybrid || m.Layers[i].Kind == Recurrent
				mixed = mixed || m.Layers[i].KeyDim != m.Layers[0].KeyDim || m.Layers[i].KVHeads != m.Layers[0].KVHeads
			}
			latent := slices.ContainsFunc(m.Layers, func(l Layer) bool { return l.Kind == LatentAttention })
			refused := []Order{}
			for o := LBNHC; o <= BHLNC; o++ {
				p, err := NewPlan(m, Options{Order: o})
				if err != nil {
					require.ErrorIs(t, err, ErrOptions)
					refused = append(refused, o)
					continue
				}
				checkTables(t, p)
				s, err := p.Scaled(p.MaxScale(16))
				require.NoError(t, err)
				checkTables(t, s)
			}
			switch {
			case m.Layers[0].Kind == LatentWindow: // pages of several groups that do not line up
				require.Equal(t, []Order{LBNHC, LBHNC, LHBNC, BHLNC}, refused)
			case hybrid && latent: // blocks are cut into kernel blocks of 64, too
				require.Equal(t, []Order{LHBNC, BLNHC, BLHNC, BHLNC}, refused)
			case hybrid, mixed:
				require.Equal(t, []Order{LHBNC, BHLNC}, refused)
			default:
				require.Empty(t, refused)
			}
		})
	}
}

// checkTables looks at all tables of a plan: valid, and inside the arena.
func checkTables(t testing.TB, p *Plan) {
	t.Helper()
	const blocks, base = 3, 1 << 40
	a, err := p.Place(base, blocks)
	require.NoError(t, err)
	all := a.Tables().Transfer
	require.Equal(t, p.BlockBytes, all.Bytes())
	tables := []Table{a.SegmentsMerged(), all}
	for g := range p.Groups {
		tables = append(tables, a.Segments(g))
	}
	whole, err := NewMap(all)
	require.NoError(t, err)
	for _, table := range tables {
		require.NoError(t, table.Validate())
		for _, s := range table.Segments {
			require.Zero(t, s.Page%minSegment)
			for b := range kv.Block(blocks) {
				got, _, err := whole.Locate(s.Address(b), s.Page)
				require.NoError(t, err)
				require.Equal(t, b, got)
			}
		}
	}
}

// Settings beyond the oracle files, whose results engines have logged.
func TestKnownResults(t *testing.T) {
	for _, c := range []struct {
		model   string
		o       Options
		block   int
		page    uint64
		padding float64 // per cent
	}{
		{"qwen3.5-35b-a3b", Options{}, 1056, 2162688, 0.76},
		{"qwen3.5-35b-a3b", Options{StateMode: StateAlign, ExportTokens: 64}, 1088, 2228224, 3.82},
		{"qwen3.5-35b-a3b", Options{TP: 8, StateMode: StateAlign, ExportTokens: 64}, 320, 327680, 22.14},
		{"qwen3.5-27b", Options{StateMode: StateAlign, ExportTokens: 64}, 832, 3407872, 6.26},
		{"qwen3.5-27b", Options{SpeculativeTokens: 7}, 832, 3407872, 1.71},
		{"nemotron-h-8b", Options{}, 1040, 4259840, 0.1},
		{"zamba2-7b", Options{TP: 2}, 48, 688128, math.NaN()},
	} {
		t.Run(fmt.Sprintf("%s/tp%d/spec%d/%v", c.model, c.o.TP, c.o.SpeculativeTokens, c.o.StateMode), func(t *testing.T) {
			p, err := NewPlan(loadModel(t, c.model), c.o)
			require.NoError(t, err)
			require.Equal(t, c.block, p.BlockTokens)
			for i := range p.Groups {
				pg := &p.Groups[i].Pages[0]
				require.Equal(t, c.page, pg.Bytes)
				if p.Groups[i].Kind == Recurrent && !math.IsNaN(c.padding) {
					require.InDelta(t, c.padding, 100*float64(pg.Padding())/float64(pg.Used), 0.00501)
				}
			}
		})
	}
}

// The kernel blocks that a backend of fixed sizes cuts blocks into.
func TestKernelBlocks(t *testing.T) {
	for tokens, want := range map[int]int{1056: 32, 528: 16, 784: 16, 800: 32, 2096: 16, 1920: 64, 40: 0} {
		require.Equal(t, want, FlashInfer().split(tokens), "%d tokens", tokens)
	}
	require.Equal(t, 64, FlashMLA().split(1920))
	require.Equal(t, 1056, FlashAttention().split(1056))
	require.Zero(t, FlashAttention().split(1000))
}

// The pieces of a state that transfers move, channels first.
func TestStateRegions(t *testing.T) {
	for _, c := range []struct {
		model string
		tp    int
		want  []Region
	}{
		{"qwen3.5-35b-a3b", 1, []Region{{"Q", 0, 12288}, {"K", 12288, 12288}, {"V", 24576, 24576}, {"temporal", 49152, 2097152}}},
		{"qwen3.5-35b-a3b", 2, []Region{{"Q", 0, 6144}, {"K", 6144, 6144}, {"V", 12288, 12288}, {"temporal", 24576, 1048576}}},
		{"nemotron-3-nano-30b-a3b", 1, []Region{{"x", 0, 24576}, {"B", 24576, 6144}, {"C", 30720, 6144}, {"temporal", 36864, 2097152}}},
		{"nemotron-3-nano-30b-a3b", 2, []Region{{"x", 0, 12288}, {"B", 12288, 3072}, {"C", 15360, 3072}, {"temporal", 18432, 1048576}}},
		{"granite-4.0-h-small", 1, []Region{{"x", 0, 49152}, {"B", 49152, 768}, {"C", 49920, 768}, {"temporal", 50688, 2097152}}},
		{"granite-4.0-h-small", 2, []Region{{"x", 0, 24576}, {"B", 24576, 768}, {"C", 25344, 768}, {"temporal", 26112, 1048576}}},
		{"jamba-1.5-mini", 1, []Region{{"x", 0, 49152}, {"temporal", 49152, 262144}}},
	} {
		t.Run(fmt.Sprintf("%s/tp%d", c.model, c.tp), func(t *testing.T) {
			m := loadModel(t, c.model)
			p, err := NewPlan(m, Options{TP: c.tp, ConvOrder: ConvDS})
			require.NoError(t, err)
			require.Equal(t, c.want, p.Groups[0].Pages[0].Regions)

			a, err := p.Place(1<<40, 2)
			require.NoError(t, err)
			s := a.Segments(0).Segments[len(c.want)-1]
			last := c.want[len(c.want)-1]
			require.Equal(t, Segment{1<<40 + last.Off, p.Groups[0].Pages[0].Bytes, last.Len}, s)

			p, err = NewPlan(m, Options{TP: c.tp})
			require.NoError(t, err)
			require.Equal(t, []Region{{"conv", 0, last.Off}, last}, p.Groups[0].Pages[0].Regions)
		})
	}
}
