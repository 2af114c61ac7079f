package ptx

import "math/bits"

// sectorBytes is the unit in which the caches of NVIDIA's GPUs talk to memory
// (Kernel Profiling Guide, "Memory Tables").
const sectorBytes = 32

// Count is work that warps did. Instructions are those of the lowered kernel: of
// PTX, without moves of constants and parameters, which cost nothing here.
type Count struct {
	Instructions uint64 // of warps, those included whose predicate was false
	// Longest is what the warp did that did most. Of several launches it is the sum.
	Longest uint64
	// Loads and Stores are those among them that touched global memory; an atomic
	// operation is both. LaneStores is each lane's store by itself.
	Loads, Stores, LaneStores uint64
	// Sectors of 32 bytes that loads and stores touched, each once for an access of
	// a warp if neighbouring lanes share it.
	LoadSectors, StoreSectors uint64
}

// Add adds o to c.
func (c *Count) Add(o Count) {
	c.Instructions += o.Instructions
	c.Longest += o.Longest
	c.Loads += o.Loads
	c.Stores += o.Stores
	c.LaneStores += o.LaneStores
	c.LoadSectors += o.LoadSectors
	c.StoreSectors += o.StoreSectors
}

// Sub takes o from c.
func (c *Count) Sub(o Count) {
	c.Instructions -= o.Instructions
	c.Longest -= o.Longest
	c.Loads -= o.Loads
	c.Stores -= o.Stores
	c.LaneStores -= o.LaneStores
	c.LoadSectors -= o.LoadSectors
	c.StoreSectors -= o.StoreSectors
}

// Count returns what the warps of the launch did so far; those of a thread block
// count once they have exited.
func (r *Run) Count() Count { return r.count }

// exited ends a warp that has executed n instructions.
func (r *Run) exited(w *warp, n uint64) {
	w.state = warpExited
	r.count.Instructions += n
	r.count.Longest = max(r.count.Longest, n)
}

// sectors counts the sectors of a warp's access, lane by lane.
type sectors struct {
	n    uint64
	last uint64 // its number, plus 1
}

func (s *sectors) touch(addr uint64) {
	if at := addr/sectorBytes + 1; at != s.last {
		s.n++
		s.last = at
	}
}

// spanned returns how many sectors n bytes from addr on touch.
func spanned(addr, n uint64) uint64 { return (addr%sectorBytes + n + sectorBytes - 1) / sectorBytes }

func (c *Count) loaded(s sectors) {
	if s.n > 0 {
		c.Loads++
		c.LoadSectors += s.n
	}
}

func (c *Count) stored(s sectors, lanes uint32) {
	if s.n > 0 {
		c.Stores++
		c.StoreSectors += s.n
		c.LaneStores += uint64(bits.OnesCount32(lanes))
	}
}
