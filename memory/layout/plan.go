package layout

import (
	"fmt"
	"math"
	"slices"
)

// Plan is the layout of a model's cache on one rank, in sizes: blocks, pages
// and groups, before there is memory. It is not to be changed, and safe for use
// by several goroutines. The rules are those of vLLM 0.33.0.
//
// All groups draw their blocks from one pool, and layer i of every group lies
// on the same bytes: a block that held a state comes back as keys and values.
type Plan struct {
	Model   *Model
	Options Options // with defaults filled in

	Groups []Group // in order of their first layer
	// BlockTokens is the model's block size, 0 without attention. Layers whose
	// pages would be smaller than others take a multiple of it, and some models
	// have layers with a block size of their own: see [Group].
	BlockTokens int
	// BlockBytes is what one block takes in memory: the widest group's pages.
	// Under block-outermost orders it may be rounded up (Options.RowTokens).
	BlockBytes uint64

	// NeedsZeroing reports whether new blocks of attention groups have to be
	// zeroed, and Why says why (or why not) in one line. A model without
	// attention needs it in name only: there is nothing to zero.
	NeedsZeroing bool
	Why          string

	// Scale is what sizes were divided by, 1 but for [Plan.Scaled].
	Scale uint32
}

// String says in one line how the cache is laid out.
func (p *Plan) String() string {
	s := fmt.Sprintf("%s, TP %d, %v: ", p.Model.Name, p.Options.TP, p.Options.Order)
	if o := &p.Options; o.PP > 1 {
		s = fmt.Sprintf("%s, TP %d, stage %d of %d, %v: ", p.Model.Name, o.TP, o.Stage, o.PP, o.Order)
	}
	if p.BlockTokens > 0 {
		s += fmt.Sprintf("blocks of %d tokens and ", p.BlockTokens)
	} else {
		s += "blocks of "
	}
	s += fmt.Sprintf("%d bytes", p.BlockBytes)
	if p.Scale > 1 {
		s += fmt.Sprintf(" (1/%d of the true size)", p.Scale)
	}
	if p.Model.DType == DefaultDType {
		s += fmt.Sprintf(" (the model names no dtype: %v)", p.Model.dtype())
	}
	for i := range p.Groups {
		sep := ", "
		if i == 0 {
			sep = "; groups: "
		}
		s += fmt.Sprintf("%s%d %v", sep, len(p.Groups[i].Pages), p.Groups[i].Kind)
	}
	return s
}

// Group is a set of layers that share a block table: a request holds one list
// of blocks in each group. On a pipeline stage a group may have no pages; a
// request holds blocks in it nevertheless, as on the other stages.
type Group struct {
	Kind   Kind // of the layers, those of an index beside them apart
	Window int  // tokens, of a window or chunk
	// BlockTokens is how many tokens a block spans. In a recurrent group with
	// StateNone it is the longest sequence, 0 where that is not known.
	BlockTokens  int
	KernelTokens int // what the attention kernel pages by; 0 for a recurrent group
	Ratio        int // kernel blocks in a block, 1 for a recurrent group
	Pages        []Page
}

// Bytes returns the sum of the group's pages.
func (g *Group) Bytes() uint64 {
	var n uint64
	for i := range g.Pages {
		n += g.Pages[i].Bytes
	}
	return n
}

// Page is what one block holds for one layer.
type Page struct {
	Layer int    // index in Model.Layers
	Bytes uint64 // with padding
	Used  uint64 // without
	// Heads of keys and values on this rank, of which FirstHead is the first in
	// the model's count (ranks may share heads). A state has none.
	Heads, FirstHead int
	DType            DType // of an attention cache; packed forms by name
	// Regions are the parts of a state that can be moved and cut by
	// themselves, in order and without gaps: under ConvSD the convolution state
	// "conv" as one, under ConvDS its parts by their names, and "temporal".
	// An attention page has none.
	Regions []Region
	// ConvRows and ConvChannels are the shape of the convolution state on this
	// rank, Temporal that of the temporal state.
	ConvRows, ConvChannels int
	Temporal               []int
	ConvDType, StateDType  DType

	before   uint64 // bytes of the group's pages before it
	tokens   int    // in a block
	vector   uint64 // bytes of a stored vector of all heads
	perState uint64 // tokens that it covers
}

