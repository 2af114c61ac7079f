package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
)

// scheduler decides who is in a step and who has which blocks.
type scheduler struct {
	requests []request
	next     int // of requests, to be issued
	open     int // issued, not over
	over     int
	waiting  []*request
	loading  []*sequence
	running  []*sequence // in order of admission
	admitted int
	known    map[prefix]*cell
	shares   bool // sequences share prefixes

	deferred    []freed // in order of step
	allocations int
	preemptions int
	lates       int
	full        time.Duration // when memory first ran out; 0: never
	last        time.Duration // admission
}

// freed are blocks that stay out of the pool until a step was processed.
type freed struct {
	ts   []kv.Tenancy
	step int
}

// issue lets requests in: as many as are to be outstanding, or those whose time
// has come.
func (e *engine) issue() {
	now := e.clk.Now()
	for e.next < len(e.requests) {
		r := &e.requests[e.next]
		r.issued = now
		if e.cfg.Rate > 0 {
			if r.issued = e.arrival(e.next); r.issued > now {
				return
			}
		} else if e.open >= e.outstanding {
			return
		}
		e.waiting = append(e.waiting, r)
		e.next++
		e.open++
	}
}

// arrival returns when a request of an open loop arrives.
func (e *engine) arrival(i int) time.Duration {
	return e.start + time.Duration(float64(e.requests[i].trace.Arrival)/e.cfg.Rate)
}

// admit takes waiting requests, first come first served, while there are blocks
// for them.
func (e *engine) admit() ([]*sequence, error) {
	var fresh []*sequence
	for len(e.waiting) > 0 {
		s, err := e.place(e.waiting[0])
		if errors.Is(err, loadgate.ErrFull) {
			if e.full == 0 {
				e.full = e.clk.Now()
			}
			break
		}
		if err != nil {
			return nil, err
		}
		e.waiting = e.waiting[1:]
		fresh = append(fresh, s)
		e.loading = append(e.loading, s)
		e.last = e.clk.Now()
	}
	return fresh, nil
}

// place gives a request the blocks of its tokens so far, shared ones where
// there are, and makes the load of the others.
func (e *engine) place(r *request) (*sequence, error) {
	s := &sequence{r: r, loaded: r.trace.Input + r.produced, cells: make([][]*cell, len(e.cache.groups)),
		order: e.admitted, cancel: r.late}
	var hashes []uint64
	if e.shares && !s.cancel {
		hashes = prefixes(r.trace.HashIDs)
	}
	need := 0
	var shared []*cell
	for gi := range e.cache.groups {
		g := &e.cache.groups[gi]
		n := g.count(s.loaded)
		s.cells[gi] = make([]*cell, n)
		for i := n - 1; i >= 0 && (g.state || i >= g.first(s.loaded)); i-- {
			if k, ok := key(gi, g, i, r.trace, hashes); ok && e.known[k] != nil {
				s.cells[gi][i] = e.known[k]
				shared = append(shared, e.known[k])
			} else {
				need++
			}
		}
	}
	ts, err := e.pool.Alloc(need, nil)
	if err != nil {
		return nil, err
	}
	e.allocations += need
	e.admitted++
	l := &load{seq: s, blocks: ts}
	for gi := range e.cache.groups {
		g := &e.cache.groups[gi]
		for i := len(s.cells[gi]) - 1; i >= 0 && (g.state || i >= g.first(s.loaded)); i-- {
			if s.cells[gi][i] != nil {
				continue
			}
			c := e.ledger.begin(ts[0], g, i)
			ts = ts[1:]
			c.load = l
			s.cells[gi][i] = c
			if c.key, c.keyed = key(gi, g, i, r.trace, hashes); c.keyed {
				e.known[c.key] = c
			}
			for p := range g.pages {
				l.entries = append(l.entries, loadEntry{c, p, g.filled(i, s.loaded)})
			}
		}
	}
	for _, c := range shared {
		c.refs++
		if c.load != nil && !c.load.done {
			s.others = append(s.others, c.load)
		}
	}
	if len(l.entries) > 0 {
		s.load = l
	}
	all := tenancies(l.blocks[:len(l.blocks):len(l.blocks)], shared)
	if err := e.pool.Ref(all[len(l.blocks):]); err != nil {
		return nil, err
	}
	s.holder, err = e.gate.Hold(0, all)
	return s, err
}

// arrived moves sequences whose KV is there to those that run.
func (e *engine) arrived() error {
	e.news = e.gate.Ended(e.news[:0])
	for _, n := range e.news {
		l := e.tickets[n.Transfer]
		if l == nil || n.Shared {
			continue
		}
		if n.Err != nil {
			return fmt.Errorf("engine: a load: %w", n.Err)
		}
		l.done = true
		delete(e.tickets, n.Transfer)
		e.prefill.close(l)
	}
	kept := e.loading[:0]
	for _, s := range e.loading {
		if s.ready() {
			e.running = append(e.running, s)
		} else {
			kept = append(kept, s)
		}
	}
	clear(e.loading[len(kept):])
	e.loading = kept
	slices.SortFunc(e.running, func(a, b *sequence) int { return a.order - b.order })
	return nil
}

