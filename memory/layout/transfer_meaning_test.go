package layout

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/memory/kv"
)

// cell is the smallest thing that moves: what one head has of one token, or a
// unit of a state in a row.
type cell struct {
	layer     int
	kind      Kind
	lane      int // of a packed form
	head, pos int // or part and unit
	row       int
}

type spot struct {
	rank    int
	at, len uint64
}

// meaning fills the peer's ranks with what their cells mean, by the cases' own
// formulas, and looks where our cells come from.
func (c *transferOracle) meaning(t require.TestingT, local *Arena, pairing *Pairing) {
	if c.Request.FullHit {
		return
	}
	if len(c.Request.Groups) > 0 {
		c.meaningOf(t, local, pairing, -1)
		return
	}
	c.makeRequest(local.Plan)
	for g := range local.Plan.Groups {
		c.meaningOf(t, local, pairing, g)
	}
}

// meaningOf looks at one group, or at all together.
func (c *transferOracle) meaningOf(t require.TestingT, local *Arena, pairing *Pairing, only int) {
	theirs := map[spot]cell{}
	for i, peer := range c.peers {
		c.cells(t, local.Plan, peer.engine, peer.rank, func(g int) ([]kv.Block, TokenRange) {
			if only >= 0 && g != only {
				return nil, TokenRange{}
			}
			return c.Request.Groups[g].Remote, TokenRange{0, c.Request.Tokens}
		}, func(id cell, at, n uint64) { theirs[spot{i, at + remoteBase(i), n}] = id })
	}
	all := c.moves(t, local, pairing, only)
	type from struct {
		rank int
		Move
	}
	var sorted []from
	for rank, list := range all {
		for _, m := range list {
			sorted = append(sorted, from{rank, m})
		}
	}
	slices.SortFunc(sorted, func(x, y from) int { return int(x.Local) - int(y.Local) })
	for i := 1; i < len(sorted); i++ {
		require.LessOrEqual(t, sorted[i-1].Local+sorted[i-1].Len, sorted[i].Local, "a byte twice")
	}
	n, moved := 0, uint64(0)
	c.cells(t, local.Plan, &c.Local, c.Local.Rank, func(g int) ([]kv.Block, TokenRange) {
		if only >= 0 && g != only {
			return nil, TokenRange{}
		}
		return c.loaded(local.Plan, g)
	},
		func(id cell, at, length uint64) {
			at += localBase
			i, _ := slices.BinarySearchFunc(sorted, at+1, func(m from, at uint64) int { return int(m.Local) - int(at) })
			if i == 0 || at+length > sorted[i-1].Local+sorted[i-1].Len {
				require.True(t, c.lacking(local.Plan, id), "nothing is brought to %+v", id)
				return
			}
			m := sorted[i-1]
			got, ok := theirs[spot{m.rank, m.Remote + at - m.Local, length}]
			require.True(t, ok, "%+v comes from rank %d, %d", id, m.rank, m.Remote+at-m.Local)
			require.Equal(t, id, got)
			n++
			moved += length
		})
	if n == 0 {
		require.Empty(t, sorted)
	}
	var total uint64
	for _, m := range sorted {
		total += m.Len
	}
	require.Equal(t, moved, total, "what else is moved")
}

// lacking reports whether the peer has given back the block of a token.
func (c *transferOracle) lacking(p *Plan, id cell) bool {
	for g := range p.Groups {
		for i := range p.Groups[g].Pages {
			l := &p.Model.Layers[p.Groups[g].Pages[i].Layer]
			if l.Index == id.layer && l.Kind == id.kind && l.Kind != Recurrent {
				list, i := c.Request.Groups[g].Remote, id.pos/c.Remote.GroupTokens[g]
				return i >= len(list) || list[i] <= 0
			}
		}
	}
	return false
}

// makeRequest makes a request up that both engines have room for in each group
// by itself.
func (c *transferOracle) makeRequest(p *Plan) {
	c.Request.Tokens = 1 << 30
	for _, e := range []*engineOracle{&c.Local, &c.Remote} {
		c.Request.Tokens = min(c.Request.Tokens, (e.NumBlocks-1)*slices.Min(e.GroupTokens)-1)
	}
	for g := range p.Groups {
		var lists [2][]kv.Block
		for side, e := range []*engineOracle{&c.Local, &c.Remote} {
			n := 1
			if p.Groups[g].Kind != Recurrent {
				n = (c.Request.Tokens + e.GroupTokens[g] - 1) / e.GroupTokens[g]
			}
			for b := range n {
				lists[side] = append(lists[side], kv.Block(n-b))
			}
		}
		c.Request.Groups = append(c.Request.Groups, struct {
			Local  []kv.Block `json:"local_table"`
			Hit    int        `json:"local_hit_blocks"`
			Remote []kv.Block `json:"remote_table"`
		}{Local: lists[0], Remote: lists[1]})
	}
}

