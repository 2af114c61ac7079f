package layout

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
)

// span is a run of tokens that lie in one block on both sides.
type span struct {
	local, remote     kv.Block
	localAt, remoteAt int // tokens of the block before them
	tokens            int
}

// appendGroup appends the moves of a group.
func (s *spread) appendGroup(m *Moves, plan *Plan, blocks int, g int, t *Transfer) error {
	spans, err := s.spans(m.spans[:0], plan, blocks, g, t)
	m.spans = spans[:0]
	if err != nil {
		return err
	}
	for i := range s.pages[g] {
		p := &s.pages[g][i]
		if len(p.whole) == 1 {
			p.appendAll(m, spans)
			continue
		}
		for j := range spans {
			p.append(m, &spans[j])
		}
	}
	return nil
}

// appendAll appends the moves of a page whose kernel blocks are one run.
func (p *spreadPage) appendAll(m *Moves, spans []span) {
	l := &p.whole[0]
	local, remote, list := &l.local, &l.remote, m.Peers[l.peer]
	for j := range spans {
		x := &spans[j]
		if x.localAt|x.remoteAt != 0 || x.tokens != p.full {
			m.Peers[l.peer] = list
			p.append(m, x)
			list = m.Peers[l.peer]
			continue
		}
		list = join(list, local.base+uint64(x.local)*local.block, remote.base+uint64(x.remote)*remote.block, l.bytes)
	}
	m.Peers[l.peer] = list
}

// append appends the moves of the page's vectors of a span: for each run that
// lies in one kernel block on both sides lane by lane, so that heads which follow
// each other are one move.
func (p *spreadPage) append(m *Moves, x *span) {
	if len(p.lanes) == 0 {
		return
	}
	first := &p.lanes[0]
	if first.each == 0 {
		for i := range p.lanes {
			l := &p.lanes[i]
			m.Peers[l.peer] = join(m.Peers[l.peer], l.local.base+uint64(x.local)*l.local.block, l.remote.base+uint64(x.remote)*l.remote.block, l.bytes)
		}
		return
	}
	at, theirs := x.localAt/first.each, x.remoteAt/first.each
	n := (x.localAt+x.tokens+first.each-1)/first.each - at
	ours, his := first.local.perKernel, first.remote.perKernel
	for n > 0 {
		k, v := at/ours, at%ours
		r, w := theirs/his, theirs%his
		run := min(n, ours-v, his-w)
		if run == ours && run == his && len(p.whole) > 0 {
			for i := range p.whole {
				l := &p.whole[i]
				m.Peers[l.peer] = join(m.Peers[l.peer], l.local.address(x.local, k, 0), l.remote.address(x.remote, r, 0), l.bytes)
			}
		} else {
			for i := range p.lanes {
				l := &p.lanes[i]
				m.Peers[l.peer] = l.append(m.Peers[l.peer], l.local.address(x.local, k, v), l.remote.address(x.remote, r, w), run)
			}
		}
		at, theirs, n = at+run, theirs+run, n-run
	}
}

// address returns where a vector of a block's kernel block is.
func (t *thread) address(b kv.Block, kernel, vector int) uint64 {
	return t.base + uint64(b)*t.block + uint64(kernel)*t.kernel + uint64(vector)*t.step
}

// spans pairs the blocks of a group by the place of their tokens.
func (s *spread) spans(spans []span, plan *Plan, blocks, g int, t *Transfer) ([]span, error) {
	if err := plan.checkTokens(g, t.Tokens); err != nil || t.Tokens.From == t.Tokens.To {
		return spans, err
	}
	gr, theirs := &plan.Groups[g], s.tokens[g]
	if gr.Kind == Recurrent {
		i, j := 0, 0
		if plan.Options.StateMode == StateAlign {
			i, j = (t.Tokens.To-1)/gr.BlockTokens, (t.Tokens.To-1)/max(theirs, 1)
		}
		x, err := s.pair(plan, blocks, g, i, j, t)
		if err != nil || x.local < 0 || x.remote < 0 {
			if err == nil {
				err = s.lacks(g, i, t, x)
			}
			return spans, err
		}
		return append(spans, x), nil
	}
	need := plan.Live(g, t.Tokens.To)
	for at := t.Tokens.From; at < t.Tokens.To; {
		i, j := at/gr.BlockTokens, at/theirs
		end := min((i+1)*gr.BlockTokens, (j+1)*theirs, t.Tokens.To)
		x, err := s.pair(plan, blocks, g, i, j, t)
		switch {
		case err != nil:
			return spans, err
		case x.local >= 0 && x.remote >= 0:
			x.localAt, x.remoteAt, x.tokens = at-i*gr.BlockTokens, at-j*theirs, end-at
			spans = append(spans, x)
		case end > need.From && at < need.To:
			return spans, s.lacks(g, i, t, x)
		}
		at = end
	}
	return spans, nil
}

func (s *spread) lacks(g, i int, t *Transfer, x span) error {
	side := "our"
	if x.local >= 0 {
		side = "the peer's"
	}
	return fmt.Errorf("layout: group %d: place %d of %s list, of tokens %v: %w", g, i, side, t.Tokens, ErrNoBlock)
}

// pair returns the blocks at a place of our list and of the peer's, negative
// where there is none.
func (s *spread) pair(plan *Plan, blocks, g, i, j int, t *Transfer) (x span, err error) {
	if x.local, err = blockAt(g, i, "our", t.Groups[g].Local, blocks, plan.first()); err != nil {
		return x, err
	}
	x.remote = kv.Pad
	for p := range s.peers {
		if peer := &s.peers[p]; peer.read {
			if x.remote, err = blockAt(g, j, "the peer's", t.Groups[g].Remote, peer.blocks, peer.first); err != nil {
				return x, err
			}
		}
	}
	return x, nil
}

// blockAt returns the block at a place of a list, or a negative id.
func blockAt(g, i int, whose string, list []kv.Block, blocks int, first kv.Block) (kv.Block, error) {
	if i >= len(list) || list[i] < 0 {
		return kv.Pad, nil
	}
	b := list[i]
	switch {
	case int(b) >= blocks:
		return b, fmt.Errorf("layout: group %d: place %d of %s list is block %d of %d: %w", g, i, whose, b, blocks, ErrRange)
	case b < first:
		return kv.Pad, nil
	}
	return b, nil
}

// append appends the moves of a run of vectors, those that follow each other on
// both sides as one.
func (l *lane) append(list []Move, local, remote uint64, run int) []Move {
	if l.local.step == l.bytes && l.remote.step == l.bytes {
		return join(list, local, remote, uint64(run)*l.bytes)
	}
	for v := range uint64(run) {
		list = join(list, local+v*l.local.step, remote+v*l.remote.step, l.bytes)
	}
	return list
}

func join(list []Move, local, remote, n uint64) []Move {
	if k := len(list); k > 0 {
		if last := &list[k-1]; last.Local+last.Len == local && last.Remote+last.Len == remote {
			last.Len += n
			return list
		}
	}
	return append(list, Move{local, remote, n})
}

// Sources returns which of the descriptions that [NewPairing] was given are read
// from when something is moved, and which are of ranks that have the request's
// blocks too: these have only to be told that it is done. If nothing is moved,
// all of both have.
func (p *Pairing) Sources() (read, told []int) {
	if p.spread == nil {
		return []int{p.from}, nil
	}
	for i := range p.spread.peers {
		switch peer := &p.spread.peers[i]; {
		case peer.read:
			read = append(read, i)
		case peer.contacted:
			told = append(told, i)
		}
	}
	return read, told
}
