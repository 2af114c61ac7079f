package layout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/kvgate/kvgate/memory/kv"
)

// ErrNotInBlock: the bytes asked after are not bytes of one block.
var ErrNotInBlock = errors.New("not the bytes of one block")

// Map finds the block that an address belongs to. It is immutable and safe for
// use by several goroutines.
type Map struct {
	table Table
	zones []zone // by address, disjoint
}

// zone is a run of addresses that holds segments of one stride whose pages keep
// to a window of that stride: block b of all of them lies in
// [low + b*stride, low + (b+1)*stride). A layer-outermost table has a zone for
// each segment, a block-outermost one has a single zone. Tables that are
// neither have their pages listed one by one.
type zone struct {
	low, end uint64
	stride   uint64 // 0: pages holds every page, not those of block 0
	overlap  bool   // pages of one block share bytes: pages holds their unions
	pages    []page // by address, disjoint
}

type page struct {
	start, end uint64
	block      kv.Block
	segment    int
	offset     uint64 // in the block's bytes
}

// maxListed bounds the pages that a zone lists one by one.
const maxListed = 1 << 24

// NewMap returns the map of a valid table; see [Table.Validate].
func NewMap(t Table) (*Map, error) {
	t.Segments = slices.Clone(t.Segments)
	zones, err := arrange(&t)
	if err != nil {
		return nil, err
	}
	return &Map{table: t, zones: zones}, nil
}

// Table returns the table that the map was made of. It must not be changed.
func (m *Map) Table() *Table { return &m.table }

// Overlapping reports whether pages of one block share bytes.
func (m *Map) Overlapping() bool {
	return slices.ContainsFunc(m.zones, func(z zone) bool { return z.overlap })
}

// arrange checks a table and cuts it into zones.
func arrange(t *Table) ([]zone, error) {
	if err := t.checkSizes(); err != nil {
		return nil, err
	}
	pages := make([]page, len(t.Segments))
	var offset uint64
	for i, s := range t.Segments {
		pages[i] = page{start: s.Base, end: s.Base + s.Page, segment: i, offset: offset}
		offset += s.Page
	}
	byAddress(pages)

	var zones []zone
	for i := 0; i < len(pages); {
		z := zone{low: pages[i].start, stride: t.Segments[pages[i].segment].Stride}
		window, n := pages[i].end, 0
		for _, p := range pages[i:] {
			s := t.Segments[p.segment]
			// A single block is one zone: its pages may follow each other anywhere.
			if n > 0 && p.start >= z.end && t.Blocks > 1 {
				break
			}
			if s.Stride != z.stride {
				z.stride = 0
			}
			window = max(window, p.end)
			z.end = max(z.end, s.end(t.Blocks))
			n++
		}
		z.pages = pages[i : i+n]
		i += n
		if t.Blocks > 1 && (z.stride == 0 || window-z.low > z.stride) {
			z.stride = 0
			if err := z.list(t); err != nil {
				return nil, err
			}
		}
		if t.Blocks == 1 {
			z.stride = 0
		}
		if err := z.check(t); err != nil {
			return nil, err
		}
		zones = append(zones, z)
	}
	return zones, nil
}

func byAddress(pages []page) {
	slices.SortFunc(pages, func(a, b page) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.block, b.block), cmp.Compare(a.segment, b.segment))
	})
}

// list replaces the pages of block 0 by those of all blocks.
func (z *zone) list(t *Table) error {
	if n := len(z.pages); t.Blocks > maxListed/n {
		return t.fault("segments %d and %d are interleaved without a common window, in more than %d pages: too many to check",
			z.pages[0].segment, z.pages[n-1].segment, maxListed)
	}
	all := make([]page, 0, len(z.pages)*t.Blocks)
	for _, p := range z.pages {
		s := t.Segments[p.segment]
		for b := range t.Blocks {
			start := s.Address(kv.Block(b))
			all = append(all, page{start, start + s.Page, kv.Block(b), p.segment, p.offset})
		}
	}
	byAddress(all)
	z.pages = all
	return nil
}

// check finds bytes that are in two pages: of two blocks, which is an error, or
// of one, where it replaces the pages by their unions.
func (z *zone) check(t *Table) error {
	last := z.pages[0] // the page that reaches furthest
	for _, p := range z.pages[1:] {
		if p.start < last.end {
			if p.block != last.block {
				return t.fault("block %d of segment %d and block %d of segment %d share the byte at %#x",
					last.block, last.segment, p.block, p.segment, p.start)
			}
			z.overlap = true
		}
		if p.end > last.end {
			last = p
		}
	}
	if !z.overlap {
		return nil
	}
	var unions []page
	for _, p := range z.pages {
		if n := len(unions); n > 0 && p.start <= unions[n-1].end && p.block == unions[n-1].block {
			unions[n-1].end = max(unions[n-1].end, p.end)
			continue
		}
		unions = append(unions, p)
	}
	z.pages = unions
	return nil
}

// Locate returns the block that the n bytes at address belong to, and their
// range in its bytes. Bytes that go on from one page into the next are found
// where those pages follow each other both in memory and in the block.
//
// Where the pages of a block overlap, a byte has more than one place in its
// block, and the range is [kv.WholeBlock]: to be on the safe side, everything.
//
// The error wraps [ErrNotInBlock]. A call costs two binary searches and
// allocates nothing unless it fails.
func (m *Map) Locate(address, n uint64) (kv.Block, kv.Range, error) {
	b, r, found, err := m.Prefix(address, n)
	if err != nil || found < n {
		return kv.Pad, kv.Range{}, m.notFound(address, n)
	}
	return b, r, nil
}

// Prefix is [Map.Locate] for bytes that may go on into other blocks: found says
// how many of them, from the first, belong to the block. The error says that the
// first byte is not one of a block.
func (m *Map) Prefix(address, n uint64) (b kv.Block, r kv.Range, found uint64, err error) {
	z := m.zone(address)
	if z == nil || n == 0 {
		return kv.Pad, kv.Range{}, 0, m.notFound(address, n)
	}
	block, at := kv.Block(0), address
	if z.stride > 0 {
		// Pages may touch the end of their window, not pass it, so the window
		// of the last block is never left.
		block = kv.Block((address - z.low) / z.stride)
		at = address - uint64(block)*z.stride
	}
	i := sort.Search(len(z.pages), func(i int) bool { return z.pages[i].start > at }) - 1
	if i < 0 || at >= z.pages[i].end {
		return kv.Pad, kv.Range{}, 0, m.notFound(address, n)
	}
	p := z.pages[i]
	if z.stride == 0 {
		block = p.block
	}
	if z.overlap {
		return block, kv.WholeBlock, min(n, p.end-at), nil
	}
	r = kv.Range{Off: p.offset + (at - p.start), Len: min(n, p.end-at)}
	for left := n - r.Len; left > 0; {
		i++
		if i == len(z.pages) {
			break
		}
		next := z.pages[i]
		if next.start != p.end || next.segment != p.segment+1 || next.block != p.block {
			break
		}
		p = next
		k := min(left, p.end-p.start)
		r.Len += k
		left -= k
	}
	return block, r, r.Len, nil
}

// zone returns the zone that holds an address, or nil.
func (m *Map) zone(address uint64) *zone {
	i := sort.Search(len(m.zones), func(i int) bool { return m.zones[i].low > address }) - 1
	if i < 0 || address >= m.zones[i].end {
		return nil
	}
	return &m.zones[i]
}

func (m *Map) notFound(address, n uint64) error {
	return fmt.Errorf("layout: pool %d: %d bytes at %#x: %w", m.table.Pool, n, address, ErrNotInBlock)
}
