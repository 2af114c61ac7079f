package nixl

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Region is a registered run of bytes of one memory type.
type Region struct {
	Type MemoryType
	Descriptor
}

func (r Region) String() string { return fmt.Sprintf("%s %s", r.Type, r.Descriptor) }

// End returns the address behind the region.
func (r Region) End() uint64 { return r.Addr + r.Len }

// Overlap reports a region that was registered inside another one. That is
// allowed, and worth knowing: the bytes of both stay with the transport until
// both are closed.
type Overlap struct{ New, Old Region }

func (o Overlap) String() string { return fmt.Sprintf("%s overlaps %s", o.New, o.Old) }

// Registry keeps what an agent has registered, for implementations of [Agent].
// Transports look an address up among regions that they take to be apart:
// equal ones they mishandle, of overlapping ones they may use any or find none.
// So a region is one entry however often it is registered, one inside another is
// only counted on that one (its container), and any other overlap is refused.
// The transport keeps a container while it or a region inside has an owner. The
// zero Registry is empty. The agent's lock guards it.
type Registry struct {
	entries []*Entry // by type, device, address, length
	reach   []uint64 // the furthest end among entries up to here of the same type and device
}

// Entry is one registered region with its counts.
type Entry struct {
	Region   Region
	Cookie   any // the implementation's own, such as a native handle; that of a container counts
	in       *Entry
	holds    int // distinct regions inside
	owners   int
	inFlight int
	poisoned int
}

// Registered reports whether the region still has an owner. A container without
// one is in the Registry as long as there are regions inside.
func (e *Entry) Registered() bool { return e.owners > 0 }

// Container returns the entry that the transport has for the region: itself or
// the one it lies in.
func (e *Entry) Container() *Entry {
	if e.in != nil {
		return e.in
	}
	return e
}

// Begin counts a transfer that is in flight on the region; End undoes it.
func (e *Entry) Begin() { e.inFlight++ }

// End ends what Begin began. If the transfer is not known to be quiet, the
// region is poisoned: it can not be taken back while the agent lives.
func (e *Entry) End(quiet bool) {
	e.inFlight--
	if !quiet {
		e.poisoned++
	}
}

// Poisoned returns how many transfers ended on the region without proof that
// they touch it no more.
func (e *Entry) Poisoned() int { return e.poisoned }

// Added says what a registration changes for the transport.
type Added struct {
	New      []Descriptor // what it has to take in; each once
	Overlaps []Overlap    // regions that were not registered before, inside another
}

// Add counts the regions in. It is refused with [ErrOverlap] if one shares bytes
// with a registered region without being equal to it or inside it. Among the
// regions the order does not matter. On error nothing has changed.
func (r *Registry) Add(m MemoryType, regions []Descriptor) (Added, error) {
	if err := checkRegions(m, regions); err != nil {
		return Added{}, err
	}
	// Containers first.
	sorted := slices.SortedStableFunc(slices.Values(regions), func(a, b Descriptor) int { return cmp.Compare(b.Len, a.Len) })
	var a Added
	for k, d := range sorted {
		region := Region{m, d}
		i, found := r.search(region)
		if found {
			r.entries[i].owners++
			continue
		}
		e := &Entry{Region: region, owners: 1, in: r.container(region)}
		if e.in != nil {
			e.in.holds++
			a.Overlaps = append(a.Overlaps, Overlap{region, e.in.Region})
		} else if old := r.overlapped(region, i); old != nil {
			r.give(m, sorted[:k])
			r.prune(m, sorted[:k])
			return Added{}, Refuse("register", "", ErrOverlap, "%s and %s", region, old.Region)
		} else {
			a.New = append(a.New, d)
		}
		r.insert(i, e)
	}
	return a, nil
}

// Learn adds a region that a peer told of, which may overlap others: other
// bindings allow it. What is there already stays. A Registry is filled by Add or
// by Learn.
func (r *Registry) Learn(region Region) error {
	if err := checkRegions(region.Type, []Descriptor{region.Descriptor}); err != nil {
		return err
	}
	if i, found := r.search(region); !found {
		r.insert(i, &Entry{Region: region, owners: 1})
	}
	return nil
}

func (r *Registry) insert(i int, e *Entry) {
	r.entries = slices.Insert(r.entries, i, e)
	r.reach = append(r.reach, 0)
	r.measure(i)
}

// Removed says what the end of a registration changes.
type Removed struct {
	Closed bool     // a region lost its last owner
	Gone   []*Entry // what the transport has to give back
}

// Remove counts the regions out. It is refused, with nothing changed, with
// [ErrBusy] or [ErrPoisoned] if one that would lose its last owner is in flight
// or poisoned.
func (r *Registry) Remove(m MemoryType, regions []Descriptor) (Removed, error) {
	for i, d := range regions {
		e := r.Entry(Region{m, d})
		if e == nil || e.owners == 0 {
			r.restore(m, regions[:i])
			return Removed{}, Refuse("deregister", "", ErrNotRegistered, "%s", Region{m, d})
		}
		e.owners--
	}
	for _, d := range regions {
		e := r.Entry(Region{m, d})
		if e.owners > 0 {
			continue
		}
		var cause error
		if e.inFlight > 0 {
			cause = ErrBusy
		} else if e.poisoned > 0 {
			cause = ErrPoisoned
		}
		if cause != nil {
			r.restore(m, regions)
			return Removed{}, Refuse("deregister", "", cause, "%s: %d in flight, %d not quiet", e.Region, e.inFlight, e.poisoned)
		}
	}
	return r.prune(m, regions), nil
}

func (r *Registry) restore(m MemoryType, regions []Descriptor) {
	for _, d := range regions {
		r.Entry(Region{m, d}).owners++
	}
}

