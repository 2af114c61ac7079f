package loadgate

import (
	"fmt"
	"strings"

	"github.com/kvgate/kvgate/loadgate/core"
)

// Use is a request's part in a step.
type Use struct {
	Request Request
	// Tokens is how many tokens the step appends to the request; 0 where it
	// only reads.
	Tokens int
}

// NotReadyError names the requests that a step can't use now, and why.
type NotReadyError struct{ Requests []NotReady }

// NotReady is a request with the reason: [ErrLoading] and [ErrLost] of loads,
// [ErrFull] where the request has no room for the tokens, [ErrStale] where it was
// closed, [ErrInvalid] where it is listed twice.
type NotReady struct {
	Request Request
	Err     error
}

func (e *NotReadyError) Error() string {
	var b strings.Builder
	b.WriteString("loadgate: new step: ")
	for i, r := range e.Requests {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%v: %v", r.Request, r.Err)
	}
	return b.String()
}

func (e *NotReadyError) Unwrap() []error {
	errs := make([]error, len(e.Requests))
	for i, r := range e.Requests {
		errs[i] = r.Err
	}
	return errs
}

// NewStep declares a step of requests, as soon as the scheduler has chosen them:
// see [Step]. Where some of them can't be used now, it is a *[NotReadyError] that
// names all of these, and nothing is planned. The tokens are planned until the
// step is settled ([Request.Settle]) or abandoned.
//
// What new blocks need (zeroing, resets) and the block tables of the requests are
// written when the step is launched, ahead of its work. It costs O(requests).
func (g *Gate) NewStep(uses []Use) (Step, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.upper("new step"); err != nil {
		return Step{}, err
	}
	if g.closed {
		return Step{}, fmt.Errorf("loadgate: new step: %w", ErrClosed)
	}
	holders, err := g.gather(uses)
	if err != nil {
		return Step{}, err
	}
	s, err := g.openStep(holders, nil)
	if err != nil {
		return Step{}, err
	}
	o := &g.steps[s.plan.Slot()]
	for _, u := range uses {
		o.uses = append(o.uses, stepUse{u.Request.slot, u.Request.gen, u.Tokens})
	}
	g.owned.requests.note(uint64(s.plan), uses)
	return s, nil
}

// stepUse is a use of an open step.
type stepUse struct {
	slot   int32
	gen    uint32
	tokens int
}

// readyFor says why a step can't use a request.
func (g *Gate) readyFor(u Use) error {
	s, err := g.request("new step", u.Request)
	switch {
	case err != nil:
		return err
	case u.Tokens < 0:
		return fmt.Errorf("%d tokens: %w", u.Tokens, core.ErrInvalid)
	case s.planned+u.Tokens > s.reserved:
		return fmt.Errorf("%d tokens behind %d, and room for %d: %w", u.Tokens, s.planned, s.reserved, core.ErrFull)
	case s.stamp == g.owned.requests.stamp:
		return fmt.Errorf("listed twice: %w", core.ErrInvalid)
	}
	s.stamp = g.owned.requests.stamp
	return g.core.Ready(s.holder)
}

// gather checks the uses of a step and collects their holders.
func (g *Gate) gather(uses []Use) ([]Holder, error) {
	q := &g.owned.requests
	q.stamp++
	q.holders = q.holders[:0]
	var not *NotReadyError
	for _, u := range uses {
		if err := g.readyFor(u); err != nil {
			if not == nil {
				not = &NotReadyError{}
			}
			not.Requests = append(not.Requests, NotReady{u.Request, err})
			continue
		}
		q.holders = append(q.holders, q.all[u.Request.slot].holder)
	}
	if not != nil {
		return nil, not
	}
	return q.holders, nil
}

// note books a step that is open now.
func (q *requests) note(step uint64, uses []Use) {
	for _, u := range uses {
		s := &q.all[u.Request.slot]
		s.steps++
		if u.Tokens > 0 {
			s.planned += u.Tokens
			s.pending.Push(pending{id: step, tokens: u.Tokens})
		}
	}
}

// stepOver books a step that is not open any more: it is in its streams, or it was
// abandoned, and what it planned is taken back.
func (g *Gate) stepOver(p core.Plan, uses []stepUse, launched bool) {
	step := uint64(p)
	for _, u := range uses {
		s := &g.owned.requests.all[u.slot]
		if p := s.find(step, false); p != nil && launched {
			p.done = true
		} else if p != nil {
			s.drop(step, false)
		}
		if s.steps--; s.steps == 0 && !s.open {
			g.reuse(u.slot)
		}
	}
}

// find returns the pending tokens of a step or a load, or nil.
func (s *request) find(id uint64, load bool) *pending {
	for i := range s.pending.Len() {
		if p := s.pending.At(i); p.id == id && p.load == load {
			return p
		}
	}
	return nil
}

// drop takes pending tokens back. Those behind them move up.
func (s *request) drop(id uint64, load bool) {
	for range s.pending.Len() {
		p := *s.pending.At(0)
		s.pending.Pop(1)
		if p.id == id && p.load == load {
			s.planned -= p.tokens
			continue
		}
		s.pending.Push(p)
	}
}
