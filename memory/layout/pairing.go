package layout

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// Move is a run of bytes that a transfer moves: Len bytes at Local in our arena
// and at Remote in the peer's, whichever way they go.
type Move struct{ Local, Remote, Len uint64 }

// Moves are those of one transfer. The zero Moves is ready for use, and keeps its
// memory from call to call.
type Moves struct {
	// Peers has a list for each description that [NewPairing] was given.
	Peers [][]Move

	cover Cover
	pairs []blockPair
	spans []span
}

// Transfer says what to move.
type Transfer struct {
	Tokens TokenRange
	Groups []GroupBlocks // of the plan, in its order
}

// GroupBlocks are a request's blocks of one group on both sides, by their place
// in the request: block i is the one that [Plan.Cover] calls i. Places without a
// block have the null block, where the arena has one, or a negative id; so has
// what is behind the end of a list.
type GroupBlocks struct {
	Local, Remote []kv.Block
	Skip          bool // move nothing of this group
}

// ErrNoBlock is wrapped by errors about a block that a transfer needs and a
// request does not have.
var ErrNoBlock = errors.New("no block")

// Pairing finds the bytes of a request in our arena and in a peer's. It is made
// once for a peer, is immutable, and safe for use by several goroutines.
type Pairing struct {
	local, remote side
	peers         int     // descriptions that were given
	from          int     // the one that our blocks are at
	spread        *spread // where layouts differ; nil: they are equal
}

// side is one of the two arenas.
type side struct {
	arena    *Arena
	transfer []Segment
	fills    [][]Segment // by group
}

// NewPairing pairs an arena with that of a peer. peers are the descriptions of
// the ranks of the peer, in any order; those that our rank has no business with
// may be left out.
//
// Where a rank and stage of the same number has an equal layout its blocks are
// moved as they are. Else the bytes are found by what they are: tokens by their
// place in the request, heads and units of a state by their number, over any
// number of the peer's ranks and stages, sizes of blocks and orders. What has to
// be equal nevertheless and is not is a *[MismatchError] for each field: model,
// dtypes, groups, the order of convolution states. So is a layer, head or unit
// that no given rank has, and a number of ranks that neither divides ours nor is
// divided by it. Where the heads of a token lie side by side on one side only,
// each token and head is a move.
func NewPairing(local *Arena, peers ...*Description) (*Pairing, error) {
	ours := local.Description()
	if len(peers) == 0 {
		return nil, fmt.Errorf("layout: no description of a peer: %w", ErrDescription)
	}
	p := &Pairing{local: newSide(local), peers: len(peers)}
	for i, theirs := range peers {
		if ours.Compare(theirs) != nil {
			continue
		}
		remote, err := local.Plan.Place(theirs.Base, theirs.Blocks)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDescription, err)
		}
		p.from, p.remote = i, newSide(remote)
		return p, nil
	}
	var err error
	p.spread, err = newSpread(local, peers)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func newSide(a *Arena) side {
	tables := a.Tables()
	s := side{arena: a, transfer: tables.Transfer.Segments}
	for i := range tables.Groups {
		s.fills = append(s.fills, tables.Groups[i].Fill.Segments)
	}
	return s
}

// blockPair is a block of ours and the peer's block that has the same tokens.
type blockPair struct{ local, remote kv.Block }

// Moves sets m to the runs of bytes that hold the tokens on both sides: exactly
// these tokens of blocks that they touch in part, and no padding. Runs that
// follow each other on both sides are one.
//
// A block of ours whose partner the peer has given back, or that we have not, is
// left out where it lies outside of what a request of so many tokens still
// needs ([Plan.Live]), as at the far end of a window; what a new block of ours
// is not brought remains to be zeroed. A block that is needed and missing is an
// error that wraps [ErrNoBlock], an id that is not of its arena one that wraps
// [ErrRange]; bad tokens wrap [ErrTokens]. Then m is empty.
//
// A call allocates nothing once m has grown.
func (p *Pairing) Moves(m *Moves, t *Transfer) error {
	m.Peers = slices.Grow(m.Peers[:0], p.peers)[:p.peers]
	for i := range m.Peers {
		m.Peers[i] = m.Peers[i][:0]
	}
	if p.spread != nil {
		return p.spreadMoves(m, t)
	}
	list := m.Peers[p.from]
	var err error
	if want := len(p.local.fills); len(t.Groups) != want {
		return fmt.Errorf("layout: lists of blocks for %d groups, want %d: %w", len(t.Groups), want, ErrNoBlock)
	}
	for g := range t.Groups {
		if t.Groups[g].Skip {
			continue
		}
		if list, err = p.appendGroup(list, m, g, t); err != nil {
			m.Peers[p.from] = list[:0]
			return err
		}
	}
	m.Peers[p.from] = list
	return nil
}

func (p *Pairing) spreadMoves(m *Moves, t *Transfer) error {
	a := p.local.arena
	if want := len(a.Plan.Groups); len(t.Groups) != want {
		return fmt.Errorf("layout: lists of blocks for %d groups, want %d: %w", len(t.Groups), want, ErrNoBlock)
	}
	for g := range t.Groups {
		if t.Groups[g].Skip {
			continue
		}
		if err := p.spread.appendGroup(m, a.Plan, a.Blocks, g, t); err != nil {
			for i := range m.Peers {
				m.Peers[i] = m.Peers[i][:0]
			}
			return err
		}
	}
	return nil
}

