package layout

import (
	"sort"

	"github.com/kvgate/kvgate/memory/kv"
)

// Meets returns a block of m that shares bytes with a block of o. It looks at
// every page of segments whose addresses reach into o, and at nothing else.
func (m *Map) Meets(o *Map) (kv.Block, bool) {
	// Of two runs of bytes that meet, one starts in the other.
	if b, _, ok := m.startsIn(o); ok {
		return b, true
	}
	if _, at, ok := o.startsIn(m); ok {
		b, _, err := m.Locate(at, 1)
		return b, err == nil
	}
	return kv.Pad, false
}

// startsIn returns a block of m that has a page whose first byte is one of o's,
// and that byte's address.
func (m *Map) startsIn(o *Map) (kv.Block, uint64, bool) {
	for _, s := range m.table.Segments {
		if !o.reaches(s.Base, s.end(m.table.Blocks)) {
			continue
		}
		for b := range kv.Block(m.table.Blocks) {
			if at := s.Address(b); o.has(at) {
				return b, at, true
			}
		}
	}
	return kv.Pad, 0, false
}

// reaches reports whether a zone has addresses from low to before end.
func (m *Map) reaches(low, end uint64) bool {
	i := sort.Search(len(m.zones), func(i int) bool { return m.zones[i].end > low })
	return i < len(m.zones) && m.zones[i].low < end
}

// has reports whether a byte belongs to a block.
func (m *Map) has(address uint64) bool {
	z := m.zone(address)
	if z == nil {
		return false
	}
	if z.stride > 0 {
		address -= (address - z.low) / z.stride * z.stride
	}
	i := sort.Search(len(z.pages), func(i int) bool { return z.pages[i].start > address }) - 1
	return i >= 0 && address < z.pages[i].end
}
