package race

import "slices"

// span is a range of bytes with the accesses that a later one may race with: the last
// write, and what has read since then.
type span struct {
	from, to uint64
	write    *Op
	reads    []*Op // one for each timeline, the last
}

// shadow is what was done to memory, by address, in spans that do not overlap.
type shadow struct{ spans []span }

// access puts op's access of [from, to) in, and calls conflict with each earlier one
// that it is not ordered behind.
func (s *shadow) access(op *Op, from, to uint64, write bool, conflict func(earlier *Op, wrote bool, from, to uint64)) {
	if from >= to {
		return
	}
	i, _ := slices.BinarySearchFunc(s.spans, from, func(x span, at uint64) int {
		if x.to <= at {
			return -1
		}
		return 1
	})
	var fresh []span // in the place of the spans that [from, to) touches
	at := from
	k := i
	for ; k < len(s.spans) && s.spans[k].from < to; k++ {
		x := s.spans[k]
		if x.from > at {
			fresh = append(fresh, touched(span{from: at, to: x.from}, op, write))
		}
		lo, hi := max(x.from, from), min(x.to, to)
		if x.from < lo {
			fresh = append(fresh, x.part(x.from, lo))
		}
		x.check(op, write, lo, hi, conflict)
		fresh = append(fresh, touched(x.part(lo, hi), op, write))
		if hi < x.to {
			fresh = append(fresh, x.part(hi, x.to))
		}
		at = hi
	}
	if at < to {
		fresh = append(fresh, touched(span{from: at, to: to}, op, write))
	}
	if i > 0 && s.spans[i-1].to == from {
		i--
		fresh = slices.Insert(fresh, 0, s.spans[i])
	}
	if k < len(s.spans) && s.spans[k].from == to {
		fresh = append(fresh, s.spans[k])
		k++
	}
	s.spans = slices.Replace(s.spans, i, k, merged(fresh)...)
}

// check reports the accesses of the span that op is not ordered behind.
func (x *span) check(op *Op, write bool, from, to uint64, conflict func(*Op, bool, uint64, uint64)) {
	if w := x.write; w != nil && !w.before(op) {
		conflict(w, true, from, to)
	}
	if !write {
		return
	}
	for _, r := range x.reads {
		if !r.before(op) {
			conflict(r, false, from, to)
		}
	}
}

func (x span) part(from, to uint64) span {
	return span{from: from, to: to, write: x.write, reads: slices.Clone(x.reads)}
}

// touched is the span after op's access. A write that is behind the reads stands for
// them: what is behind it is behind them.
func touched(x span, op *Op, write bool) span {
	if write {
		x.write, x.reads = op, nil
		return x
	}
	x.reads = slices.DeleteFunc(x.reads, func(r *Op) bool { return r.before(op) })
	x.reads = append(x.reads, op)
	return x
}

// merged joins neighbours that had the same accesses.
func merged(spans []span) []span {
	out := spans[:0]
	for _, x := range spans {
		if n := len(out); n > 0 && out[n-1].to == x.from && out[n-1].write == x.write && slices.Equal(out[n-1].reads, x.reads) {
			out[n-1].to = x.to
			continue
		}
		out = append(out, x)
	}
	return out
}

// forget drops what is known of [from, to): the memory is given out anew.
func (s *shadow) forget(from, to uint64) {
	var kept []span
	for _, x := range s.spans {
		if x.to <= from || x.from >= to {
			kept = append(kept, x)
			continue
		}
		if x.from < from {
			kept = append(kept, x.part(x.from, from))
		}
		if x.to > to {
			kept = append(kept, x.part(to, x.to))
		}
	}
	s.spans = kept
}
