package layout

import (
	"math"
	"slices"
)

// MaxScale returns the largest k that [Plan.Scaled] takes if at least unit bytes
// are to be left of the greatest common divisor of all segments, and so of each
// of them; 1 where there is none. Every divisor of it will do too. A unit of 16
// keeps segments aligned for the widest stores.
func (p *Plan) MaxScale(unit int) uint32 {
	var all uint64
	p.eachSize(func(n uint64) bool { all = gcd(all, n); return true })
	best := uint64(1)
	if all%minSegment != 0 {
		return 1
	}
	n := all / minSegment
	for d := uint64(1); d <= n/d; d++ {
		if n%d != 0 {
			continue
		}
		for _, k := range [2]uint64{d, n / d} {
			if k <= math.MaxUint32 && all/k >= uint64(max(unit, minSegment)) {
				best = max(best, k)
			}
		}
	}
	return uint32(best)
}

// minSegment: zeroing counts in 32-bit words in vLLM 0.33.0.
const minSegment = 4

// Scaled returns the plan with every size in bytes divided by k: the same
// groups, layers, regions and kernel blocks in a k-th of the memory. A
// simulator that counts each byte k times (cuda.AllocOptions.CostScale) moves,
// zeroes and transfers it at the cost of the true one, so that a pool of a
// hundred gigabytes can be run where it would not fit. What is lost is
// content: k true bytes share one that is checked. Tokens are not divided.
//
// The division is exact. A k that leaves a remainder somewhere is an error that
// wraps [ErrOptions]; see [Plan.MaxScale].
func (p *Plan) Scaled(k uint32) (*Plan, error) {
	if k == 0 || uint64(k)*uint64(p.Scale) > math.MaxUint32 {
		return nil, optionFault("model %q: scale %d on top of %d", p.Model.Name, k, p.Scale)
	}
	var bad uint64
	if k > 1 && !p.eachSize(func(n uint64) bool { bad = n; return n%(uint64(k)*minSegment) == 0 }) {
		return nil, optionFault("model %q: scale %d: %d bytes don't divide into multiples of %d", p.Model.Name, k, bad, minSegment)
	}
	s, div := *p, uint64(k)
	s.Scale *= k
	s.BlockBytes /= div
	s.Groups = make([]Group, len(p.Groups))
	for g := range p.Groups {
		s.Groups[g] = p.Groups[g]
		s.Groups[g].Pages = make([]Page, len(p.Groups[g].Pages))
		for i, pg := range p.Groups[g].Pages {
			pg.Bytes, pg.Used, pg.before = pg.Bytes/div, pg.Used/div, pg.before/div
			pg.Regions = slices.Clone(pg.Regions)
			for r := range pg.Regions {
				pg.Regions[r].Off /= div
				pg.Regions[r].Len /= div
			}
			s.Groups[g].Pages[i] = pg
		}
	}
	return &s, nil
}

// eachSize calls f with every size that a segment can have, until it is false.
func (p *Plan) eachSize(f func(uint64) bool) bool {
	for gi := range p.Groups {
		g := &p.Groups[gi]
		for i := range g.Pages {
			pg := &g.Pages[i]
			parts := uint64(g.Ratio)
			if p.Options.Order.splitsPages() {
				parts *= uint64(pg.Heads)
			}
			if !f(pg.Bytes / parts) {
				return false
			}
			for _, r := range pg.Regions {
				if !f(r.Len) {
					return false
				}
			}
		}
	}
	return true
}
