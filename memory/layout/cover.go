package layout

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/kvgate/kvgate/memory/kv"
)

// TokenRange is the tokens From to To-1 of a request, counted from 0.
type TokenRange struct{ From, To int }

func (r TokenRange) String() string { return fmt.Sprintf("[%d,%d)", r.From, r.To) }

// ErrTokens is wrapped by errors about ranges of tokens.
var ErrTokens = errors.New("bad token range")

// Cover is what a range of tokens touches in the blocks of one group. Blocks
// are told by their index in the request's list of the group. The zero Cover is
// ready for use, and keeps its memory from call to call.
type Cover struct {
	// First to End-1 are the blocks that are touched, and WholeFirst to
	// WholeEnd-1 those of them that are touched wholly: all bytes that the group
	// keeps in a block ([GroupTable].Fill), so that nothing of them remains to
	// be zeroed.
	First, End           int
	WholeFirst, WholeEnd int
	// Parts are the other blocks: none, one or two.
	Parts []BlockPart

	bytes []kv.Range
}

// BlockPart is a block that a range of tokens touches in part.
type BlockPart struct {
	Index  int        // in the request's list
	Tokens TokenRange // of the block, counted from its first
	// KernelFirst to KernelEnd-1 are the kernel blocks that are touched, of the
	// block's [Group].Ratio.
	KernelFirst, KernelEnd int
	// Bytes are what is touched and Rest the other bytes of the group's fill: what
	// remains to be zeroed when Bytes are loaded. Both count in the bytes of the
	// transfer table ([Tables]), are in order and apart from each other.
	Bytes, Rest []kv.Range
}

// Cover sets c to what the tokens touch in the blocks of a group.
//
// A token has its place in every page of a block; where a stored vector covers
// several tokens, each of them touches it wholly. Windows play no part: which
// blocks a request still needs says [Plan.Live]. A recurrent group keeps the
// state behind the last token: one row is touched, wholly, the first of the list
// with [StateNone], and with [StateAlign] the one at the place of that token.
// Rows for speculative tokens are never touched. An empty range touches nothing.
//
// In a scaled plan a token has less than its bytes, and borders between tokens
// are rounded down: ranges that follow each other still meet without a gap.
//
// The error wraps [ErrTokens], and c is then empty: the group or the range is
// none, or a block is touched in part and its form is one in which tokens have no
// places that are known ([NVFP4]). A call allocates nothing once
// c has grown, and costs nothing for blocks that are touched wholly.
func (p *Plan) Cover(c *Cover, group int, tokens TokenRange) error {
	*c = Cover{Parts: c.Parts[:0], bytes: c.bytes[:0]}
	if err := p.checkTokens(group, tokens); err != nil || tokens.From == tokens.To {
		return err
	}
	g := &p.Groups[group]
	if g.Kind == Recurrent {
		if p.Options.StateMode == StateAlign {
			c.First = (tokens.To - 1) / g.BlockTokens
		}
		c.End = c.First + 1
		c.WholeFirst, c.WholeEnd = c.First, c.End
		return nil
	}
	n := g.BlockTokens
	c.First, c.End = tokens.From/n, (tokens.To-1)/n+1
	c.WholeFirst, c.WholeEnd = c.First, c.End
	head, tail := tokens.From%n, tokens.To%n
	if head > 0 || tail > 0 {
		for i := range g.Pages {
			if d := g.Pages[i].DType; d == NVFP4 {
				*c = Cover{Parts: c.Parts, bytes: c.bytes}
				return fmt.Errorf("layout: model %q: tokens %v: blocks of %d tokens in %v are moved wholly: %w", p.Model.Name, tokens, n, d, ErrTokens)
			}
		}
	}
	switch {
	case c.End-c.First == 1 && (head > 0 || tail > 0):
		if tail == 0 {
			tail = n
		}
		p.part(c, g, c.First, TokenRange{head, tail})
		c.WholeEnd = c.WholeFirst
		return nil
	case head > 0:
		p.part(c, g, c.First, TokenRange{head, n})
		c.WholeFirst++
	}
	if tail > 0 {
		p.part(c, g, c.End-1, TokenRange{0, tail})
		c.WholeEnd--
	}
	return nil
}

func (p *Plan) checkTokens(group int, r TokenRange) error {
	switch {
	case group < 0 || group >= len(p.Groups):
		return fmt.Errorf("layout: model %q: group %d of %d: %w", p.Model.Name, group, len(p.Groups), ErrTokens)
	case r.From < 0 || r.To < r.From || r.To > MaxTokens:
		return fmt.Errorf("layout: model %q: tokens %v, want 0 to %d: %w", p.Model.Name, r, MaxTokens, ErrTokens)
	}
	return nil
}

// part adds a block that is touched in part.
func (p *Plan) part(c *Cover, g *Group, index int, tokens TokenRange) {
	first := len(c.bytes)
	c.bytes = p.appendTokens(c.bytes, g, tokens, true)
	mid := len(c.bytes)
	c.bytes = p.appendTokens(c.bytes, g, TokenRange{0, tokens.From}, false)
	c.bytes = p.appendTokens(c.bytes, g, TokenRange{tokens.To, g.BlockTokens}, false)
	end := mid + len(mergeRanges(c.bytes[mid:]))
	c.bytes = c.bytes[:end]
	c.Parts = append(c.Parts, BlockPart{Index: index, Tokens: tokens,
		KernelFirst: tokens.From / g.KernelTokens, KernelEnd: (tokens.To-1)/g.KernelTokens + 1,
		Bytes: c.bytes[first:mid:mid], Rest: c.bytes[mid:end:end]})
}