// Region is a run of bytes in a page.
type Region struct {
	Name string `json:"name"`
	Off  uint64 `json:"off"`
	Len  uint64 `json:"len"`
}

// Padding returns the bytes of the page that its layer never writes.
func (p *Page) Padding() uint64 { return p.Bytes - p.Used }

// NewPlan lays out the cache of a model on one rank. Errors wrap [ErrModel] or
// [ErrOptions].
func NewPlan(m *Model, o Options) (*Plan, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := o.complete(m); err != nil {
		return nil, err
	}
	pages := make([]Page, len(m.Layers))
	for i := range m.Layers {
		if err := shard(m, &o, i, &pages[i]); err != nil {
			return nil, err
		}
	}
	p := &Plan{Model: m, Options: o, Scale: 1}
	if err := p.sizeBlocks(pages); err != nil {
		return nil, err
	}
	if err := p.group(pages); err != nil {
		return nil, err
	}
	for i := range p.Groups {
		if err := p.split(&p.Groups[i]); err != nil {
			return nil, err
		}
	}
	if err := p.checkOrder(); err != nil {
		return nil, err
	}
	p.decideZeroing()
	p.keep()
	if p.sizeBlock(); p.BlockBytes == 0 {
		return nil, optionFault("model %q: stage %d has no layer with a cache", m.Name, o.Stage)
	}
	return p, nil
}

// sizeBlocks picks the tokens of a block and sets the pages' sizes by it.
func (p *Plan) sizeBlocks(pages []Page) error {
	m, o := p.Model, &p.Options
	var state, perTok uint64
	latent, attention := false, false
	for i := range pages {
		l := &m.Layers[i]
		attention = attention || l.Kind.Attention()
		switch {
		case l.Draft:
		case l.Kind == Recurrent:
			state = max(state, pages[i].Used)
		case l.BlockTokens == 0:
			perTok = max(perTok, cdiv(pages[i].vector, pages[i].perState))
		}
		latent = latent || l.Kind == LatentAttention
	}
	block := uint64(max(o.BlockTokens, o.Kernel.smallest()))
	if state > 0 && perTok > 0 {
		if latent {
			block = max(block, minLatentBlock)
		}
		if o.StateMode == StateAlign && o.ExportTokens > 0 {
			block = lcm(block, uint64(o.ExportTokens))
		}
		block *= cdiv(state, mul(block, perTok))
		block = cdiv(block, uint64(o.Kernel.smallest())) * uint64(o.Kernel.smallest())
	}
	if state > 0 && perTok == 0 && o.StateMode == StateAlign && o.BlockTokens == 0 {
		return optionFault("model %q has no attention layer to take the block size of: block tokens have to be given", m.Name)
	}
	if block > MaxTokens {
		return optionFault("model %q: blocks of %d tokens, want at most %d", m.Name, block, MaxTokens)
	}
	if attention {
		p.BlockTokens = int(block)
	}
	for i := range pages {
		pg, l := &pages[i], &m.Layers[i]
		switch {
		case l.Kind != Recurrent:
			if pg.tokens = int(block); l.BlockTokens > 0 {
				pg.tokens = l.BlockTokens
			} else if l.Kind == SlidingWindow {
				pg.tokens = o.Kernel.within(pg.tokens)
			}
			if uint64(pg.tokens)%pg.perState != 0 {
				return optionFault("model %q: layer %d: blocks of %d tokens, but a vector covers %d", m.Name, i, pg.tokens, pg.perState)
			}
			pg.Used = mul(uint64(pg.tokens)/pg.perState, pg.vector)
			pg.Bytes = roundUp(pg.Used, uint64(max(l.PageAlign, 1)))
		case o.StateMode == StateAlign:
			pg.tokens = int(block)
			pg.Bytes = max(pg.Used, mul(block, perTok))
		default:
			pg.tokens = o.MaxTokens
			pg.Bytes = max(pg.Used, mul(block, perTok))
		}
		if pg.Bytes < pg.Used || pg.Bytes > maxPage {
			return m.fault(i, "a page of %d bytes, want at most %d", max(pg.Used, pg.Bytes), uint64(maxPage))
		}
	}
	return nil
}

// minLatentBlock is the least block, in tokens, of a model that has both latent
// attention and states.
const minLatentBlock = 128