// schedule picks the sequences of the next step, and gives each the block that
// its token falls into. It returns the new blocks.
func (e *engine) schedule(st *step) (fresh []kv.Tenancy, err error) {
	for i := 0; i < len(e.running); {
		s := e.running[i]
		ts, err := e.extend(s)
		if err != nil {
			return nil, err
		}
		if s.over { // it has given way itself
			continue
		}
		i++
		if ts == nil && !e.reaches(s) {
			continue // it sits this step out
		}
		fresh = append(fresh, ts...)
	}
	// Who gave way after others were extended is not among the running any more.
	for _, s := range e.running {
		if e.reaches(s) {
			e.enter(st, s)
		}
	}
	kept := fresh[:0]
	for _, t := range fresh {
		if !e.gone(t) {
			kept = append(kept, t)
		}
	}
	return kept, nil
}

// gone reports whether a block that was just handed out went back at once.
func (e *engine) gone(t kv.Tenancy) bool {
	c := e.ledger.current[t.Block]
	return c.t != t || c.refs == 0
}

// reaches reports whether a sequence has the block for its next token.
func (e *engine) reaches(s *sequence) bool {
	for gi := range e.cache.groups {
		if len(s.cells[gi]) < e.cache.groups[gi].count(s.pos()+1) {
			return false
		}
	}
	return true
}

// extend gives a sequence blocks for its next token. Where there are none the
// youngest gives way, unless blocks are on their way back already.
func (e *engine) extend(s *sequence) (ts []kv.Tenancy, err error) {
	need := 0
	for gi := range e.cache.groups {
		need += e.cache.groups[gi].count(s.pos()+1) - len(s.cells[gi])
	}
	if need == 0 {
		return nil, e.slide(s)
	}
	for {
		ts, err = e.pool.Alloc(need, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, loadgate.ErrFull) {
			return nil, err
		}
		if len(e.deferred) > 0 || e.pool.Counters().Quarantined > 0 {
			return nil, nil
		}
		youngest := e.running[len(e.running)-1]
		if len(e.running) == 1 {
			return nil, nil
		}
		if err := e.preempt(youngest); err != nil || youngest == s {
			return nil, err
		}
	}
	e.allocations += need
	if err := e.gate.Append(s.holder, 0, ts); err != nil {
		return nil, err
	}
	rest := ts
	for gi := range e.cache.groups {
		g := &e.cache.groups[gi]
		for len(s.cells[gi]) < g.count(s.pos()+1) {
			s.cells[gi] = append(s.cells[gi], e.ledger.begin(rest[0], g, len(s.cells[gi])))
			rest = rest[1:]
		}
	}
	return ts, e.slide(s)
}

// slide gives blocks back that lie behind the window.
func (e *engine) slide(s *sequence) error {
	for gi := range e.cache.groups {
		g := &e.cache.groups[gi]
		if g.window == 0 {
			continue
		}
		var out []*cell
		for i := g.first(s.pos()) - 1; i >= 0 && s.cells[gi][i] != nil; i-- {
			out = append(out, s.cells[gi][i])
			s.cells[gi][i] = nil
		}
		if len(out) == 0 {
			continue
		}
		if err := e.gate.Remove(s.holder, 0, tenancies(nil, out)); err != nil {
			return err
		}
		if err := e.release(out, s.planned > 0); err != nil {
			return err
		}
	}
	return nil
}

// enter puts a sequence into a step.
func (e *engine) enter(st *step, s *sequence) {
	pos := s.pos()
	st.entries = append(st.entries, entry{seq: s, pos: pos, version: s.planned})
	e.holders = append(e.holders, s.holder)
	read, written := e.cache.moved(pos)
	st.read += read
	st.written += written
	if s.planned == 0 || e.cfg.CheckAll {
		for gi := range e.cache.groups {
			g := &e.cache.groups[gi]
			if g.state {
				continue
			}
			for i, c := range s.cells[gi] {
				if c != nil && i != pos/g.tokens && (e.cfg.CheckAll || !c.used) {
					st.first = append(st.first, use{c, g.filled(i, pos), s})
				}
			}
		}
	}
	s.planned++
}

// output takes in what a step has produced.
func (e *engine) output(st *step) error {
	now := e.clk.Now()
	for i := range st.entries {
		s := st.entries[i].seq
		if s.over {
			continue
		}
		r := s.r
		r.produced++
		e.meter.tokens++
		if r.produced == 1 {
			e.meter.ttft = append(e.meter.ttft, now-r.issued)
		}
		if r.produced == r.trace.Output {
			if err := e.finish(s); err != nil {
				return err
			}
			e.meter.completed++
			e.ended()
		}
	}
	return nil
}

// ended counts a request that is over.
func (e *engine) ended() {
	e.open--
	e.over++
	e.meter.end = e.clk.Now()
	if e.cfg.Progress != nil && e.over%64 == 0 {
		e.cfg.Progress(e.mode, e.over, len(e.requests))
	}
}

// preempt takes a sequence's blocks; its request waits at the head of the queue
// and is loaded again.
func (e *engine) preempt(s *sequence) error {
	e.preemptions++
	e.waiting = append([]*request{s.r}, e.waiting...)
	return e.finish(s)
}

// finish ends a running sequence.
func (e *engine) finish(s *sequence) error {
	for i, have := range e.running {
		if have == s {
			e.running = append(e.running[:i], e.running[i+1:]...)
			break
		}
	}
	return e.giveBack(s, s.planned > 0)
}
