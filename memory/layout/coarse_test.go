package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A coarse plan has its blocks and pages where the plan has them, and scales at
// least as far.
func TestCoarse(t *testing.T) {
	eachModel(t, func(t *testing.T, p *Plan) {
		pages, blocks := p.Coarse(WholePages), p.Coarse(WholeBlocks)
		for _, c := range []*Plan{pages, blocks} {
			require.Len(t, c.Groups, len(p.Groups))
			require.Equal(t, p.BlockBytes, c.BlockBytes)
			require.GreaterOrEqual(t, c.MaxScale(64), p.MaxScale(64))
			s, err := c.Scaled(c.MaxScale(64))
			require.NoError(t, err)
			a, err := s.Place(1<<40, 2)
			require.NoError(t, err)
			if s.Size(2) < 1<<15 {
				checkTwin(t, a)
			}
		}
		a, err := p.Place(1<<40, 5)
		require.NoError(t, err)
		c, err := pages.Place(1<<40, 5)
		require.NoError(t, err)
		for g := range p.Groups {
			for i := range p.Groups[g].Pages {
				require.Equal(t, p.Groups[g].Pages[i].Used, pages.Groups[g].Pages[i].Used)
				if o := p.Options.Order; !o.splitsPages() {
					require.Equal(t, a.Page(g, i), c.Page(g, i))
				}
			}
		}
		b, err := blocks.Place(1<<40, 5)
		require.NoError(t, err)
		require.Equal(t, []Segment{{1 << 40, p.BlockBytes, p.BlockBytes}}, b.Tables().Transfer.Segments)
		require.Len(t, blocks.Groups[0].Pages, 1)
	})
}

// Pieces of a state keep the scale down.
func TestCoarseScalesFurther(t *testing.T) {
	m := byHand()
	m.Layers[0].State = &State{ConvKernel: 2, Conv: []Part{{Name: "x", Units: 8, Width: 1}}, Temporal: []int{4, 98}}
	for i := range m.Layers {
		if m.Layers[i].Kind == Recurrent {
			m.Layers[i] = m.Layers[0]
		}
	}
	p := plan(t, m, Options{}) // regions of 16 and 784 bytes in pages of 1024
	require.EqualValues(t, 1, p.MaxScale(64))
	require.EqualValues(t, 16, p.Coarse(WholePages).MaxScale(32))
	require.Equal(t, []Region{{"conv", 0, 16}, {"temporal", 16, 784}}, p.Groups[0].Pages[0].Regions, "the plan itself stays as it was")
}
