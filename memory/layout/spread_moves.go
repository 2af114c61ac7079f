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
	for i := range s.lanes[g] {
		l := &s.lanes[g][i]
		list := m.Peers[l.peer]
		for j := range spans {
			list = l.append(list, &spans[j])
		}
		m.Peers[l.peer] = list
	}
	return nil
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

// append appends the moves of the lane's vectors of a span, those that follow
// each other on both sides as one.
func (l *lane) append(list []Move, x *span) []Move {
	local, remote := &l.local, &l.remote
	a, b := local.base+uint64(x.local)*local.block, remote.base+uint64(x.remote)*remote.block
	if l.each == 0 {
		return join(list, a, b, l.bytes)
	}
	at, theirs := x.localAt/l.each, x.remoteAt/l.each
	n := (x.localAt+x.tokens+l.each-1)/l.each - at
	dense := local.step == l.bytes && remote.step == l.bytes
	for n > 0 {
		k, r := at%local.perKernel, theirs%remote.perKernel
		run := min(n, local.perKernel-k, remote.perKernel-r)
		from := a + uint64(at/local.perKernel)*local.kernel + uint64(k)*local.step
		to := b + uint64(theirs/remote.perKernel)*remote.kernel + uint64(r)*remote.step
		if dense {
			list = join(list, from, to, uint64(run)*l.bytes)
		} else {
			for v := range uint64(run) {
				list = join(list, from+v*local.step, to+v*remote.step, l.bytes)
			}
		}
		at, theirs, n = at+run, theirs+run, n-run
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
