package layout

import (
	"fmt"
	"slices"
)

// group puts the layers into groups. All of one type make one group, whatever
// their pages are. Otherwise pages of several sizes are packed under
// block-outermost orders, and made equal under others; equal ones are grouped
// by specification, cut so that groups are about as wide as the narrowest.
// These are the rules of vLLM 0.33.0 (v1/core/kv_cache_planning.py).
func (p *Plan) group(pages []Page) error {
	switch {
	case len(bucket(pages, p.class)) == 1:
		p.addGroup(pages)
		return nil
	case p.Options.Order.BlockOutermost() && len(bucket(pages, size)) > 1:
		return p.pack(pages)
	}
	if err := p.equalize(pages); err != nil {
		return err
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
	return nil
}

// addGroup adds a group. Pages of one specification follow each other.
func (p *Plan) addGroup(pages []Page) {
	pages = flatten(bucket(pages, p.specification))
	g := Group{BlockTokens: pages[0].tokens, Pages: pages}
	main := &p.Model.Layers[pages[0].Layer]
	for i := range pages {
		l := &p.Model.Layers[pages[i].Layer]
		if l.Kind != SparseIndex && l.Kind != IndexCompressorState {
			main = l
			break
		}
	}
	g.Kind, g.Window = main.Kind, main.Window
	g.place()
	p.Groups = append(p.Groups, g)
}

// place sets where the pages lie in the group's part of a block.
func (g *Group) place() {
	var before uint64
	for i := range g.Pages {
		g.Pages[i].before = before
		before += g.Pages[i].Bytes
	}
}

// sizeBlock sets what a block takes.
func (p *Plan) sizeBlock() {
	p.BlockBytes = 0
	rows := uint64(1)
	for gi := range p.Groups {
		g := &p.Groups[gi]
		p.BlockBytes = max(p.BlockBytes, g.Bytes())
		for i := range g.Pages {
			pg := &g.Pages[i]
			if p.Model.Layers[pg.Layer].Kind != LatentAttention || p.Options.RowTokens == 0 {
				continue
			}
			if n := gcd(uint64(p.Options.RowTokens), uint64(pg.tokens)); n < uint64(pg.tokens) {
				rows = lcm(rows, mul(n, pg.vector))
			}
		}
	}
	if p.Options.Order.BlockOutermost() {
		p.BlockBytes = roundUp(p.BlockBytes, rows)
	}
}

func size(pg *Page) string { return fmt.Sprint(pg.Bytes) }

// class tells layers apart that need blocks for different tokens.
func (p *Plan) class(pg *Page) string {
	l := &p.Model.Layers[pg.Layer]
	switch l.Kind {
	case FullAttention, LatentAttention, SparseIndex:
		return fmt.Sprint("all tokens", pg.tokens)
	case LatentWindow, CompressorState, IndexCompressorState:
		return fmt.Sprint("latent window", l.Window, pg.tokens)
	case Recurrent:
		return fmt.Sprint("state", pg.tokens, pg.Bytes)
	}
	return fmt.Sprint(l.Kind, l.Window, pg.tokens)
}

// equalize gives the pages of all groups one size.
func (p *Plan) equalize(pages []Page) error {
	var widest uint64
	for i := range pages {
		widest = max(widest, pages[i].Bytes)
	}
	for i := range pages {
		pg := &pages[i]
		kind := p.Model.Layers[i].Kind
		switch {
		case pg.Bytes == widest:
		case kind.Attention() && widest%pg.Bytes == 0 && pg.Padding() == 0:
			k := widest / pg.Bytes
			if k > uint64(MaxTokens/pg.tokens) {
				return p.Model.fault(i, "a block would have %d x %d tokens", k, pg.tokens)
			}
			pg.tokens *= int(k)
			pg.Used, pg.Bytes = widest, widest
		case kind == LatentAttention || kind == SparseIndex:
			return optionFault("model %q: layer %d: pages of %d bytes don't divide the widest of %d, so a block has to be one run of bytes (%v or %v)",
				p.Model.Name, i, pg.Bytes, widest, BLNHC, BLHNC)
		default:
			pg.Bytes = widest
		}
	}
	return nil
}

// specification tells layers apart that can't share a block table, or whose
// blocks would not mean the same.
func (p *Plan) specification(pg *Page) string {
	l := &p.Model.Layers[pg.Layer]
	// Latent layers that pick tokens by an index of their own are kept apart from
	// those that take over an earlier layer's choice.
	leads := l.Kind == LatentAttention && slices.ContainsFunc(p.Model.Layers, func(o Layer) bool {
		return o.Kind == SparseIndex && o.Index == l.Index && o.Draft == l.Draft
	})
	return fmt.Sprint(l.Kind, l.Window, pg.tokens, pg.Bytes, pg.Used, pg.Heads, l.KeyDim, l.ValueDim, l.Compression, pg.DType,
		pg.Regions, pg.Temporal, pg.StateDType, leads)
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
	switch inFlight = max(inFlight, 0); {
	case gr.Kind == ChunkedLocal:
		n = min(n, int(cdiv(uint64(gr.Window+inFlight), uint64(gr.BlockTokens))))
	case gr.Kind.Windowed():
		n = min(n, int(cdiv(uint64(gr.Window-1+inFlight), uint64(gr.BlockTokens)))+1)
	}
	return n
}
