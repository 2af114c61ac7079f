package engine

import (
	"encoding/binary"

	"github.com/kvgate/kvgate/memory/kv"
)

// cell is one tenancy as the ledger knows it: what its bytes have to be at any
// time, independently of the gate. Every word of a page has a value of its own,
// made from the cell's tag.
type cell struct {
	t     kv.Tenancy
	tag   uint64
	group *group
	index int   // of the block in its sequence
	refs  int   // sequences that hold it
	load  *load // that brings its content; nil: it begins zeroed
	key   prefix
	keyed bool // it is known by its key
	begun bool // something of this tenancy has been written
	used  bool // its first use is behind it
	bad   bool // that saw something wrong
	worse bool // a later use did
}

// ledger says who may write which block, and counts what was wrong.
type ledger struct {
	cache   *cache
	zero    bool // blocks begin zeroed
	mem     []byte
	current []*cell // by block: the tenancy that was handed out last
	tags    uint64

	corrupted int // tenancies whose first use was wrong
	later     int // tenancies whose first use was right and a later one wrong
	strays    int // writes over the content of a tenancy by another
	checks    uint64
}

func newLedger(m *cache, zero bool) *ledger {
	return &ledger{cache: m, zero: zero, current: make([]*cell, m.blocks)}
}

// begin opens a tenancy.
func (l *ledger) begin(t kv.Tenancy, g *group, index int) *cell {
	l.tags++
	c := &cell{t: t, tag: l.tags, group: g, index: index, refs: 1}
	l.current[t.Block] = c
	return c
}

// writes notes a write by the owner of c, or by one who was: it is allowed
// while nothing of a newer tenancy is there.
func (l *ledger) writes(c *cell) {
	now := l.current[c.t.Block]
	if now == c {
		c.begun = true
	} else if now.begun {
		l.strays++
	}
}

// word is the value of a word: never 0, and different for any two tags, pages,
// words or versions that are likely to meet.
func word(tag uint64, page, w, version int) uint64 {
	x := tag<<24 ^ uint64(page)<<52 ^ uint64(version)
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 29
	return (x+uint64(w))*0xbf58476d1ce4e5b9 | 1
}

// written returns how many words of a page so many tokens of a block fill.
func (l *ledger) written(g *group, filled int) int {
	words := int(l.cache.held / 8)
	if g.state {
		return words
	}
	return (filled*words + g.tokens - 1) / g.tokens
}

// put writes the words from first to before last of a page.
func (l *ledger) put(dst []byte, c *cell, page, version, first, last int) {
	for w := first; w < last; w++ {
		binary.LittleEndian.PutUint64(dst[8*w:], word(c.tag, page, w, version))
	}
}

// intact compares a page with what it has to be: so many words of the cell, and
// zeros behind them where blocks begin zeroed.
func (l *ledger) intact(src []byte, c *cell, page, version, words int) bool {
	l.checks++
	for w := range words {
		if binary.LittleEndian.Uint64(src[8*w:]) != word(c.tag, page, w, version) {
			return false
		}
	}
	if l.zero {
		for w := words; w < len(src)/8; w++ {
			if binary.LittleEndian.Uint64(src[8*w:]) != 0 {
				return false
			}
		}
	}
	return true
}

// page returns the bytes of a page.
func (l *ledger) page(c *cell, page int) []byte {
	off := l.cache.offset(page, c.t.Block)
	return l.mem[off : off+l.cache.held]
}

// use checks one page of a cell, and notes on the request whose step it is what
// is wrong.
func (l *ledger) use(c *cell, page, version, filled int, r *request) {
	if !l.intact(l.page(c, page), c, page, version, l.written(c.group, filled)) {
		switch {
		case !c.used && !c.bad:
			c.bad = true
			l.corrupted++
		case c.used && !c.bad && !c.worse:
			c.worse = true
			l.later++
		}
		if c.bad {
			r.corrupted = true
		}
	}
	if page == c.group.pages-1 {
		c.used = true
	}
}
