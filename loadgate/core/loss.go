package core

import (
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// loss is what loads into a block did not bring and nothing has since. It is
// kept out of line: hardly any block ever has one.
type loss struct {
	missing []kv.Range // in order, apart from each other
	cause   error      // of the first failure
}

// lose enters bytes of a block that did not arrive.
func (c *Core) lose(b int32, bytes kv.Range, cause error) {
	l := c.losses[b]
	if l == nil {
		l = &loss{cause: cause}
		c.losses[b] = l
		c.setLost(b, true)
	}
	l.missing = addRange(l.missing, bytes)
}

// bring enters bytes of a block that arrived.
func (c *Core) bring(b int32, bytes kv.Range) {
	if l := c.losses[b]; l != nil {
		if l.missing = subtractRange(l.missing, bytes); len(l.missing) == 0 {
			c.unlose(b)
		}
	}
}

// unlose says that nothing of a block is missing any more, or nobody cares.
func (c *Core) unlose(b int32) {
	if c.blocks[b].lost {
		delete(c.losses, b)
		c.setLost(b, false)
	}
}

// missed reports whether a load did not bring some of the bytes, and nothing
// has since.
func (c *Core) missed(b int32, bytes kv.Range) bool {
	l := c.losses[b]
	return l != nil && slices.ContainsFunc(l.missing, bytes.Overlaps)
}

// healing reports whether loads that will bring all the missing ones of the
// bytes are under way.
func (c *Core) healing(b int32, bytes kv.Range) bool {
	var left []kv.Range
	for _, m := range c.losses[b].missing {
		if from, to := max(m.Off, bytes.Off), min(m.End(), bytes.End()); from < to {
			left = append(left, kv.Range{Off: from, Len: to - from})
		}
	}
	for q := c.blocks[b].pieces; q >= 0; q = c.pieces[q].nextInBlock {
		if tk := &c.tickets[c.pieces[q].ticket]; tk.kind == Load && !tk.told {
			left = subtractRange(left, c.pieces[q].bytes)
		}
	}
	return len(left) == 0
}

// causeOf returns why bytes of a block are missing.
func (c *Core) causeOf(b int32) error {
	if l := c.losses[b]; l != nil {
		return l.cause
	}
	return ErrLost
}

// addRange adds a range to a sorted list of disjoint ones.
func addRange(list []kv.Range, r kv.Range) []kv.Range {
	at := 0
	for at < len(list) && list[at].End() < r.Off {
		at++
	}
	to := at
	for to < len(list) && list[to].Off <= r.End() {
		end := max(r.End(), list[to].End())
		r.Off = min(r.Off, list[to].Off)
		r.Len = end - r.Off
		to++
	}
	return slices.Replace(list, at, to, r)
}

// subtractRange takes a range out of a sorted list of disjoint ones.
func subtractRange(list []kv.Range, r kv.Range) []kv.Range {
	var out []kv.Range
	for _, have := range list {
		if !have.Overlaps(r) {
			out = append(out, have)
			continue
		}
		if have.Off < r.Off {
			out = append(out, kv.Range{Off: have.Off, Len: r.Off - have.Off})
		}
		if r.End() < have.End() {
			out = append(out, kv.Range{Off: r.End(), Len: have.End() - r.End()})
		}
	}
	return out
}
