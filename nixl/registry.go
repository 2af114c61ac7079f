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

// Overlap reports two registered regions that share bytes without being equal.
// That is allowed, and worth knowing: the bytes stay reachable until both are
// closed.
type Overlap struct{ New, Old Region }

func (o Overlap) String() string { return fmt.Sprintf("%s overlaps %s", o.New, o.Old) }

// Registry keeps what an agent has registered, for implementations of [Agent].
// A region is one entry however often it is registered, since transports
// mishandle equal entries; it is counted, and leaves with its last owner. The
// zero Registry is empty. The agent's lock guards it.
type Registry struct {
	entries []*Entry // by type, device, address, length
	reach   []uint64 // the furthest end among entries up to here of the same type and device
}

// Entry is one registered region with its counts.
type Entry struct {
	Region   Region
	Cookie   any // the implementation's own, such as a native handle
	owners   int
	inFlight int
	poisoned int
}

// Registered reports whether the region still has an owner.
func (e *Entry) Registered() bool { return e.owners > 0 }

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
	New      []Descriptor // not registered before; each once
	Overlaps []Overlap
}

// Add counts the regions in. On error nothing has changed.
func (r *Registry) Add(m MemoryType, regions []Descriptor) (Added, error) {
	if err := checkRegions(m, regions); err != nil {
		return Added{}, err
	}
	var a Added
	for _, d := range regions {
		region := Region{m, d}
		i, found := r.search(region)
		if found {
			r.entries[i].owners++
			continue
		}
		a.New = append(a.New, d)
		a.Overlaps = r.overlaps(a.Overlaps, region, i)
		r.entries = slices.Insert(r.entries, i, &Entry{Region: region, owners: 1})
		r.reach = append(r.reach, 0)
		r.measure(i)
	}
	return a, nil
}

// Remove counts the regions out and returns the entries that thereby lost
// their last owner. It is refused, with nothing changed, with [ErrBusy] or
// [ErrPoisoned] if one of those is in flight or poisoned.
func (r *Registry) Remove(m MemoryType, regions []Descriptor) ([]*Entry, error) {
	for i, d := range regions {
		e := r.Entry(Region{m, d})
		if e == nil || e.owners == 0 {
			r.restore(m, regions[:i])
			return nil, Refuse("deregister", "", ErrNotRegistered, "%s", Region{m, d})
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
			return nil, Refuse("deregister", "", cause, "%s: %d in flight, %d not quiet", e.Region, e.inFlight, e.poisoned)
		}
	}
	var gone []*Entry
	for _, d := range regions {
		i, found := r.search(Region{m, d})
		if found && r.entries[i].owners == 0 {
			gone = append(gone, r.entries[i])
			r.entries = slices.Delete(r.entries, i, i+1)
			r.reach = r.reach[:len(r.entries)]
			r.measure(i)
		}
	}
	return gone, nil
}

func (r *Registry) restore(m MemoryType, regions []Descriptor) {
	for _, d := range regions {
		r.Entry(Region{m, d}).owners++
	}
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
		e.owners, e.inFlight, e.poisoned = 0, 0, 0
	}
	r.entries, r.reach = nil, nil
}

// Find returns a region that holds all of d. Several regions beside each other
// are not one: a transport addresses each through a key of its own.
func (r *Registry) Find(m MemoryType, d Descriptor) (*Entry, bool) {
	if d.Len > math.MaxUint64-d.Addr {
		return nil, false
	}
	end := d.Addr + d.Len
	// The first entry that sorts behind everything that begins at d.Addr.
	i, found := r.search(Region{m, Descriptor{Addr: d.Addr, Len: math.MaxUint64, Device: d.Device}})
	if found {
		i++
	}
	for i--; i >= 0; i-- {
		e := r.entries[i]
		if e.Region.Type != m || e.Region.Device != d.Device || r.reach[i] < end {
			return nil, false
		}
		if e.Region.End() >= end {
			return e, true
		}
	}
	return nil, false
}

// Len returns the number of distinct regions.
func (r *Registry) Len() int { return len(r.entries) }

// Regions appends the distinct regions to dst, sorted.
func (r *Registry) Regions(dst []Region) []Region {
	for _, e := range r.entries {
		dst = append(dst, e.Region)
	}
	return dst
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

// overlaps appends the entries that share bytes with a region that would be
// inserted at i.
func (r *Registry) overlaps(dst []Overlap, region Region, i int) []Overlap {
	for j := i - 1; j >= 0 && sameSpace(r.entries[j].Region, region) && r.reach[j] > region.Addr; j-- {
		if r.entries[j].Region.End() > region.Addr {
			dst = append(dst, Overlap{region, r.entries[j].Region})
		}
	}
	for j := i; j < len(r.entries) && sameSpace(r.entries[j].Region, region) && r.entries[j].Region.Addr < region.End(); j++ {
		dst = append(dst, Overlap{region, r.entries[j].Region})
	}
	return dst
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
