package ptx

import "math/bits"

// Integer ops on all lanes. Values are zero-extended; m is the mask of the
// width, sh is 64 minus the width, so x<<sh>>sh extends the sign.

var zeroLanes lanes

func sext(x uint64, sh uint8) int64 { return int64(x<<(sh&63)) >> (sh & 63) }

// blend copies the lanes of m.
func blend(d, s *lanes, m uint32) {
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = s[i]
	}
}

func add(d, a, b *lanes, m uint64) {
	for i := range d {
		d[i] = (a[i] + b[i]) & m
	}
}

func sub(d, a, b *lanes, m uint64) {
	for i := range d {
		d[i] = (a[i] - b[i]) & m
	}
}

func mul(d, a, b *lanes, m uint64) {
	for i := range d {
		d[i] = a[i] * b[i] & m
	}
}

func mad(d, a, b, c *lanes, m uint64) {
	for i := range d {
		d[i] = (a[i]*b[i] + c[i]) & m
	}
}

func mulWideU(d, a, b *lanes) {
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func mulWideS(d, a, b *lanes, sh uint8, m uint64) {
	for i := range d {
		d[i] = uint64(sext(a[i], sh)*sext(b[i], sh)) & m
	}
}

func madWideS(d, a, b, c *lanes, sh uint8, m uint64) {
	for i := range d {
		d[i] = (uint64(sext(a[i], sh)*sext(b[i], sh)) + c[i]) & m
	}
}

func mulHiU(d, a, b *lanes, sh uint8) {
	if sh == 0 {
		for i := range d {
			d[i], _ = bits.Mul64(a[i], b[i])
		}
		return
	}
	for i := range d {
		d[i] = a[i] * b[i] >> (64 - sh)
	}
}

func mulHiS(d, a, b *lanes, sh uint8, m uint64) {
	if sh == 0 {
		for i := range d {
			hi, _ := bits.Mul64(a[i], b[i])
			hi -= b[i]&uint64(int64(a[i])>>63) + a[i]&uint64(int64(b[i])>>63)
			d[i] = hi
		}
		return
	}
	for i := range d {
		d[i] = uint64(sext(a[i], sh)*sext(b[i], sh)>>(64-sh)) & m
	}
}

// Division by zero gives all ones and leaves the dividend as the remainder, as
// the hardware's division sequence does; PTX calls it unspecified.

func divU(d, a, b *lanes, m uint64) {
	for i := range d {
		if b[i] == 0 {
			d[i] = m
		} else {
			d[i] = a[i] / b[i]
		}
	}
}

func remU(d, a, b *lanes) {
	for i := range d {
		if b[i] == 0 {
			d[i] = a[i]
		} else {
			d[i] = a[i] % b[i]
		}
	}
}

func divS(d, a, b *lanes, sh uint8, m uint64) {
	for i := range d {
		if b[i] == 0 {
			d[i] = m
		} else {
			d[i] = uint64(sext(a[i], sh)/sext(b[i], sh)) & m
		}
	}
}

func remS(d, a, b *lanes, sh uint8, m uint64) {
	for i := range d {
		if b[i] == 0 {
			d[i] = a[i]
		} else {
			d[i] = uint64(sext(a[i], sh)%sext(b[i], sh)) & m
		}
	}
}

func minU(d, a, b *lanes) {
	for i := range d {
		d[i] = min(a[i], b[i])
	}
}

func maxU(d, a, b *lanes) {
	for i := range d {
		d[i] = max(a[i], b[i])
	}
}

func minS(d, a, b *lanes, sh uint8) {
	for i := range d {
		x := a[i]
		if sext(b[i], sh) < sext(x, sh) {
			x = b[i]
		}
		d[i] = x
	}
}

func maxS(d, a, b *lanes, sh uint8) {
	for i := range d {
		x := a[i]
		if sext(b[i], sh) > sext(x, sh) {
			x = b[i]
		}
		d[i] = x
	}
}

func neg(d, a *lanes, m uint64) {
	for i := range d {
		d[i] = -a[i] & m
	}
}

func abs(d, a *lanes, sh uint8, m uint64) {
	for i := range d {
		x := sext(a[i], sh)
		d[i] = uint64(max(x, -x)) & m
		if x == -x { // zero, or the 64-bit minimum
			d[i] = a[i]
		}
	}
}

func sadU(d, a, b, c *lanes, m uint64) {
	for i := range d {
		d[i] = (c[i] + max(a[i], b[i]) - min(a[i], b[i])) & m
	}
}

func sadS(d, a, b, c *lanes, sh uint8, m uint64) {
	for i := range d {
		x, y := sext(a[i], sh), sext(b[i], sh)
		d[i] = (c[i] + uint64(max(x, y)) - uint64(min(x, y))) & m
	}
}

// carryIn returns the condition code for an op that reads it.
func (w *warp) carryIn(in *inst) uint32 {
	if in.flags&flagCarryIn == 0 {
		return 0
	}
	return w.carry
}

func (w *warp) carryOut(in *inst, m, out uint32) {
	if in.flags&flagCarryOut != 0 {
		w.carry = w.carry&^m | out&m
	}
}

func addCarry(d, a, b *lanes, in uint32, sh uint8, m uint64) (out uint32) {
	for i := range d {
		sum, carry := bits.Add64(a[i], b[i], uint64(in>>i&1))
		if sh != 0 {
			carry = sum >> (64 - sh) & 1
		}
		d[i] = sum & m
		out |= uint32(carry) << i
	}
	return out
}

// subBorrow keeps a borrow in the condition code, as subc wants it.
func subBorrow(d, a, b *lanes, in uint32, m uint64) (out uint32) {
	for i := range d {
		diff, borrow := bits.Sub64(a[i], b[i], uint64(in>>i&1))
		d[i] = diff & m
		out |= uint32(borrow) << i
	}
	return out
}

// convert goes from one integer type to another, and into a wider register.
func convert(d, a *lanes, in *inst) {
	from, to := in.sh&63, in.sh2&63
	switch {
	case in.flags == 0: // zero-extension or truncation
		m := ^uint64(0) >> max(from, to)
		for i := range d {
			d[i] = a[i] & m
		}
	case in.flags == flagSigned|flagSigned2 && to == 0: // sign-extension to 64 bits
		for i := range d {
			d[i] = uint64(int64(a[i]<<from) >> from)
		}
	default:
		for i := range d {
			x := a[i] << from
			if in.flags&flagSigned != 0 {
				x = uint64(int64(x) >> from)
			} else {
				x >>= from
			}
			x <<= to
			if in.flags&flagSigned2 != 0 {
				x = uint64(int64(x) >> to)
			} else {
				x >>= to
			}
			d[i] = x & in.mask
		}
	}
}
