package layout

import (
	"cmp"
	"slices"
)

// SegmentsMerged returns the table that vLLM 0.33.0 zeroes new blocks of any
// attention group by: the segments of all of them, those at one address merged
// to the widest page, in order of address. Bytes that only recurrent groups use
// are not in it; without attention groups it is empty.
func (a *Arena) SegmentsMerged() Table {
	var s []Segment
	for g := range a.Plan.Groups {
		if a.Plan.Groups[g].Kind.Attention() {
			s = append(s, a.Segments(g).Segments...)
		}
	}
	slices.SortFunc(s, func(x, y Segment) int {
		return cmp.Or(cmp.Compare(x.Base, y.Base), cmp.Compare(y.Page, x.Page))
	})
	s = slices.CompactFunc(s, func(x, y Segment) bool { return x.Base == y.Base })
	return a.table(s)
}
