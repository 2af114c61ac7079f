package layout

// pack groups layers whose pages differ in size for block-outermost orders,
// where the pages of a block need not line up. Layers of one class make a
// bucket, which is cut where that leaves no holes: a bucket that has as many
// pages of each size (of the same layers, say, an index and a main cache) is
// cut by layers, so that all groups have about as many. Buckets of states are
// cut further, so that they do not widen the block.
func (p *Plan) pack(pages []Page) error {
	type cut struct {
		pages   []Page
		sizes   [][]Page
		repeats int  // the most pages of one size
		even    bool // as many of each size
		state   bool
	}
	var cuts []cut
	least := 0 // repeats of the largest bucket that can't be cut below
	for _, b := range bucket(pages, p.class) {
		c := cut{pages: b, sizes: bucket(b, size), even: true}
		for _, s := range c.sizes {
			c.even = c.even && len(s) == len(c.sizes[0])
			c.repeats = max(c.repeats, len(s))
		}
		if c.even && len(c.sizes) > 1 {
			least = max(least, c.repeats)
		}
		cuts = append(cuts, c)
	}
	width := 0
	if least > 0 {
		var repeats []int
		for _, c := range cuts {
			if c.even {
				repeats = append(repeats, c.repeats)
			}
		}
		width = leastPadding(repeats, least)
	}
	groups := func(c *cut) int {
		if c.even && width > 0 {
			return (c.repeats + width - 1) / width
		}
		return 1
	}
	var anchor uint64 // what a block takes at least
	for i := range cuts {
		c := &cuts[i]
		kind := p.Model.Layers[c.pages[0].Layer].Kind
		c.state = kind == Recurrent || width == 0 && kind.Windowed() && kind != ChunkedLocal
		n := groups(c)
		if c.state {
			n = len(c.pages)
		}
		var bytes uint64
		for _, s := range c.sizes {
			bytes += mul(cdiv(uint64(len(s)), uint64(n)), s[0].Bytes)
		}
		anchor = max(anchor, bytes)
	}
	for i := range cuts {
		c := &cuts[i]
		n := groups(c)
		if c.state {
			n = max(n, int(cdiv(uint64(len(c.pages)), max(anchor/c.pages[0].Bytes, 1))))
		}
		if n == 1 {
			p.addGroup(c.pages)
			continue
		}
		if !c.even {
			return optionFault("model %q: under %v %d layers of %v with pages of different sizes can't be cut into %d groups",
				p.Model.Name, p.Options.Order, len(c.pages), p.Model.Layers[c.pages[0].Layer].Kind, n)
		}
		for first := range n {
			var g []Page
			for r := first; r < c.repeats; r += n {
				for _, s := range c.sizes {
					g = append(g, s[r])
				}
			}
			p.addGroup(g)
		}
	}
	return nil
}

// leastPadding returns the width of groups, at least least, that leaves the
// fewest places empty when so many are cut into groups; of several the largest.
func leastPadding(repeats []int, least int) int {
	most := 0
	for _, n := range repeats {
		most = max(most, n)
	}
	best, empty := least, -1
	for d := least; d <= most; d++ {
		pad := 0
		for _, n := range repeats {
			pad += (d - n%d) % d
		}
		if empty < 0 || pad <= empty {
			best, empty = d, pad
		}
	}
	return best
}
