package ptx

import "math/bits"

func addSat(d, a, b *lanes, negate bool) {
	for i := range d {
		y := int64(int32(b[i]))
		if negate {
			y = -y
		}
		d[i] = uint64(uint32(min(max(int64(int32(a[i]))+y, -1<<31), 1<<31-1)))
	}
}

// Operations on the 16-bit halves of a register.
const (
	halfAdd = iota
	halfSub
	halfMin
	halfMax
)

func halves(d, a, b *lanes, in *inst) {
	for i := range d {
		d[i] = in.half(a[i]&0xffff, b[i]&0xffff) | in.half(a[i]>>16, b[i]>>16)<<16
	}
}

func (in *inst) half(x, y uint64) uint64 {
	signed := in.flags&flagSigned != 0
	less := x < y
	if signed {
		less = int16(x) < int16(y)
	}
	var v uint64
	switch in.sub {
	case halfAdd:
		v = x + y
	case halfSub:
		v = x - y
	case halfMin:
		if v = y; less {
			v = x
		}
	case halfMax:
		if v = x; less {
			v = y
		}
	}
	if in.flags&flagRelu != 0 && int16(v) < 0 {
		v = 0
	}
	return v & 0xffff
}

// mul24 is bits 0 to 31 or 16 to 47 of the product of the operands' low 24 bits.
func mul24(d, a, b *lanes, part uint8, signed bool) {
	for i := range d {
		if signed {
			d[i] = uint64(uint32(sext(a[i], 40) * sext(b[i], 40) >> part))
		} else {
			d[i] = uint64(uint32(a[i] & 0xffffff * (b[i] & 0xffffff) >> part))
		}
	}
}

// What dot takes of its operands: four bytes of each, or two halves of the first
// and two bytes of the second.
const (
	dotFour = iota
	dotLow
	dotHigh
)

func dot(d, a, b, c *lanes, in *inst) {
	element := func(x uint64, at, width uint, signed uint32) int64 {
		sh := uint8(64 - width)
		if x >>= at; in.flags&signed != 0 {
			return sext(x, sh)
		}
		return int64(x << sh >> sh)
	}
	for i := range d {
		sum := int64(c[i])
		if in.sub == dotFour {
			for at := uint(0); at < 32; at += 8 {
				sum += element(a[i], at, 8, flagSigned) * element(b[i], at, 8, flagSigned2)
			}
		} else {
			first := uint(0)
			if in.sub == dotHigh {
				first = 16
			}
			for k := range uint(2) {
				sum += element(a[i], 16*k, 16, flagSigned) * element(b[i], first+8*k, 8, flagSigned2)
			}
		}
		d[i] = uint64(uint32(sum))
	}
}

func bitMask(d, a, b *lanes, clamp bool) {
	for i := range d {
		at, n := a[i], b[i]
		if clamp {
			at, n = min(at, 32), min(n, 32)
		} else {
			at, n = at&31, n&31
		}
		d[i] = (1<<n - 1) << at & 0xffffffff
	}
}

func szext(d, a, b *lanes, in *inst) {
	for i := range d {
		n := b[i]
		if in.flags&flagClamp != 0 {
			n = min(n, 32)
		} else {
			n &= 31
		}
		v := a[i] & (1<<n - 1)
		if in.flags&flagSigned != 0 && n > 0 {
			v = uint64(uint32(sext(v, uint8(64-n))))
		}
		d[i] = v
	}
}

// findNth follows the pseudocode of section "fns".
func findNth(d, a, b, c *lanes) {
	for i := range d {
		x, base, offset := uint32(a[i]), b[i], int64(int32(c[i]))
		d[i] = 0xffffffff
		if base > 31 {
			continue
		}
		switch {
		case offset == 0:
			if x>>base&1 != 0 {
				d[i] = base
			}
		case offset > 0:
			for at := base; at < 32; at++ {
				if x>>at&1 != 0 {
					if offset--; offset == 0 {
						d[i] = at
						break
					}
				}
			}
		default:
			for at := int64(base); at >= 0; at-- {
				if x>>at&1 != 0 {
					if offset++; offset == 0 {
						d[i] = uint64(at)
						break
					}
				}
			}
		}
	}
}

// Reductions of redux.sync.
const (
	reduxAdd = iota
	reduxMinU
	reduxMaxU
	reduxMinS
	reduxMaxS
	reduxAnd
	reduxOr
	reduxXor
	reduxMinF
	reduxMaxF
)

// redux combines the values of the lanes of m.
func redux(a *lanes, m uint32, in *inst) uint64 {
	v, first := uint64(0), true
	for ; m != 0; m &= m - 1 {
		x := a[bits.TrailingZeros32(m)]
		if in.flags&flagXorSign != 0 { // .abs
			x &^= 1 << 31
		}
		if first {
			v, first = x, false
			continue
		}
		switch in.sub {
		case reduxAdd:
			v += x
		case reduxMinU:
			v = min(v, x)
		case reduxMaxU:
			v = max(v, x)
		case reduxMinS:
			v = uint64(min(int32(v), int32(x)))
		case reduxMaxS:
			v = uint64(max(int32(v), int32(x)))
		case reduxAnd:
			v &= x
		case reduxOr:
			v |= x
		case reduxXor:
			v ^= x
		case reduxMinF, reduxMaxF:
			n := inst{sub: floatMin, fmt: fmtF32, flags: in.flags & flagNaN}
			if in.sub == reduxMaxF {
				n.sub = floatMax
			}
			v = n.float(v, x, 0)
		}
	}
	return v & 0xffffffff
}
