package engine

import (
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
)

// giveBack ends a sequence; used says that a step has used its blocks.
func (e *engine) giveBack(s *sequence, used bool) error {
	s.over = true
	if err := e.gate.Drop(s.holder); err != nil {
		return err
	}
	var out []*cell
	for _, cells := range s.cells {
		for _, c := range cells {
			if c != nil {
				out = append(out, c)
				s.r.corrupted = s.r.corrupted || c.bad && s.planned > 0 // others may have seen it first
			}
		}
	}
	return e.release(out, used)
}

// release drops references to blocks, at once or when the steps in flight have
// been processed.
func (e *engine) release(cells []*cell, used bool) error {
	for _, c := range cells {
		if c.refs--; c.refs == 0 && c.keyed && e.known[c.key] == c {
			delete(e.known, c.key)
		}
	}
	ts := tenancies(nil, cells)
	if used && e.defers && len(e.inFlight) > 0 {
		e.deferred = append(e.deferred, freed{ts, e.inFlight[len(e.inFlight)-1].n})
		return nil
	}
	return e.pool.Free(ts)
}

// undefer gives blocks to the pool whose last step was processed.
func (e *engine) undefer(processed int) error {
	for len(e.deferred) > 0 && e.deferred[0].step <= processed {
		if err := e.pool.Free(e.deferred[0].ts); err != nil {
			return err
		}
		e.deferred = e.deferred[1:]
	}
	return nil
}

// covered splits the blocks of loads into those that they overwrite wholly and
// the others.
func (e *engine) covered(fresh []*sequence) (whole, part []kv.Tenancy) {
	for _, s := range fresh {
		if s.load == nil {
			continue
		}
		for i := range s.load.entries {
			en := &s.load.entries[i]
			switch {
			case en.page > 0:
			case en.c.group.pages == e.cache.pages:
				whole = append(whole, en.c.t)
			default:
				part = append(part, en.c.t)
			}
		}
	}
	return whole, part
}

// zero asks for zeroing, if the model needs any.
func (e *engine) zero(ts []kv.Tenancy, covered bool) error {
	if !e.cfg.Zero || len(ts) == 0 {
		return nil
	}
	return e.gate.Zero(loadgate.ZeroRequest{Tenancies: ts, Covered: covered})
}