// cells calls f with every cell of a request on a rank, by the formulas of the
// cases' note and the tensors that they list.
func (c *transferOracle) cells(t require.TestingT, p *Plan, e *engineOracle, rank int, blocks func(g int) ([]kv.Block, TokenRange), f func(id cell, at, n uint64)) {
	for _, x := range e.Tensors {
		list, tokens := blocks(x.Group)
		gr := &p.Groups[x.Group]
		for place, layer := range x.Layers {
			base := x.Offset + uint64(place)*x.LayerStride
			if gr.Kind == Recurrent {
				at := len(list) - 1 - c.Request.Speculative
				if at >= 0 && list[at] > 0 {
					c.stateCells(p, e, rank, layer, base+uint64(list[at])*x.BlockStride, f)
				}
				continue
			}
			for pos := tokens.From; pos < tokens.To; pos++ {
				n := e.GroupTokens[x.Group]
				if i := pos / n; i < len(list) && list[i] > 0 {
					c.tokenCells(t, p, e, rank, x.Cache, layer, pos, base+uint64(list[i])*x.BlockStride, pos%n, x.PageBytes/uint64(n), f)
				}
			}
		}
	}
}

func (c *transferOracle) tokenCells(t require.TestingT, p *Plan, e *engineOracle, rank int, cache string, layer, pos int, page uint64, at int, perToken uint64, f func(id cell, at, n uint64)) {
	n := uint64(e.KernelTokens)
	page += uint64(at) / n * n * perToken
	in := uint64(at) % n
	if cache == "index" {
		elements := perToken * 128 / 132
		f(cell{layer: layer, kind: SparseIndex, pos: pos}, page+in*elements, elements)
		f(cell{layer: layer, kind: SparseIndex, lane: 1, pos: pos}, page+n*elements+in*(perToken-elements), perToken-elements)
		return
	}
	kind, heads, first := LatentAttention, 1, 0
	if total, ok := c.Facts["kv_heads"].(float64); ok {
		heads, first = max(1, int(total)/e.TP), rank*int(total)/e.TP
		for i := range p.Model.Layers {
			if l := &p.Model.Layers[i]; l.Index == layer && l.Kind != Recurrent {
				kind = l.Kind
			}
		}
	}
	size := perToken / uint64(heads)
	for h := range heads {
		off := (in*uint64(heads) + uint64(h)) * size
		if strings.HasSuffix(e.Layout, "HNC") {
			off = (uint64(h)*n + in) * size
		}
		f(cell{layer: layer, kind: kind, head: first + h, pos: pos}, page+off, size)
	}
}

func (c *transferOracle) stateCells(p *Plan, e *engineOracle, rank, layer int, page uint64, f func(id cell, at, n uint64)) {
	var s *State
	for i := range p.Model.Layers {
		if l := &p.Model.Layers[i]; l.Index == layer && l.Kind == Recurrent {
			s = l.State
		}
	}
	rows := s.ConvKernel - 1
	if !s.NoSpeculativeRows {
		rows += c.Request.Speculative
	}
	type share struct{ first, n int }
	of := func(units int) share {
		if units%e.TP == 0 {
			return share{rank * (units / e.TP), units / e.TP}
		}
		return share{rank * units / e.TP, 1}
	}
	channels := 0
	for _, part := range s.Conv {
		channels += of(part.Units).n * part.Width
	}
	before := 0 // channels
	for i, part := range s.Conv {
		mine := of(part.Units)
		for u := range mine.n {
			ch, id := before+u*part.Width, cell{layer: layer, kind: Recurrent, head: i, pos: mine.first + u}
			if e.ConvOrder == "DS" { // all rows of a channel, then the next
				f(id, page+uint64(2*ch*rows), uint64(2*part.Width*rows))
				continue
			}
			for id.row = range rows {
				f(id, page+uint64(2*(id.row*channels+ch)), uint64(2*part.Width))
			}
		}
		before += mine.n * part.Width
	}
	size := s.DType.size()
	if size == 0 {
		size = 2
	}
	for _, d := range s.Temporal[1:] {
		size *= uint64(d)
	}
	mine := of(s.Temporal[0])
	for u := range mine.n {
		f(cell{layer: layer, kind: Recurrent, head: -1, pos: mine.first + u}, page+uint64(2*rows*channels)+uint64(u)*size, size)
	}
}
