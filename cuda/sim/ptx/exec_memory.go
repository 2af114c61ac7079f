package ptx

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

func loadLE(p []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

func storeLE(p []byte, size int, v uint64) {
	switch size {
	case 1:
		p[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(v))
	default:
		binary.LittleEndian.PutUint64(p, v)
	}
}

// forget drops the cached regions: memory may come and go between Steps.
func (r *Run) forget() { r.regions = [len(r.regions)]Region{} }

// region returns the cached or new region around addr; nil: there is none.
func (r *Run) region(addr uint64) *Region {
	if g := &r.regions[r.recent]; addr-g.Base < uint64(len(g.Data)) {
		return g
	}
	for i := range r.regions {
		if g := &r.regions[i]; addr-g.Base < uint64(len(g.Data)) {
			r.recent = i
			return g
		}
	}
	g, ok := r.mem.Region(addr)
	if !ok || addr-g.Base >= uint64(len(g.Data)) {
		return nil
	}
	if g.Scale == 0 {
		g.Scale = 1
	}
	r.recent, r.victim = r.victim, (r.victim+1)%len(r.regions)
	r.regions[r.recent] = g
	return &r.regions[r.recent]
}

// whole returns the n bytes at addr of global memory and their region, or nil
// where not all of them lie in one region.
func (r *Run) whole(addr, n uint64) ([]byte, *Region) {
	g := r.region(addr)
	if g == nil {
		return nil, nil
	}
	off := addr - g.Base
	if n > uint64(len(g.Data))-off {
		return nil, nil
	}
	return g.Data[off : off+n : off+n], g
}

func (r *Run) memoryTrap(w *warp, in *inst, lane int, sp space, addr uint64, size int, kind error, detail string) *Trap {
	t := r.trap(w, in, 1<<lane, kind, detail)
	t.Addr, t.Size, t.Space = addr, size, sp.String()
	return t
}

// at returns the n bytes that one lane accesses. The region is that of global
// memory, nil for other spaces.
func (r *Run) at(w *warp, in *inst, lane int, sp space, addr, n uint64, write bool) ([]byte, *Region, *Trap) {
	if sp == spaceGeneric {
		sp = spaceGlobal
		if addr >= windowShared {
			switch addr >> 56 << 56 {
			case windowShared:
				sp = spaceShared
			case windowLocal:
				sp = spaceLocal
			case windowParam:
				sp = spaceParam
			}
			if sp != spaceGlobal {
				addr &= 1<<56 - 1
			}
		}
	}
	if addr&(n-1) != 0 {
		return nil, nil, r.memoryTrap(w, in, lane, sp, addr, int(n), ErrMisaligned, "")
	}
	var mem []byte
	switch sp {
	case spaceGlobal:
		g := r.region(addr)
		if g == nil {
			return nil, nil, r.memoryTrap(w, in, lane, sp, addr, int(n), ErrOutOfBounds, "no memory there")
		}
		off := addr - g.Base
		if n > uint64(len(g.Data))-off {
			return nil, nil, r.memoryTrap(w, in, lane, sp, addr, int(n), ErrOutOfBounds,
				fmt.Sprintf("the region ends at %#x", g.Base+uint64(len(g.Data))))
		}
		if write && g.ReadOnly {
			return nil, nil, r.memoryTrap(w, in, lane, sp, addr, int(n), ErrReadOnly, "")
		}
		return g.Data[off : off+n : off+n], g, nil
	case spaceShared:
		mem = r.cur.shared
	case spaceLocal:
		mem = w.local[lane*r.k.local : (lane+1)*r.k.local]
	case spaceParam:
		mem = r.params
		if write {
			return nil, nil, r.memoryTrap(w, in, lane, sp, addr, int(n), ErrReadOnly, "")
		}
	}
	if size := uint64(len(mem)); addr >= size || n > size-addr {
		return nil, nil, r.memoryTrap(w, in, lane, sp, addr, int(n), ErrOutOfBounds, fmt.Sprintf("the space has %d bytes", size))
	}
	return mem[addr : addr+n : addr+n], nil, nil
}

func (r *Run) accessed(in *inst, addr, n uint64, write bool) {
	if r.l.Accessed != nil && in.flags&flagStrong == 0 {
		r.l.Accessed(addr, n, write)
	}
}

// ascending reports whether lane i accesses a[0]+i*n for every lane.
func ascending(a *lanes, n uint64) bool {
	at := a[0]
	for i := 1; i < warpSize; i++ {
		if at += n; a[i] != at {
			return false
		}
	}
	return true
}

func uniform(a *lanes) bool {
	diff := uint64(0)
	for i := 1; i < warpSize; i++ {
		diff |= a[i] ^ a[0]
	}
	return diff == 0
}

const allLanes = ^uint32(0)

func (in *inst) overGlobal() bool { return in.space == spaceGlobal || in.space == spaceGeneric }

func (r *Run) load(w *warp, in *inst, m uint32) error {
	a, n := &w.regs[in.a], uint64(in.size)*uint64(in.vec)
	strong := in.flags&flagStrong != 0
	if strong {
		w.watch.sees()
	}
	if first := a[0] + uint64(in.imm); m == allLanes && !strong && !w.watch.on && in.overGlobal() && first&(n-1) == 0 {
		if uniform(a) {
			if p, g := r.whole(first, n); p != nil {
				r.read += n * uint64(g.Scale)
				r.count.loaded(sectors{n: spanned(first, n)})
				r.accessed(in, first, n, false)
				for k := range int(in.vec) {
					w.regs[in.elems[k]].fill(in.extend(loadLE(p[k*int(in.size):], int(in.size))))
				}
				return nil
			}
		} else if ascending(a, n) {
			if p, g := r.whole(first, warpSize*n); p != nil {
				r.read += warpSize * n * uint64(g.Scale)
				r.count.loaded(sectors{n: spanned(first, warpSize*n)})
				r.accessed(in, first, warpSize*n, false)
				loadAscending(w, in, p)
				return nil
			}
		}
	}
	var touched sectors
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		p, g, t := r.at(w, in, lane, in.space, a[lane]+uint64(in.imm), n, false)
		if t != nil {
			return t
		}
		if g != nil {
			r.read += n * uint64(g.Scale)
			touched.touch(a[lane] + uint64(in.imm))
			r.accessed(in, a[lane]+uint64(in.imm), n, false)
			if w.watch.on {
				w.watch.see(in, a[lane]+uint64(in.imm), p)
			}
		}
		for k := range int(in.vec) {
			q := p[k*int(in.size):]
			if strong {
				w.regs[in.elems[k]][lane] = in.extend(loadStrong(q, int(in.size)))
			} else {
				w.regs[in.elems[k]][lane] = in.extend(loadLE(q, int(in.size)))
			}
		}
	}
	r.count.loaded(touched)
	return nil
}

