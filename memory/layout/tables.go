package layout

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/kvgate/kvgate/memory/kv"
)

// Tables is the memory of an arena as a pool of the gate takes it.
type Tables struct {
	// Transfer holds every byte of a block, whichever group uses it: what a
	// transfer may touch. Offsets in a block ([kv.Range]) count over its
	// segments, in their order.
	Transfer Table
	// Groups are those of the plan, in its order.
	Groups []GroupTable
}

// GroupTable says what has to be written before a new owner uses a block of the
// group.
type GroupTable struct {
	Name string // kind and number, for messages
	// Fill holds the bytes to write: what the group's layers keep in a block,
	// without padding. Neighbours in memory are joined. A group without layers
	// has no segments.
	Fill Table
	// State says that blocks are rows of states, which are reset, not zeroed.
	State bool
	// NeedsZero says that a block has to be filled before its first use:
	// of attention as [Plan.NeedsZeroing] says, of states always, since kernels
	// that start from an old state compute something wrong. Where the group has
	// no layers it is false.
	NeedsZero bool
}

// Tables returns the tables of the arena. The bytes that Fill of any group names
// are bytes of the transfer table.
func (a *Arena) Tables() Tables {
	t := Tables{Transfer: a.transferTable()}
	for g := range a.Plan.Groups {
		state, any := a.Plan.Groups[g].Kind == Recurrent, len(a.Plan.Groups[g].Pages) > 0
		t.Groups = append(t.Groups, GroupTable{
			Name:      fmt.Sprintf("%v %d", a.Plan.Groups[g].Kind, g),
			Fill:      a.fill(g),
			State:     state,
			NeedsZero: any && (state || a.Plan.NeedsZeroing),
		})
	}
	return t
}

// transferTable is one segment block outermost, else one for each page (and
// head) of the widest group.
func (a *Arena) transferTable() Table {
	if a.Plan.Options.Order.BlockOutermost() {
		return a.table([]Segment{{a.Base, a.Plan.BlockBytes, a.Plan.BlockBytes}})
	}
	widest := 0
	for g := range a.Plan.Groups {
		if a.Plan.Groups[g].Bytes() > a.Plan.Groups[widest].Bytes() {
			widest = g
		}
	}
	var s []Segment
	for i := range a.Plan.Groups[widest].Pages {
		s = a.appendHeads(s, &a.Plan.Groups[widest].Pages[i], a.Page(widest, i))
	}
	return a.table(s)
}

// appendHeads appends the segments of a page: one, or one for each head where
// the order takes heads apart, LHBNC or BHLNC. whole is that of [Arena.Page].
func (a *Arena) appendHeads(s []Segment, pg *Page, whole Segment) []Segment {
	heads, apart := a.heads(pg)
	for h := range heads {
		s = append(s, Segment{whole.Base + h*apart, whole.Stride, whole.Page})
	}
	return s
}

// heads returns into how many pieces the order takes a page, and how far they
// are from each other in memory.
func (a *Arena) heads(pg *Page) (n, apart uint64) {
	switch a.Plan.Options.Order {
	case LHBNC:
		return uint64(pg.Heads), pg.Bytes / uint64(pg.Heads) * uint64(a.Blocks)
	case BHLNC:
		return uint64(pg.Heads), a.Plan.BlockBytes / uint64(pg.Heads)
	}
	return 1, 0
}

func (a *Arena) fill(g int) Table {
	gr := &a.Plan.Groups[g]
	var s []Segment
	for i := range gr.Pages {
		pg, whole := &gr.Pages[i], a.Page(g, i)
		if !a.Plan.Options.Order.splitsPages() {
			whole.Page = pg.Used // such orders have no padding
		}
		s = a.appendHeads(s, pg, whole)
	}
	slices.SortFunc(s, func(x, y Segment) int { return cmp.Compare(x.Base, y.Base) })
	joined := s[:0]
	for _, seg := range s {
		if n := len(joined); n > 0 {
			if last := &joined[n-1]; last.Base+last.Page == seg.Base && last.Page+seg.Page <= seg.Stride {
				last.Page += seg.Page
				continue
			}
		}
		joined = append(joined, seg)
	}
	return a.table(joined)
}

// Ranges returns where the bytes of a block of fill lie in the bytes of a block
// of t: in order, apart from each other, neighbours merged. A byte that is in
// two segments of t is told at both places.
//
// The error wraps [ErrTable]: the tables differ in pool or blocks, or a segment
// of fill has a byte that is in no segment of t with the same stride.
func (t *Table) Ranges(fill Table) ([]kv.Range, error) {
	if fill.Pool != t.Pool || fill.Blocks != t.Blocks {
		return nil, t.fault("its fill is of pool %d with %d blocks, want %d blocks", fill.Pool, fill.Blocks, t.Blocks)
	}
	if err := t.checkSizes(); err != nil {
		return nil, err
	}
	if err := fill.checkSizes(); err != nil {
		return nil, fmt.Errorf("the fill: %w", err)
	}
	ours, reach := t.byAddress()
	var found []kv.Range
	for i, s := range fill.Segments {
		at, end := s.Base, s.Base+s.Page // up to at all bytes are found
		for k := sort.Search(len(ours), func(k int) bool { return reach[k] > s.Base }); k < len(ours) && ours[k].Base < end; k++ {
			o := ours[k]
			from, to := max(o.Base, s.Base), min(o.Base+o.Page, end)
			if from >= to || o.Stride != s.Stride && t.Blocks > 1 {
				continue
			}
			if from > at {
				break
			}
			at = max(at, to)
			found = append(found, kv.Range{Off: o.off + (from - o.Base), Len: to - from})
		}
		if at < end {
			return nil, t.fault("segment %d of the fill: the byte at %#x of block 0 is not a byte of the block", i, at)
		}
	}
	return mergeRanges(found), nil
}

// placed is a segment and where its bytes start in those of a block.
type placed struct {
	Segment
	off uint64
}

// byAddress returns the segments in order of address, and for each how far it
// and those before it reach in block 0.
func (t *Table) byAddress() (s []placed, reach []uint64) {
	s = make([]placed, len(t.Segments))
	var off, end uint64
	for i, seg := range t.Segments {
		s[i] = placed{seg, off}
		off += seg.Page
	}
	slices.SortFunc(s, func(x, y placed) int { return cmp.Compare(x.Base, y.Base) })
	reach = make([]uint64, len(s))
	for i := range s {
		end = max(end, s[i].Base+s[i].Page)
		reach[i] = end
	}
	return s, reach
}

// mergeRanges sorts ranges and merges those that touch, in place.
func mergeRanges(r []kv.Range) []kv.Range {
	slices.SortFunc(r, func(x, y kv.Range) int { return cmp.Compare(x.Off, y.Off) })
	merged := r[:0]
	for _, x := range r {
		if n := len(merged); n > 0 && x.Off <= merged[n-1].End() {
			merged[n-1].Len = max(merged[n-1].End(), x.End()) - merged[n-1].Off
			continue
		}
		merged = append(merged, x)
	}
	return merged
}