// give undoes restore.
func (r *Registry) give(m MemoryType, regions []Descriptor) {
	for _, d := range regions {
		r.Entry(Region{m, d}).owners--
	}
}

// prune takes out those of the regions that have no owner any more.
func (r *Registry) prune(m MemoryType, regions []Descriptor) (x Removed) {
	for _, d := range regions {
		e := r.Entry(Region{m, d})
		if e == nil || e.owners > 0 {
			continue
		}
		x.Closed = true
		if e.in != nil {
			r.drop(e)
			e.in.holds--
		}
		if e = e.Container(); e.owners == 0 && e.holds == 0 {
			r.drop(e)
			x.Gone = append(x.Gone, e)
		}
	}
	return x
}

func (r *Registry) drop(e *Entry) {
	i, _ := r.search(e.Region)
	r.entries = slices.Delete(r.entries, i, i+1)
	r.reach = r.reach[:len(r.entries)]
	r.measure(i)
}

// Quieted takes the poison out of every region: the transport that carried the
// transfers which did not end quietly is gone.
func (r *Registry) Quieted() {
	for _, e := range r.entries {
		e.poisoned = 0
	}
}

// Clear drops every region, whatever its counts: the transport is gone.
func (r *Registry) Clear() {
	for _, e := range r.entries {
		e.owners, e.holds, e.inFlight, e.poisoned = 0, 0, 0, 0
	}
	r.entries, r.reach = nil, nil
}

// Find returns a registered region that holds all of d. Several regions beside
// each other are not one: a transport addresses each through a key of its own.
func (r *Registry) Find(m MemoryType, d Descriptor) (*Entry, bool) {
	if d.Len > math.MaxUint64-d.Addr {
		return nil, false
	}
	end := d.Addr + d.Len
	for i := r.behind(Region{m, d}) - 1; i >= 0; i-- {
		e := r.entries[i]
		if e.Region.Type != m || e.Region.Device != d.Device || r.reach[i] < end {
			return nil, false
		}
		for _, e := range [...]*Entry{e.Container(), e} {
			if e.owners > 0 && e.Region.End() >= end {
				return e, true
			}
		}
	}
	return nil, false
}

// Len returns the number of distinct registered regions.
func (r *Registry) Len() (n int) {
	for _, e := range r.entries {
		if e.owners > 0 {
			n++
		}
	}
	return n
}

// Regions appends the distinct registered regions to dst, sorted.
func (r *Registry) Regions(dst []Region) []Region {
	for _, e := range r.entries {
		if e.owners > 0 {
			dst = append(dst, e.Region)
		}
	}
	return dst
}

// Containers returns the entries that the transport has, sorted.
func (r *Registry) Containers() (all []*Entry) {
	for _, e := range r.entries {
		if e.in == nil {
			all = append(all, e)
		}
	}
	return all
}

// Entry returns the entry of exactly that region, or nil.
func (r *Registry) Entry(region Region) *Entry {
	if i, found := r.search(region); found {
		return r.entries[i]
	}
	return nil
}

func (r *Registry) search(region Region) (int, bool) {
	return slices.BinarySearchFunc(r.entries, region, func(e *Entry, t Region) int {
		return cmp.Or(
			cmp.Compare(e.Region.Type, t.Type),
			cmp.Compare(e.Region.Device, t.Device),
			cmp.Compare(e.Region.Addr, t.Addr),
			cmp.Compare(e.Region.Len, t.Len))
	})
}

// behind returns the place of the first entry that sorts behind everything which
// begins where the region does.
func (r *Registry) behind(region Region) int {
	region.Len = math.MaxUint64
	i, found := r.search(region)
	if found {
		i++
	}
	return i
}

// container returns the one that a new region lies in, if any. Containers share
// no bytes, so it is that of the nearest entry.
func (r *Registry) container(region Region) *Entry {
	i := r.behind(region) - 1
	if i < 0 || !sameSpace(r.entries[i].Region, region) {
		return nil
	}
	if e := r.entries[i].Container(); e.Region.End() >= region.End() {
		return e
	}
	return nil
}

// measure recomputes reach from i on, as far as entry i's address space goes.
func (r *Registry) measure(i int) {
	for ; i < len(r.entries); i++ {
		end := r.entries[i].Region.End()
		if i > 0 && sameSpace(r.entries[i-1].Region, r.entries[i].Region) {
			end = max(end, r.reach[i-1])
		}
		r.reach[i] = end
	}
}

// overlapped returns the first container that shares bytes with a region which
// would be inserted at i and lies in none.
func (r *Registry) overlapped(region Region, i int) *Entry {
	if i > 0 && sameSpace(r.entries[i-1].Region, region) {
		if e := r.entries[i-1].Container(); e.Region.End() > region.Addr {
			return e
		}
	}
	if i < len(r.entries) && sameSpace(r.entries[i].Region, region) && r.entries[i].Region.Addr < region.End() {
		return r.entries[i].Container()
	}
	return nil
}

func sameSpace(a, b Region) bool { return a.Type == b.Type && a.Device == b.Device }

func checkRegions(m MemoryType, regions []Descriptor) error {
	const op = "register"
	if m > File {
		return Refuse(op, "", ErrInvalid, "%s", m)
	}
	if len(regions) == 0 {
		return Refuse(op, "", ErrInvalid, "no regions")
	}
	for i, d := range regions {
		if detail := d.check(); detail != "" {
			return Refuse(op, "", ErrInvalid, "region %d (%s %s): %s", i, m, d, detail)
		}
	}
	return nil
}

// check says what is wrong with d in itself.
func (d Descriptor) check() string {
	switch {
	case d.Len == 0:
		return "no bytes"
	case d.Len > math.MaxUint64-d.Addr:
		return "ends beyond the address space"
	}
	return ""
}
