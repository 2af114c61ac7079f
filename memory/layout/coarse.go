package layout

import "slices"

// Grain is the smallest piece that a coarse plan tells apart.
type Grain uint8

const (
	WholePages  Grain = iota // a page: states have one region, heads and kernel blocks are not cut
	WholeBlocks              // a block: one run of bytes, in which each group has one page
)

// Coarse returns the plan with no pieces smaller than the grain: blocks, groups
// and sizes are the same, and so are the places of pages with [WholePages]. It is
// for simulations at a reduced size: [Plan.Scaled] has to leave something of
// every piece, so what has fewer pieces can be scaled further.
//
// Bytes of tokens in a coarse plan ([Plan.Cover]) are shares of a page, not those
// of the model.
func (p *Plan) Coarse(grain Grain) *Plan {
	c := *p
	if c.Options.Order = LBNHC; grain == WholeBlocks || p.Options.Order.BlockOutermost() {
		c.Options.Order = BLNHC
	}
	c.Groups = slices.Clone(p.Groups)
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if g.Ratio = 1; g.Kind.Attention() {
			g.KernelTokens = g.BlockTokens
		}
		if len(g.Pages) == 0 {
			continue
		}
		if g.Pages = slices.Clone(g.Pages); grain == WholeBlocks {
			last := g.Pages[len(g.Pages)-1]
			g.Pages = g.Pages[:1]
			g.Pages[0].Bytes, g.Pages[0].Used = p.BlockBytes, last.before+last.Used
		}
		for i := range g.Pages {
			pg := &g.Pages[i]
			if len(pg.Regions) > 0 {
				pg.Regions = []Region{{Name: "state", Len: pg.Used}}
			}
			if pg.perState = 1; pg.Heads > 0 {
				pg.Heads = 1
			}
			if g.Kind.Attention() {
				pg.DType = DefaultDType // no lanes of a packed form
			}
		}
	}
	return &c
}
