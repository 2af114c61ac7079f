package loadgate

import (
	"fmt"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// Room is what a request needs room for.
type Room struct {
	// Tokens is how many tokens the request has in all: those that it was given
	// and those that steps appended or will append.
	Tokens int
	// Lookahead is for tokens behind them of which it is not known whether they
	// will be: a speculative step may write them, and no load may bring them.
	Lookahead int
	// Loaded is how many tokens, from the first, will come by loads that bring
	// all of them, and not by steps. Blocks that such a request will never read,
	// for example before the window, are not taken. It counts in a group of which
	// the request has no block yet.
	Loaded int
}

// Grow makes room for the first so many tokens of the request, in blocks of each
// group. When the pool has too few, nothing is taken and the error is a
// *[FullError]. Room that the request has already is kept: Grow never shrinks.
//
// A recurrent group gives a request its rows of state with the first token (one,
// and one for each speculative token of the plan), or, with layout.StateAlign, a
// row for each block of tokens. Room for a long prompt that is computed in parts
// is best made part by part: what lies before a window, and older rows of state,
// come back with [Request.Settle].
func (r Request) Grow(tokens int) error { return r.GrowTo(Room{Tokens: tokens}) }

// GrowTo is [Request.Grow] for tokens that are loaded, and for lookahead.
func (r Request) GrowTo(room Room) error {
	g, s, err := r.enter("grow")
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("loadgate: grow %v: %w", r, ErrClosed)
	}
	q := &g.owned.requests
	need, err := q.need(r, s, room)
	if err != nil {
		return err
	}
	if need > 0 {
		if err := g.take(s); err != nil {
			return fmt.Errorf("loadgate: grow %v to %d tokens: %w", r, room.Tokens, err)
		}
	}
	s.known = max(s.known, room.Tokens)
	s.reserved = max(s.reserved, room.Tokens+room.Lookahead)
	return nil
}

// CanGrow says what [Request.Grow] to so many tokens would take: how many blocks it
// needs, how many the pool has free, and how many more come back by themselves
// when steps and transfers are over.
func (g *Gate) CanGrow(r Request, tokens int) (need, free, soon int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, err := g.request("can grow", r)
	if err != nil {
		return 0, 0, 0, err
	}
	if need, err = g.owned.requests.need(r, s, Room{Tokens: tokens}); err != nil {
		return 0, 0, 0, err
	}
	c := g.core.PoolCounters(0)
	return need, c.Free, c.Quarantined, nil
}

// need sets q.room to the places that a request has to have in each group, and
// returns how many blocks that takes.
func (q *requests) need(r Request, s *request, room Room) (int, error) {
	total := room.Tokens + room.Lookahead
	switch {
	case room.Tokens < 0 || room.Lookahead < 0 || room.Tokens > layout.MaxTokens || room.Lookahead > layout.MaxTokens ||
		room.Loaded < 0 || room.Loaded > room.Tokens:
		return 0, fmt.Errorf("loadgate: grow %v to %d tokens, %d of them loaded, with a lookahead of %d: %w",
			r, room.Tokens, room.Loaded, room.Lookahead, core.ErrInvalid)
	case q.tokens > 0 && total > q.tokens:
		return 0, fmt.Errorf("loadgate: grow %v to %d tokens: the block tables have rows for %d: %w", r, total, q.tokens, core.ErrInvalid)
	}
	need := 0
	q.room = q.room[:0]
	for i := range q.rules {
		rule, l := &q.rules[i], &s.groups[i]
		p := span32{l.end(), max(l.end(), rule.blocks(max(total, s.reserved)))}
		if l.end() == 0 && room.Loaded > 0 && rule.block > 0 {
			p.first = min(q.plan.Live(i, room.Loaded).From/rule.block, p.end)
		}
		need += p.end - p.first
		q.room = append(q.room, p)
	}
	return need, nil
}

// take gives a request the places of q.room: all of them, or none.
func (g *Gate) take(s *request) error {
	q := &g.owned.requests
	q.wants = q.wants[:0]
	for i, p := range q.room {
		if n := p.end - p.first; n > 0 {
			q.wants = append(q.wants, Want{Group: kv.Group(i), Blocks: n})
		}
	}
	var err error
	if q.ts, err = g.core.Alloc(q.wants, q.ts[:0]); err != nil {
		return err
	}
	s.version++
	rest := q.ts
	for i, p := range q.room {
		n := p.end - p.first
		if n == 0 {
			continue
		}
		g.must(g.core.Append(s.holder, kv.Group(i), rest[:n])) // they were free until now
		l := &s.groups[i]
		if l.blocks.Len() == 0 {
			l.first = p.first
		}
		for _, t := range rest[:n] {
			l.blocks.Push(t)
		}
		rest = rest[n:]
	}
	return nil
}