func (p *Pairing) appendGroup(list []Move, m *Moves, g int, t *Transfer) ([]Move, error) {
	plan, c := p.local.arena.Plan, &m.cover
	if err := plan.Cover(c, g, t.Tokens); err != nil {
		return list, err
	}
	if err := p.pairAll(m, g, t); err != nil {
		return list, err
	}
	local, remote := p.local.fills[g], p.remote.fills[g]
	list = slices.Grow(list, len(local)*len(m.pairs))
	for s := range local {
		list = appendPage(list, local[s], remote[s], m.pairs)
	}
	for i := range c.Parts {
		part := &c.Parts[i]
		pair, err := p.pair(g, part.Index, t)
		if err != nil {
			return list, err
		}
		if pair.local >= 0 {
			list = p.appendRanges(list, pair, part.Bytes)
		}
	}
	return list, nil
}

// pairAll pairs the blocks that the tokens touch wholly.
func (p *Pairing) pairAll(m *Moves, g int, t *Transfer) error {
	c, local, remote := &m.cover, t.Groups[g].Local, t.Groups[g].Remote
	m.pairs = slices.Grow(m.pairs[:0], c.WholeEnd-c.WholeFirst)
	first := uint32(p.local.arena.Plan.first())
	ours, theirs := uint32(p.local.arena.Blocks)-first, uint32(p.remote.arena.Blocks)-first
	for i := c.WholeFirst; i < c.WholeEnd; i++ {
		if i < len(local) && i < len(remote) && uint32(local[i])-first < ours && uint32(remote[i])-first < theirs {
			m.pairs = append(m.pairs, blockPair{local[i], remote[i]})
			continue
		}
		pair, err := p.pair(g, i, t)
		if err != nil {
			return err
		}
		if pair.local >= 0 {
			m.pairs = append(m.pairs, pair)
		}
	}
	return nil
}

// pair returns the blocks at a place of the request, or a negative local block
// where there is nothing to move.
func (p *Pairing) pair(g, i int, t *Transfer) (blockPair, error) {
	local, err := p.local.block(g, i, "our", t.Groups[g].Local)
	if err != nil {
		return blockPair{}, err
	}
	remote, err := p.remote.block(g, i, "the peer's", t.Groups[g].Remote)
	if err != nil {
		return blockPair{}, err
	}
	if local >= 0 && remote >= 0 {
		return blockPair{local, remote}, nil
	}
	plan := p.local.arena.Plan
	gr, need := &plan.Groups[g], plan.Live(g, t.Tokens.To)
	if first := i * gr.BlockTokens; gr.Kind == Recurrent || need.From < min(first+gr.BlockTokens, t.Tokens.To) && need.To > first {
		side := "our"
		if local >= 0 {
			side = "the peer's"
		}
		return blockPair{}, fmt.Errorf("layout: group %d: place %d of %s list, of tokens %v: %w", g, i, side, t.Tokens, ErrNoBlock)
	}
	return blockPair{local: kv.Pad}, nil
}

// block returns the block at a place of a list, or a negative id.
func (s *side) block(g, i int, whose string, list []kv.Block) (kv.Block, error) {
	if i >= len(list) || list[i] < 0 {
		return kv.Pad, nil
	}
	b := list[i]
	switch {
	case int(b) >= s.arena.Blocks:
		return b, fmt.Errorf("layout: group %d: place %d of %s list is block %d of %d: %w", g, i, whose, b, s.arena.Blocks, ErrRange)
	case b < s.arena.Plan.first():
		return kv.Pad, nil
	}
	return b, nil
}

// appendPage appends the page of each block. There is room for all of them.
func appendPage(list []Move, local, remote Segment, pairs []blockPair) []Move {
	n := len(list)
	room := list[n : n+len(pairs)]
	k := 0
	var last Move // room[k-1]
	for _, b := range pairs {
		l, r := local.Address(b.local), remote.Address(b.remote)
		if last.Local+last.Len == l && last.Remote+last.Len == r {
			last.Len += local.Page
			room[k-1].Len = last.Len
			continue
		}
		last = Move{l, r, local.Page}
		room[k] = last
		k++
	}
	return list[:n+k]
}

// appendRanges appends bytes of one block.
func (p *Pairing) appendRanges(list []Move, b blockPair, bytes []kv.Range) []Move {
	k, off := 0, uint64(0) // a segment, and where it starts in the block's bytes
	for _, r := range bytes {
		for r.Len > 0 {
			for r.Off >= off+p.local.transfer[k].Page {
				off += p.local.transfer[k].Page
				k++
			}
			local, remote := p.local.transfer[k], p.remote.transfer[k]
			n := min(r.Len, off+local.Page-r.Off)
			list = append(list, Move{local.Address(b.local) + r.Off - off, remote.Address(b.remote) + r.Off - off, n})
			r.Off += n
			r.Len -= n
		}
	}
	return list
}