// split cuts the group's blocks into those of the attention kernel.
func (p *Plan) split(g *Group) error {
	g.Ratio = 1
	if !g.Kind.Attention() {
		return nil
	}
	o := &p.Options
	if p.Model.Layers[g.Pages[0].Layer].BlockTokens > 0 {
		g.KernelTokens = g.BlockTokens
		return nil
	}
	if g.KernelTokens = o.Kernel.split(g.BlockTokens); g.KernelTokens == 0 {
		return optionFault("model %q: blocks of %d tokens, but the backend takes %v", p.Model.Name, g.BlockTokens, o.Kernel)
	}
	g.Ratio = g.BlockTokens / g.KernelTokens
	if g.Ratio == 1 {
		return nil
	}
	if o.Order.BlockOutermost() {
		return optionFault("model %q: under %v blocks of %d tokens can't be cut into those of %d that the backend takes",
			p.Model.Name, o.Order, g.BlockTokens, g.KernelTokens)
	}
	for i := range g.Pages {
		if g.Pages[i].Padding() > 0 {
			return optionFault("model %q: layer %d: a page with padding can't be cut into %d kernel blocks",
				p.Model.Name, g.Pages[i].Layer, g.Ratio)
		}
	}
	return nil
}

// checkOrder makes sure that tables have a size that can be used and that under
// orders which take pages apart a block means the same bytes to every layer.
func (p *Plan) checkOrder() error {
	segments := 0
	for gi := range p.Groups {
		g := &p.Groups[gi]
		for i := range g.Pages {
			n := g.Ratio + len(g.Pages[i].Regions)
			if p.Options.Order == LHBNC {
				n *= max(g.Pages[i].Heads, 1)
			}
			if segments += n; segments > MaxSegments {
				return optionFault("model %q: more than %d segments", p.Model.Name, MaxSegments)
			}
		}
	}
	if !p.Options.Order.splitsPages() {
		return nil
	}
	first := &p.Groups[0].Pages[0]
	for gi := range p.Groups {
		g := &p.Groups[gi]
		for i := range g.Pages {
			pg := &g.Pages[i]
			if pg.Heads == 0 {
				return optionFault("model %q: %v takes pages apart by heads, but layer %d is %v and has none",
					p.Model.Name, p.Options.Order, pg.Layer, g.Kind)
			}
			if pg.Heads != first.Heads || pg.tokens != first.tokens || pg.Bytes != first.Bytes || pg.Padding() > 0 {
				return optionFault("model %q: %v takes pages apart by heads, but layer %d differs from layer %d in heads, tokens or page",
					p.Model.Name, p.Options.Order, pg.Layer, first.Layer)
			}
		}
	}
	return nil
}

func (p *Plan) decideZeroing() {
	recurrent, attention := 0, 0
	var seen []DType
	for gi := range p.Groups {
		g := &p.Groups[gi]
		for i := range g.Pages {
			if p.Model.Layers[g.Pages[i].Layer].Kind == Recurrent {
				recurrent++
				continue
			}
			attention++
			if d := g.Pages[i].DType; !slices.Contains(seen, d) {
				seen = append(seen, d)
			}
		}
	}
	switch {
	case recurrent > 0:
		p.NeedsZeroing = true
		p.Why = fmt.Sprintf("%d recurrent layers share blocks with %d attention layers: the bits of a state may read as NaN or Inf",
			recurrent, attention)
		if attention == 0 {
			p.Why = fmt.Sprintf("%d recurrent layers; without attention there is nothing to zero", recurrent)
		}
	case len(seen) > 1:
		p.NeedsZeroing = true
		p.Why = fmt.Sprintf("attention caches of %v share blocks: the bits of one may read as NaN or Inf in another", seen)
	default:
		p.Why = fmt.Sprintf("%d attention layers, all of %v: stale bits are finite numbers, and masked", attention, seen[0])
	}
}

// mul multiplies and sticks to the largest value on overflow.
func mul(factors ...uint64) uint64 {
	n := uint64(1)
	for _, f := range factors {
		if f != 0 && n > math.MaxUint64/f {
			return math.MaxUint64
		}
		n *= f
	}
	return n
}

func cdiv(a, b uint64) uint64 {
	if a == 0 {
		return 0
	}
	return (a-1)/b + 1
}

// roundUp returns the first multiple of b from a on, or what is left of it on
// overflow.
func roundUp(a, b uint64) uint64 { return cdiv(a, b) * b }

func lcm(a, b uint64) uint64 { return a / gcd(a, b) * b }

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
