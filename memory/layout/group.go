package layout

import "fmt"

// group puts the layers into groups: all in one if they are of one type, else
// by specification, cut so that groups are about as wide as the narrowest.
func (p *Plan) group(pages []Page) {
	if p.oneType() {
		// Pages of one size follow each other.
		p.addGroup(flatten(bucket(pages, func(pg *Page) string { return fmt.Sprint(pg.Bytes) })))
		return
	}
	buckets := bucket(pages, p.specification)
	least, most := len(buckets[0]), 0
	for _, b := range buckets {
		least, most = min(least, len(b)), max(most, len(b))
	}
	width := least
	if 2*most < 3*least {
		width = most
	}
	for _, b := range buckets {
		n := int(cdiv(uint64(len(b)), uint64(width)))
		for first := range n {
			var g []Page
			for i := first; i < len(b); i += n {
				g = append(g, b[i])
			}
			p.addGroup(g)
		}
	}
}

func (p *Plan) addGroup(pages []Page) {
	l := &p.Model.Layers[pages[0].Layer]
	var before uint64
	for i := range pages {
		pages[i].before = before
		before += pages[i].Bytes
	}
	p.Groups = append(p.Groups, Group{Kind: l.Kind, Window: l.Window, BlockTokens: pages[0].tokens, Pages: pages})
}

// specification tells layers apart that can't share a block table, or whose
// blocks would not mean the same.
func (p *Plan) specification(pg *Page) string {
	l := &p.Model.Layers[pg.Layer]
	return fmt.Sprint(l.Kind, l.Window, pg.tokens, pg.Bytes, pg.Used, pg.Heads, l.KeyDim, l.ValueDim, pg.DType,
		pg.Regions, pg.Temporal, pg.StateDType)
}

// bucket sorts pages by key, in order of first appearance.
func bucket(pages []Page, key func(*Page) string) [][]Page {
	var buckets [][]Page
	at := map[string]int{}
	for i := range pages {
		k := key(&pages[i])
		b, ok := at[k]
		if !ok {
			b = len(buckets)
			at[k] = b
			buckets = append(buckets, nil)
		}
		buckets[b] = append(buckets[b], pages[i])
	}
	return buckets
}

func flatten(buckets [][]Page) []Page {
	var all []Page
	for _, b := range buckets {
		all = append(all, b...)
	}
	return all
}

// RequestBlocks returns how many blocks of group g a request of so many tokens
// holds at most, while a step has inFlight tokens of it under way (1 in a
// decode, without speculation).
func (p *Plan) RequestBlocks(g, tokens, inFlight int) int {
	gr := &p.Groups[g]
	spec := p.Options.SpeculativeTokens
	if gr.Kind == Recurrent {
		if p.Options.StateMode == StateAlign {
			return 2 + spec
		}
		return 1 + spec
	}
	if tokens <= 0 {
		return 0
	}
	n := int(cdiv(uint64(tokens), uint64(gr.BlockTokens)))
	if gr.Kind == SlidingWindow {
		n = min(n, int(cdiv(uint64(gr.Window-1+max(inFlight, 0)), uint64(gr.BlockTokens)))+1)
	}
	return n
}
