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
	all     bool // pages are compared whole at every use
	sample  int  // a page is renewed and compared again in every so manieth word
	mem     []byte
	current []*cell // by block: the tenancy that was handed out last
	tags    uint64

	corrupted int // tenancies whose first use was wrong
	later     int // tenancies whose first use was right and a later one wrong
	strays    int // writes that were not allowed
	checks    uint64
}

// samples are the words of a page that are renewed with a state, and compared
// at uses after the first: all of them at the reduced size, its head, its tail
// and some between at the full one.
const samples = 64

func newLedger(m *cache, c *Config) *ledger {
	return &ledger{cache: m, zero: c.Zero, all: c.CheckAll, sample: max(1, int(m.held/8)/samples), current: make([]*cell, m.arena.Blocks)}
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

// zeroes notes that blocks were zeroed: that is allowed before anything else of
// a tenancy was written.
func (l *ledger) zeroes(blocks []kv.Block) {
	for _, b := range blocks {
		if c := l.current[b]; c != nil && c.begun {
			l.strays++
		}
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

// at returns what a word of a cell's page has to be: something where filled,
// else zero.
func (l *ledger) at(c *cell, page, w, version, filled int) uint64 {
	switch {
	case w >= filled:
		return 0
	case c.group.state && l.sampled(w):
		return word(c.tag, page, w, version)
	}
	return word(c.tag, page, w, 0)
}

func (l *ledger) sampled(w int) bool { return w%l.sample == 0 || w == int(l.cache.held/8)-1 }

// append writes what a step adds to a page: the words of one more token, or
// those of a state that change.
func (l *ledger) append(c *cell, page, version, filled int) {
	dst := l.page(c, page)
	if c.group.state {
		words := len(dst) / 8
		for w := 0; w < words; w += l.sample {
			binary.LittleEndian.PutUint64(dst[8*w:], word(c.tag, page, w, version+1))
		}
		binary.LittleEndian.PutUint64(dst[8*words-8:], word(c.tag, page, words-1, version+1))
		return
	}
	last := l.written(c.group, filled+1)
	for w := min(l.written(c.group, filled), last-1); w < last; w++ {
		binary.LittleEndian.PutUint64(dst[8*w:], word(c.tag, page, w, 0))
	}
}

// intact compares a page with what it has to be when so many tokens are there:
// whole, or its sample and what lies around its last token.
func (l *ledger) intact(c *cell, page, version, filled int) bool {
	l.checks++
	src, n := l.page(c, page), l.written(c.group, filled)
	words := len(src) / 8
	if !l.zero {
		words = n // what lies behind is nobody's
	}
	step := l.sample
	if !c.used || l.all {
		step = 1
	}
	same := func(w int) bool {
		return w < 0 || w >= words || binary.LittleEndian.Uint64(src[8*w:]) == l.at(c, page, w, version, n)
	}
	for w := 0; w < words; w += step {
		if !same(w) {
			return false
		}
	}
	return step == 1 || same(n-1) && same(n) && same(words-1)
}

// page returns the bytes of a page.
func (l *ledger) page(c *cell, page int) []byte {
	off := l.cache.address(page, c.t.Block) - l.cache.arena.Base
	return l.mem[off : off+l.cache.held]
}

// use checks one page of a cell, and notes on the request whose step it is what
// is wrong.
func (l *ledger) use(c *cell, page, version, filled int, r *request) {
	if !l.intact(c, page, version, filled) {
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
