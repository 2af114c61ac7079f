package engine

import (
	"fmt"
	"math"

	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// cache is where blocks lie, and what a forward moves for one request.
type cache struct {
	blocks int // the null block included
	groups []group
	pages  int    // of a block: one for each layer of the widest group, or a single one
	held   uint64 // bytes of a page in the simulator's memory
	scale  uint32 // true bytes for each of them
	base   uint64
}

// group is a list of blocks that a request holds: of tokens, or a state.
type group struct {
	state    bool
	window   int // tokens; 0: all
	tokens   int // in a block
	pages    int // of the block's
	perToken float64
	bytes    float64 // of a state
}

// reduced is how many bytes a page is held at, at least: its head, its tail and
// what lies between are told apart in words of 8 bytes.
const reduced = 64

func newCache(c *Config, blocks int) (*cache, error) {
	p := c.Plan
	hybrid := false
	for i := range p.Groups {
		hybrid = hybrid || p.Groups[i].Kind == layout.Recurrent
	}
	m := &cache{blocks: blocks, pages: 1}
	page := p.BlockBytes
	if hybrid {
		for i := range p.Groups {
			m.pages = max(m.pages, len(p.Groups[i].Pages))
		}
		page = p.Groups[0].Pages[0].Bytes
		if page*uint64(m.pages) != p.BlockBytes {
			return nil, fmt.Errorf("layout of %s: blocks of %d bytes are not %d pages of %d: %w", p.Model.Name, p.BlockBytes, m.pages, page, ErrConfig)
		}
	}
	m.held = page
	if !c.Full {
		for h := uint64(reduced); h < page; h += 16 {
			if page%h == 0 && page/h <= math.MaxUint32 {
				m.held = h
				break
			}
		}
	}
	if m.held%8 != 0 {
		return nil, fmt.Errorf("layout of %s: pages of %d bytes: want a multiple of 8: %w", p.Model.Name, page, ErrConfig)
	}
	m.scale = uint32(page / m.held)
	for i := range p.Groups {
		g := &p.Groups[i]
		out := group{state: g.Kind == layout.Recurrent, window: g.Window, tokens: g.BlockTokens, pages: 1}
		if hybrid {
			out.pages = len(g.Pages)
		}
		for k := range g.Pages {
			if out.state {
				out.bytes += float64(g.Pages[k].Used)
			} else {
				out.perToken += float64(g.Pages[k].Used) / float64(g.BlockTokens)
			}
		}
		m.groups = append(m.groups, out)
	}
	return m, nil
}

// size returns the bytes of the pool in the simulator's memory.
func (m *cache) size() uint64 { return uint64(m.blocks) * uint64(m.pages) * m.held }

func (m *cache) table() layout.Table {
	t := layout.Table{Blocks: m.blocks}
	for i := range uint64(m.pages) {
		t.Segments = append(t.Segments, layout.Segment{Base: m.base + i*uint64(m.blocks)*m.held, Stride: m.held, Page: m.held})
	}
	return t
}

// offset returns where a page of a block lies in the pool.
func (m *cache) offset(page int, b kv.Block) uint64 {
	return (uint64(page)*uint64(m.blocks) + uint64(b)) * m.held
}

// first returns the first block, in the order of a sequence, that the token at
// pos looks at.
func (g *group) first(pos int) int {
	if g.window == 0 {
		return 0
	}
	return max(0, pos+1-g.window) / g.tokens
}

// count returns how many blocks so many tokens reach into.
func (g *group) count(tokens int) int {
	if g.state {
		return 1
	}
	return (tokens + g.tokens - 1) / g.tokens
}

// filled returns how many tokens of a block are there when the sequence has so
// many.
func (g *group) filled(index, tokens int) int {
	return min(max(tokens-index*g.tokens, 0), g.tokens)
}

// moved returns the bytes that a forward reads and writes for one token at pos.
func (m *cache) moved(pos int) (read, written float64) {
	for i := range m.groups {
		g := &m.groups[i]
		if g.state {
			read += g.bytes
			written += g.bytes
			continue
		}
		n := pos + 1
		if g.window > 0 {
			n = min(n, g.window)
		}
		read += g.perToken * float64(n)
		written += g.perToken
	}
	return read, written
}
