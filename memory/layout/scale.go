package layout

import (
	"math"
	"slices"
)

// MaxScale returns the largest k that [Plan.Scaled] takes such that each page,
// kernel block and head is left with a multiple of unit bytes, and each region
// of a state, and what a padded page holds, with unit bytes at least; 1 where there is no other. The unit is
// rounded up to a multiple of 4; with 16 pages stay aligned for the widest stores.
func (p *Plan) MaxScale(unit int) uint32 {
	least := cdiv(uint64(max(unit, minSegment)), minSegment) * minSegment
	var all uint64
	p.eachSize(func(n uint64) bool { all = gcd(all, n); return true })
	if all%least != 0 {
		return 1
	}
	best, n := uint64(1), all/least
	for d := uint64(1); d <= n/d; d++ {
		if n%d != 0 {
			continue
		}
		for _, k := range [2]uint64{d, n / d} {
			if k > best && k <= math.MaxUint32/uint64(p.Scale) && p.regionsKeep(least, k) {
				best = k
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
// Pages divide exactly, so what zeroing and whole blocks cost does not change.
// Borders of regions inside a state are moved to multiples of 4: a region may
// count as up to 4k bytes more or less than it has, and so may what a padded page
// holds.
//
// A k that leaves a remainder in a page, or a region or page with nothing, is an error
// that wraps [ErrOptions]; see [Plan.MaxScale].
func (p *Plan) Scaled(k uint32) (*Plan, error) {
	if k == 0 || uint64(k)*uint64(p.Scale) > math.MaxUint32 {
		return nil, optionFault("model %q: scale %d on top of %d", p.Model.Name, k, p.Scale)
	}
	if k == 1 {
		return p, nil
	}
	var bad uint64
	if !p.eachSize(func(n uint64) bool { bad = n; return n%(uint64(k)*minSegment) == 0 }) {
		return nil, optionFault("model %q: scale %d: %d bytes don't divide into multiples of %d", p.Model.Name, k, bad, minSegment)
	}
	s, div := *p, uint64(k)
	if !p.regionsKeep(minSegment, div) {
		return nil, optionFault("model %q: scale %d leaves nothing of a region or page", p.Model.Name, k)
	}
	s.Scale *= k
	s.BlockBytes /= div
	s.Groups = slices.Clone(p.Groups)
	for g := range s.Groups {
		s.Groups[g].Pages = slices.Clone(p.Groups[g].Pages)
		for i := range s.Groups[g].Pages {
			s.Groups[g].Pages[i].scale(div)
		}
	}
	return &s, nil
}

func (p *Page) scale(k uint64) {
	p.Bytes /= k
	p.before /= k
	p.Used = border(p.Used, k)
	p.Regions = slices.Clone(p.Regions)
	for r := range p.Regions {
		end := border(p.Regions[r].Off+p.Regions[r].Len, k)
		p.Regions[r].Off = border(p.Regions[r].Off, k)
		p.Regions[r].Len = end - p.Regions[r].Off
	}
}

// border divides an offset by k and rounds to the nearest multiple of
// minSegment, which for a page is exact.
func border(at, k uint64) uint64 {
	k *= minSegment
	n := at / k
	if at%k >= k-k/2 {
		n++
	}
	return n * minSegment
}

// regionsKeep reports whether each region, and each page without its padding,
// keeps so many bytes at scale k.
func (p *Plan) regionsKeep(least, k uint64) bool {
	for g := range p.Groups {
		for i := range p.Groups[g].Pages {
			pg := &p.Groups[g].Pages[i]
			if border(pg.Used, k) < least {
				return false
			}
			for _, r := range pg.Regions {
				if border(r.Off+r.Len, k)-border(r.Off, k) < least {
					return false
				}
			}
		}
	}
	return true
}

// eachSize calls f with every size that a piece of a page can have, until it is
// false.
func (p *Plan) eachSize(f func(uint64) bool) bool {
	if !f(p.BlockBytes) {
		return false
	}
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
		}
	}
	return true
}
