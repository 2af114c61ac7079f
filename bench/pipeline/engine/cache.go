package engine

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// cache is where blocks lie, and what a forward moves for one request.
type cache struct {
	arena  *layout.Arena
	table  layout.Table // all bytes of a block, in pages
	groups []group
	pages  int    // of a block: one for each layer of the widest group, or a single one
	held   uint64 // bytes of a page in the simulator's memory
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

// heldPlan returns the layout that the content is held in. A block is looked at
// page by page in models with states, and as a whole in others.
func heldPlan(c *Config) (*layout.Plan, error) {
	p, states := c.Plan, false
	for i := range p.Groups {
		states = states || p.Groups[i].Kind == layout.Recurrent
	}
	if states && !p.Options.Order.BlockOutermost() {
		p = p.Coarse(layout.WholePages)
	} else {
		p = p.Coarse(layout.WholeBlocks)
	}
	scale := uint32(1)
	if !c.Full {
		for unit := reduced; unit < 2*reduced; unit += 16 {
			scale = max(scale, p.MaxScale(unit))
		}
	}
	return p.Scaled(scale)
}

func newCache(c *Config, a *layout.Arena) (*cache, error) {
	m := &cache{arena: a, table: a.Tables().Transfer}
	m.pages, m.held = len(m.table.Segments), m.table.Segments[0].Page
	for _, s := range m.table.Segments {
		if s.Page != m.held || s.Page%8 != 0 {
			return nil, fmt.Errorf("layout of %s: pages of %d and %d bytes: want one size that is a multiple of 8: %w",
				c.Plan.Model.Name, m.held, s.Page, ErrConfig)
		}
	}
	for i := range c.Plan.Groups {
		g := &c.Plan.Groups[i]
		out := group{state: g.Kind == layout.Recurrent, window: g.Window, tokens: g.BlockTokens, pages: len(a.Plan.Groups[i].Pages)}
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
func (m *cache) size() uint64 { return m.arena.Plan.Size(m.arena.Blocks) }

// scale returns how many true bytes each of them stands for.
func (m *cache) scale() uint32 { return m.arena.Plan.Scale }

// address returns where a page of a block lies.
func (m *cache) address(page int, b kv.Block) uint64 { return m.table.Segments[page].Address(b) }

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
