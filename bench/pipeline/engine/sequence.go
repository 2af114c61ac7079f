package engine

import (
	"time"

	"github.com/kvgate/kvgate/bench/trace"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
)

// request is one line of the trace on its way through the engine.
type request struct {
	trace     *trace.Request
	issued    time.Duration
	produced  int // tokens that the host has seen
	late      bool
	corrupted bool
}

// sequence is one admission of a request: from its blocks' allocation until
// they are given back.
type sequence struct {
	r       *request
	loaded  int // tokens that are loaded: the prompt and what was generated before
	planned int // steps that it was in
	cells   [][]*cell
	holder  loadgate.Holder
	load    *load   // of what it doesn't share; nil: nothing
	others  []*load // of what it shares
	order   int     // of admission
	over    bool    // it has given its blocks back
	cancel  bool    // its load fails, and it is canceled
}

// pos returns the place of the next token.
func (s *sequence) pos() int { return s.loaded + s.planned }

// ready reports whether all that it needs has arrived.
func (s *sequence) ready() bool {
	for _, l := range s.others {
		if !l.done {
			return false
		}
	}
	return s.load == nil || s.load.done
}

// prefix is the beginning of a prompt up to the end of a block: the block's
// place, the group, and a hash of the ids that stand for it.
type prefix struct {
	group, index int
	ids          uint64
}

// prefixes hashes the beginnings of a prompt: the i-th of the result is that of
// its first i+1 ids.
func prefixes(ids []uint64) []uint64 {
	out := make([]uint64, len(ids))
	h := uint64(0xcbf29ce484222325)
	for i, id := range ids {
		for s := 0; s < 64; s += 8 {
			h = (h ^ id>>s&0xff) * 0x100000001b3
		}
		out[i] = h
	}
	return out
}

// key returns the prefix that ends with a block, if the prompt reaches beyond
// it and says what it is.
func key(gi int, g *group, index int, r *trace.Request, hashes []uint64) (prefix, bool) {
	end := (index + 1) * g.tokens
	if g.state || end > r.Input || len(hashes) == 0 {
		return prefix{}, false
	}
	return prefix{gi, index, hashes[(end-1)/trace.Stretch]}, true
}

// tenancies appends those of cells.
func tenancies(dst []kv.Tenancy, cells []*cell) []kv.Tenancy {
	for _, c := range cells {
		dst = append(dst, c.t)
	}
	return dst
}
