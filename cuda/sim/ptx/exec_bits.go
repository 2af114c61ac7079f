package ptx

import "math/bits"

func and(d, a, b *lanes) {
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or(d, a, b *lanes) {
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor(d, a, b *lanes) {
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func not(d, a *lanes, m uint64) {
	for i := range d {
		d[i] = ^a[i] & m
	}
}

func cnot(d, a *lanes) {
	for i := range d {
		if a[i] == 0 {
			d[i] = 1
		} else {
			d[i] = 0
		}
	}
}

// Shifts by the width or more give zero, or the sign: counts are clamped.

func shl(d, a, b *lanes, m uint64) {
	for i := range d {
		d[i] = a[i] << b[i] & m
	}
}

func shrU(d, a, b *lanes) {
	for i := range d {
		d[i] = a[i] >> b[i]
	}
}

func shrS(d, a, b *lanes, sh uint8, m uint64) {
	for i := range d {
		d[i] = uint64(sext(a[i], sh)>>b[i]) & m
	}
}

func funnelCount(c uint64, clamp bool) uint64 {
	if clamp {
		return min(c, 32)
	}
	return c & 31
}

func shfL(d, a, b, c *lanes, clamp bool) {
	for i := range d {
		d[i] = (b[i]<<32 | a[i]) << funnelCount(c[i], clamp) >> 32
	}
}

func shfR(d, a, b, c *lanes, clamp bool) {
	for i := range d {
		d[i] = (b[i]<<32 | a[i]) >> funnelCount(c[i], clamp) & 0xffffffff
	}
}

// lop3 looks each bit triple up in an eight-bit table.
func lop3(d, a, b, c *lanes, table uint8) {
	for i := range d {
		v := uint64(0)
		for k := range uint8(8) {
			if table>>k&1 == 0 {
				continue
			}
			x, y, z := a[i], b[i], c[i]
			if k&4 == 0 {
				x = ^x
			}
			if k&2 == 0 {
				y = ^y
			}
			if k&1 == 0 {
				z = ^z
			}
			v |= x & y & z
		}
		d[i] = v & 0xffffffff
	}
}

// prmt picks four of the eight bytes of b:a.
func prmt(d, a, b, c *lanes, mode uint8) {
	for i := range d {
		all, sel := b[i]<<32|a[i], c[i]
		if mode != 0 {
			sel = prmtSelector(mode, sel&3)
		}
		v := uint64(0)
		for k := range 4 {
			s := sel >> (4 * k)
			x := all >> (8 * (s & 7)) & 0xff
			if s&8 != 0 { // the byte's sign, eight times
				x = uint64(int64(x<<56)>>63) & 0xff
			}
			v |= x << (8 * k)
		}
		d[i] = v
	}
}

// prmtSelector gives the selector that a mode of prmt stands for (section
// "prmt", table of the modes).
func prmtSelector(mode uint8, c uint64) uint64 {
	switch mode {
	case 1: // f4e
		return [4]uint64{0x3210, 0x4321, 0x5432, 0x6543}[c]
	case 2: // b4e
		return [4]uint64{0x5670, 0x6701, 0x7012, 0x0123}[c]
	case 3: // rc8
		return 0x1111 * c
	case 4: // ecl
		return [4]uint64{0x3210, 0x3211, 0x3222, 0x3333}[c]
	case 5: // ecr
		return [4]uint64{0x0000, 0x1110, 0x2210, 0x3210}[c]
	}
	return [4]uint64{0x1010, 0x3232, 0x1010, 0x3232}[c] // rc16
}

// bfeU and bfeS take the field of length c at position b; both are bytes.

func bfeU(d, a, b, c *lanes, sh uint8) {
	for i := range d {
		pos, length := b[i]&0xff, c[i]&0xff
		d[i] = a[i] >> pos & (1<<length - 1)
	}
}

func bfeS(d, a, b, c *lanes, sh uint8, m uint64) {
	width := uint64(64 - sh)
	for i := range d {
		pos, length := b[i]&0xff, c[i]&0xff
		if length == 0 {
			d[i] = 0
			continue
		}
		// Bits past the end are the sign: that of the field's last bit, or the
		// operand's where the field ends past it.
		x := sext(a[i], sh)
		top := min(pos+length-1, width-1)
		sign := x >> top & 1
		v := uint64(x>>min(pos, 63)) & (1<<length - 1)
		if pos+length < pos+width && length < 64 {
			v |= uint64(-sign) << length
		}
		if pos >= width {
			v = uint64(-sign)
		}
		d[i] = v & m
	}
}

// bfi puts the low bits of a into b, length of them at position c.
func bfi(d, a, b, c, l *lanes, sh uint8) {
	width := uint64(64 - sh)
	for i := range d {
		pos, length := c[i]&0xff, l[i]&0xff
		if pos >= width {
			d[i] = b[i]
			continue
		}
		field := (uint64(1)<<length - 1) << pos & (^uint64(0) >> sh)
		d[i] = b[i]&^field | a[i]<<pos&field
	}
}

func popc(d, a *lanes) {
	for i := range d {
		d[i] = uint64(bits.OnesCount64(a[i]))
	}
}

func clz(d, a *lanes, sh uint8) {
	for i := range d {
		d[i] = uint64(bits.LeadingZeros64(a[i])) - uint64(sh)
	}
}

func brev(d, a *lanes, sh uint8) {
	for i := range d {
		d[i] = bits.Reverse64(a[i]) >> sh
	}
}

// findU finds the highest one, findS the highest bit that is not the sign; all
// ones where there is none. shift: as the distance to the top bit.

func findU(d, a *lanes, sh uint8, shift bool) {
	for i := range d {
		d[i] = find(a[i], sh, shift)
	}
}

func findS(d, a *lanes, sh uint8, m uint64, shift bool) {
	for i := range d {
		x := a[i]
		if sext(x, sh) < 0 {
			x = ^x & m
		}
		d[i] = find(x, sh, shift)
	}
}

func find(x uint64, sh uint8, shift bool) uint64 {
	if x == 0 {
		return 0xffffffff
	}
	at := uint64(63 - bits.LeadingZeros64(x))
	if shift {
		return uint64(63-sh) - at
	}
	return at
}

func pack(d *lanes, regs []lanes, in *inst) {
	e := [4]*lanes{}
	for k := range e {
		e[k] = &regs[in.elems[k]]
	}
	if in.vec == 2 {
		for i := range d {
			d[i] = e[0][i] | e[1][i]<<in.sh
		}
		return
	}
	for i := range d {
		d[i] = e[0][i] | e[1][i]<<16 | e[2][i]<<32 | e[3][i]<<48
	}
}

func unpack(d, a *lanes, sh uint8, m uint64) {
	for i := range d {
		d[i] = a[i] >> sh & m
	}
}

func setEq(a, b *lanes) (set uint32) {
	for i := range a {
		x := a[i] ^ b[i]
		set |= uint32(^(x|-x)>>63) << i
	}
	return set
}

func setLtU(a, b *lanes) (set uint32) {
	for i := range a {
		_, borrow := bits.Sub64(a[i], b[i], 0)
		set |= uint32(borrow) << i
	}
	return set
}

func setLtS(a, b *lanes, sh uint8) (set uint32) {
	const top = 1 << 63
	for i := range a {
		_, borrow := bits.Sub64(a[i]<<sh^top, b[i]<<sh^top, 0)
		set |= uint32(borrow) << i
	}
	return set
}

func selp(d, a, b *lanes, p uint32) {
	for i := range d {
		take := -uint64(p >> i & 1)
		d[i] = a[i]&take | b[i]&^take
	}
}

func predSet(d *lanes, p uint32, m uint64) {
	for i := range d {
		d[i] = -uint64(p>>i&1) & m
	}
}