// extend makes a loaded value as wide as its register.
func (in *inst) extend(v uint64) uint64 {
	if in.flags&flagSigned != 0 {
		v = uint64(sext(v, in.sh)) & in.mask
	}
	return v
}

func loadAscending(w *warp, in *inst, p []byte) {
	size, step := int(in.size), int(in.size)*int(in.vec)
	for k := range int(in.vec) {
		d, q := &w.regs[in.elems[k]], p[k*size:]
		switch {
		case in.flags&flagSigned != 0 || size < 4:
			for i := range d {
				d[i] = in.extend(loadLE(q[i*step:], size))
			}
		case size == 4:
			for i := range d {
				d[i] = uint64(binary.LittleEndian.Uint32(q[i*step:]))
			}
		default:
			for i := range d {
				d[i] = binary.LittleEndian.Uint64(q[i*step:])
			}
		}
	}
}

func (r *Run) loadParam(w *warp, in *inst, m uint32) error {
	a, n := &w.regs[in.a], uint64(in.size)*uint64(in.vec)
	if m == allLanes && uniform(a) {
		p, _, t := r.at(w, in, 0, in.space, a[0]+uint64(in.imm), n, false)
		if t != nil {
			return t
		}
		for k := range int(in.vec) {
			w.regs[in.elems[k]].fill(in.extend(loadLE(p[k*int(in.size):], int(in.size))))
		}
		return nil
	}
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		p, _, t := r.at(w, in, lane, in.space, a[lane]+uint64(in.imm), n, false)
		if t != nil {
			return t
		}
		for k := range int(in.vec) {
			w.regs[in.elems[k]][lane] = in.extend(loadLE(p[k*int(in.size):], int(in.size)))
		}
	}
	return nil
}

func (r *Run) store(w *warp, in *inst, m uint32) error {
	a, n := &w.regs[in.a], uint64(in.size)*uint64(in.vec)
	if in.space != spaceLocal {
		r.writes++
	}
	if in.flags&flagStrong != 0 {
		w.watch.sees()
	}
	w.watch.impure()
	if first := a[0] + uint64(in.imm); m == allLanes && in.overGlobal() && first&(n-1) == 0 && ascending(a, n) {
		if p, g := r.whole(first, warpSize*n); p != nil && !g.ReadOnly {
			r.written += warpSize * n * uint64(g.Scale)
			r.count.stored(sectors{n: spanned(first, warpSize*n)}, m)
			r.accessed(in, first, warpSize*n, true)
			storeAscending(w, in, p)
			return nil
		}
	}
	var touched sectors
	all, strong := m, in.flags&flagStrong != 0
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		p, g, t := r.at(w, in, lane, in.space, a[lane]+uint64(in.imm), n, true)
		if t != nil {
			return t
		}
		if g != nil {
			r.written += n * uint64(g.Scale)
			touched.touch(a[lane] + uint64(in.imm))
			r.accessed(in, a[lane]+uint64(in.imm), n, true)
		}
		for k := range int(in.vec) {
			v := w.regs[in.elems[k]][lane]
			if strong {
				storeStrong(p[k*int(in.size):], int(in.size), v)
			} else {
				storeLE(p[k*int(in.size):], int(in.size), v)
			}
		}
	}
	r.count.stored(touched, all)
	return nil
}

// storeAscending writes all lanes into the bytes that they cover together.
func storeAscending(w *warp, in *inst, p []byte) {
	size, step := int(in.size), int(in.size)*int(in.vec)
	all := uint64(0)
	for k := range int(in.vec) {
		if k > 0 && in.elems[k] == in.elems[k-1] {
			continue
		}
		for _, v := range w.regs[in.elems[k]] {
			all |= v
		}
	}
	if all == 0 {
		clear(p)
		return
	}
	for k := range int(in.vec) {
		s, q := &w.regs[in.elems[k]], p[k*size:]
		switch size {
		case 4:
			for i := range s {
				binary.LittleEndian.PutUint32(q[i*step:], uint32(s[i]))
			}
		case 8:
			for i := range s {
				binary.LittleEndian.PutUint64(q[i*step:], s[i])
			}
		default:
			for i := range s {
				storeLE(q[i*step:], size, s[i])
			}
		}
	}
}
