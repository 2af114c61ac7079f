package loadgate

import (
	"fmt"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
)

// Settle ends the oldest step of the request that is not settled: of the tokens
// that it appended, the first so many were kept. The others were rejected, and
// the room of as many tokens is given back, at the end of the request.
//
// What the layers of a group do not read any more is let go: the blocks before
// the window of a sliding-window group, and older rows of state. That goes by
// settled tokens only. Steps under way may still touch a block that is let go;
// whoever gets it next is made to wait for them.
//
// Settle does not wait for the step: it is for an engine that has seen its output.
func (r Request) Settle(accepted int) error {
	g, s, err := r.enter("settle")
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if s.pending.Len() == 0 {
		return fmt.Errorf("loadgate: settle: %v has no step that is not settled: %w", r, core.ErrState)
	}
	p := *s.pending.At(0)
	switch {
	case p.load:
		return fmt.Errorf("loadgate: settle: %v: a load comes first, and settles by itself: %w", r, core.ErrState)
	case !p.done:
		return fmt.Errorf("loadgate: settle: %v: its oldest step was not launched: %w", r, core.ErrState)
	case accepted < 0 || accepted > p.tokens:
		return fmt.Errorf("loadgate: settle: %v: %d tokens of a step that appended %d: %w", r, accepted, p.tokens, core.ErrInvalid)
	}
	rejected := p.tokens - accepted
	if err := g.trim(r.slot, s, s.settled+accepted, s.reserved-rejected); err != nil {
		return fmt.Errorf("loadgate: settle %v: %w", r, err)
	}
	s.pending.Pop(1)
	s.settled += accepted
	s.planned -= rejected
	s.reserved -= rejected
	s.known = max(s.known-rejected, s.settled)
	s.state = s.settled
	if rejected > 0 {
		s.state = -1
	}
	s.settleLoads()
	return nil
}

// settleLoads settles the tokens of the loads that have arrived and have nothing
// unsettled before them.
func (s *request) settleLoads() {
	for s.pending.Len() > 0 {
		p := s.pending.At(0)
		if !p.load || !p.done {
			return
		}
		s.settled += p.tokens
		s.state = s.settled
		s.pending.Pop(1)
	}
}

// trim lets go of the blocks that a request does not need any more: those in
// front when so many tokens are settled, those at the end when so many are
// reserved. When it fails nothing has changed.
func (g *Gate) trim(slot int32, s *request, settled, reserved int) error {
	q := &g.owned.requests
	q.ts, q.room = q.ts[:0], q.room[:0]
	for i := range q.rules {
		rule, l := &q.rules[i], &s.groups[i]
		keep := span32{l.first, l.end()}
		if rule.block > 0 {
			keep.end = max(min(keep.end, rule.blocks(reserved)), keep.first)
			keep.first = min(max(keep.first, q.plan.Live(i, settled).From/rule.block), keep.end)
		}
		q.room = append(q.room, keep)
		for k := l.first; k < keep.first; k++ {
			q.ts = append(q.ts, *l.blocks.At(k - l.first))
		}
		for k := keep.end; k < l.end(); k++ {
			q.ts = append(q.ts, *l.blocks.At(k - l.first))
		}
	}
	if len(q.ts) == 0 {
		return nil
	}
	if err := g.core.Remove(s.holder, 0, q.ts); err != nil {
		return err
	}
	if err := g.core.Free(0, q.ts); err != nil {
		g.restore(s)
		return err
	}
	s.version++
	for i, keep := range q.room {
		l := &s.groups[i]
		for l.end() > keep.end {
			l.blocks.Drop()
		}
		l.blocks.Pop(keep.first - l.first)
		l.first = keep.first
		g.owned.tables.cut(slot, i, l.first, l.end())
	}
	return nil
}

// restore gives a holder back what [Gate.trim] removed from it.
func (g *Gate) restore(s *request) {
	q := &g.owned.requests
	for i, keep := range q.room {
		l := &s.groups[i]
		var ts []kv.Tenancy
		for k := range l.blocks.Len() {
			if at := l.first + k; at < keep.first || at >= keep.end {
				ts = append(ts, *l.blocks.At(k))
			}
		}
		g.must(g.core.Append(s.holder, kv.Group(i), ts))
	}
}
