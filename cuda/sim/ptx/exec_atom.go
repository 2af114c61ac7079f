package ptx

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// storeStrong writes a word in one piece, because others may read it meanwhile.
func storeStrong(p []byte, size int, v uint64) {
	switch at := unsafe.Pointer(unsafe.SliceData(p)); {
	case size == 4 && uintptr(at)%4 == 0:
		atomic.StoreUint32((*uint32)(at), uint32(v))
	case size == 8 && uintptr(at)%8 == 0:
		atomic.StoreUint64((*uint64)(at), v)
	default:
		storeLE(p, size, v)
	}
}

// exchange puts v in the place of old, unless the host has written there meanwhile.
func exchange(p []byte, size int, old, v uint64) bool {
	switch at := unsafe.Pointer(unsafe.SliceData(p)); {
	case size == 4 && uintptr(at)%4 == 0:
		return atomic.CompareAndSwapUint32((*uint32)(at), uint32(old), uint32(v))
	case size == 8 && uintptr(at)%8 == 0:
		return atomic.CompareAndSwapUint64((*uint64)(at), old, v)
	}
	storeLE(p, size, v)
	return true
}

func (r *Run) atomic(w *warp, in *inst, m uint32) error {
	a, b, c := &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	size := int(in.size)
	var touched sectors
	all := m
	w.watch.sees()
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		addr := a[lane] + uint64(in.imm)
		p, g, t := r.at(w, in, lane, in.space, addr, uint64(size), true)
		if t != nil {
			return t
		}
		if g != nil {
			r.read += uint64(size) * uint64(g.Scale)
			r.written += uint64(size) * uint64(g.Scale)
			touched.touch(addr)
		}
		var old, v uint64
		for {
			old = loadStrong(p, size)
			v = in.atomicValue(old, b[lane], c[lane], g != nil) & mask(in.size*8)
			if v == old || exchange(p, size, old, v) {
				break
			}
		}
		if v != old {
			r.writes++
			w.watch.impure()
		} else if g != nil && w.watch.on {
			w.watch.see(in, addr, p)
		}
		w.regs[in.d][lane] = old
	}
	r.count.loaded(touched)
	r.count.stored(touched, all)
	return nil
}

// atomicValue is what an atomic operation leaves in memory.
func (in *inst) atomicValue(old, x, y uint64, global bool) uint64 {
	switch in.sub {
	case atomAdd:
		return old + x
	case atomMinU:
		return min(old, x)
	case atomMaxU:
		return max(old, x)
	case atomMinS:
		if sext(x, in.sh) < sext(old, in.sh) {
			return x
		}
		return old
	case atomMaxS:
		if sext(x, in.sh) > sext(old, in.sh) {
			return x
		}
		return old
	case atomAnd:
		return old & x
	case atomOr:
		return old | x
	case atomXor:
		return old ^ x
	case atomExch:
		return x
	case atomCas:
		if old == x {
			return y
		}
		return old
	case atomInc:
		if old >= x {
			return 0
		}
		return old + 1
	case atomDec:
		if old == 0 || old > x {
			return x
		}
		return old - 1
	}
	add := inst{sub: floatAdd, fmt: in.fmt, flags: in.flags & flagPair}
	switch in.sub {
	case atomMinF:
		add.sub = floatMin
	case atomMaxF:
		add.sub = floatMax
	}
	if in.fmt == fmtF32 && global { // section "atom": subnormal numbers are flushed there
		add.flags |= flagFtz
	}
	if in.flags&flagPair == 0 {
		return add.float(old, x, 0)
	}
	w := width(in.fmt)
	m := uint64(1)<<w - 1
	return add.float(old&m, x&m, 0) | add.float(old>>w, x>>w, 0)<<w
}