// appendTokens appends the bytes of a block's tokens, in order. Vectors that
// cover other tokens, too, are among them or not.
func (p *Plan) appendTokens(dst []kv.Range, g *Group, tokens TokenRange, shared bool) []kv.Range {
	if tokens.From == tokens.To {
		return dst
	}
	first := len(dst)
	for i := range g.Pages {
		pg := &g.Pages[i]
		vectors, each := tokens, int(pg.perState)
		if vectors.From = (tokens.From + each - 1) / each; shared {
			vectors.From = tokens.From / each
		}
		if vectors.To = tokens.To / each; shared {
			vectors.To = (tokens.To + each - 1) / each
		}
		if vectors.From < vectors.To {
			dst = p.appendVectors(dst, first, g, pg, vectors)
		}
	}
	if p.Options.Order == BHLNC { // heads before layers
		dst = dst[:first+len(mergeRanges(dst[first:]))]
	}
	return dst
}

// appendVectors appends the bytes of a page's vectors, merging with what lies
// behind dst[first:]. A vector is a token's, or that of several.
//
// A page is cut into lanes, in which the vectors lie one after the other: the
// whole page token-major, one for each head of a kernel block head-major, and one
// for each head where the order takes heads apart. Some packed forms have two for
// each kernel block: elements, then scales.
func (p *Plan) appendVectors(dst []kv.Range, first int, g *Group, pg *Page, vectors TokenRange) []kv.Range {
	block, n := g.BlockTokens/int(pg.perState), g.KernelTokens/int(pg.perState)
	add := func(off, n uint64) {
		if k := len(dst); k > first && dst[k-1].End() == off {
			dst[k-1].Len += n
		} else if n > 0 {
			dst = append(dst, kv.Range{Off: off, Len: n})
		}
	}
	if p.Options.Order.splitsPages() && pg.Heads > 1 {
		heads := uint64(pg.Heads)
		lane, apart, before := pg.Bytes/heads, pg.Bytes/heads, pg.before
		if p.Options.Order == BHLNC {
			apart, before = p.BlockBytes/heads, pg.before/heads
		}
		from, to := share(lane, vectors.From, block), share(lane, vectors.To, block)
		for h := range heads {
			add(before+h*apart+from, to-from)
		}
		return dst
	}
	lanes := pg.lanes(p.Options.Order)
	if lanes == 1 {
		from := share(pg.Used, vectors.From, block)
		add(pg.before+from, share(pg.Used, vectors.To, block)-from)
		return dst
	}
	kernel := pg.Used / uint64(g.Ratio)
	for k := vectors.From / n; k*n < vectors.To; k++ {
		from, to := max(vectors.From-k*n, 0), min(vectors.To-k*n, n)
		start := pg.before + uint64(k)*kernel
		if from == 0 && to == n {
			add(start, kernel)
			continue
		}
		for l := range lanes {
			off := pg.lane(kernel, l, lanes)
			lane := pg.lane(kernel, l+1, lanes) - off
			begin := share(lane, from, n)
			add(start+off+begin, share(lane, to, n)-begin)
		}
	}
	return dst
}

// lanes returns how many lanes a kernel block of the page has under orders that
// keep pages together.
func (pg *Page) lanes(o Order) int {
	switch {
	case pg.DType == FP8Index, pg.DType == FP8MLAV4:
		return 2 // vLLM 0.33.0, csrc and models/deepseek_v4: all elements of a kernel block, then their scales
	case o == LBHNC || o == BLHNC:
		return pg.Heads
	}
	return 1
}

// lane returns where lane i of n starts in a kernel block of so many bytes.
func (pg *Page) lane(kernel uint64, i, n int) uint64 {
	switch {
	case i != 1:
	case pg.DType == FP8Index:
		return share(kernel, indexPerScale, indexPerScale+indexScale)
	case pg.DType == FP8MLAV4:
		return share(kernel, v4Row, v4Row+v4Scales)
	}
	return share(kernel, i, n)
}

// share returns n*part/of, rounded down. part is at most of.
func share(n uint64, part, of int) uint64 {
	hi, lo := bits.Mul64(n, uint64(part))
	if hi == 0 {
		return lo / uint64(of)
	}
	if part == of {
		return n
	}
	q, _ := bits.Div64(hi, lo, uint64(of))
	return q
}

// Live returns the tokens that the group's layers may still read when so many
// tokens are settled: computed, and known to stay. Blocks that lie before it
// wholly can be given back. A request that is loaded needs these and no others:
// all of full attention, the last of a window or of the chunk that the next token
// is in, of a recurrent group the last token's state.
func (p *Plan) Live(group, settled int) TokenRange {
	g, from := &p.Groups[group], 0
	switch {
	case g.Kind == Recurrent:
		from = settled - 1
	case g.Kind == ChunkedLocal:
		from = settled - settled%g.Window // the next token's chunk
	case g.Window > 0:
		from = settled + 1 - g.Window
	}
	return TokenRange{min(max(from, 0), settled), settled}
}
