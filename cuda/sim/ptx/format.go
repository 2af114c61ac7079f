package ptx

import "math"

// format is a floating-point format of fewer bits than float64 has, which holds
// each of its values.
type format struct {
	exp, man uint // bits of exponent and mantissa
	bias     int  // of the exponent
	shift    uint // the lowest bit's place in a register
	inf      bool // it has infinities
	nan      uint64
	max      uint64 // the bits of the largest finite value, unshifted
	unsigned bool
}

// The formats (section "Alternate Floating-Point Data Formats"). Those of six and
// fewer bits have neither infinity nor NaN: NaN becomes the largest value.
const (
	fmtF64 = iota // not in formats
	fmtF32
	fmtF16
	fmtBF16
	fmtTF32
	fmtE4M3
	fmtE5M2
	fmtE2M3
	fmtE3M2
	fmtE2M1
	fmtUE8M0
	fmtInt // not in formats
)

var formats = [...]format{
	fmtF32:   {exp: 8, man: 23, bias: 127, inf: true, nan: nan32, max: 0x7f7fffff},
	fmtF16:   {exp: 5, man: 10, bias: 15, inf: true, nan: 0x7fff, max: 0x7bff},
	fmtBF16:  {exp: 8, man: 7, bias: 127, inf: true, nan: 0x7fff, max: 0x7f7f},
	fmtTF32:  {exp: 8, man: 10, bias: 127, shift: 13, inf: true, nan: 0x3ffff, max: 0x3fbff},
	fmtE4M3:  {exp: 4, man: 3, bias: 7, nan: 0x7f, max: 0x7e},
	fmtE5M2:  {exp: 5, man: 2, bias: 15, inf: true, nan: 0x7f, max: 0x7b},
	fmtE2M3:  {exp: 2, man: 3, bias: 1, nan: 0x1f, max: 0x1f},
	fmtE3M2:  {exp: 3, man: 2, bias: 3, nan: 0x1f, max: 0x1f},
	fmtE2M1:  {exp: 2, man: 1, bias: 1, nan: 0x7, max: 0x7},
	fmtUE8M0: {exp: 8, bias: 127, nan: 0xff, max: 0xfe, unsigned: true},
}

// formatOf returns the format of one element of a type, and how many there are.
func formatOf(t dtype) (f, n uint8) {
	switch t.class {
	case classFloat:
		if t.bits == 32 {
			return fmtF32, 1
		}
		return fmtF64, 1
	case classF16:
		return fmtF16, 1
	case classBF16:
		return fmtBF16, 1
	case classTF32:
		return fmtTF32, 1
	case classF16x2:
		return fmtF16, 2
	case classBF16x2:
		return fmtBF16, 2
	case classF32x2:
		return fmtF32, 2
	case classE4M3x2:
		return fmtE4M3, 2
	case classE5M2x2:
		return fmtE5M2, 2
	case classE2M3x2:
		return fmtE2M3, 2
	case classE3M2x2:
		return fmtE3M2, 2
	case classE2M1x2:
		return fmtE2M1, 2
	case classUE8M0x2:
		return fmtUE8M0, 2
	}
	return fmtInt, 1
}

// width is the bits of one element in a packed register.
func width(f uint8) uint {
	switch f {
	case fmtF64:
		return 64
	case fmtF32, fmtTF32:
		return 32
	case fmtF16, fmtBF16:
		return 16
	case fmtE2M1:
		return 4
	}
	return 8
}

// decode returns the value of the bits x in format f.
func decode(x uint64, f uint8) float64 {
	switch f {
	case fmtF64:
		return math.Float64frombits(x)
	case fmtF32:
		return float64(math.Float32frombits(uint32(x)))
	case fmtBF16:
		return float64(math.Float32frombits(uint32(x) << 16))
	}
	d := &formats[f]
	x >>= d.shift
	man := x & (1<<d.man - 1)
	exp := int(x >> d.man & (1<<d.exp - 1))
	if d.unsigned {
		if x&0xff == d.nan {
			return math.NaN()
		}
		return math.Ldexp(1, exp-d.bias)
	}
	v := 0.0
	abs := x & (1<<(d.exp+d.man) - 1)
	switch {
	case d.inf && exp == 1<<d.exp-1:
		if v = math.Inf(1); man != 0 {
			return math.NaN()
		}
	case !d.inf && d.nan != d.max && abs == d.nan:
		return math.NaN()
	case exp == 0:
		v = math.Ldexp(float64(man), 1-d.bias-int(d.man))
	default:
		v = math.Ldexp(float64(man|1<<d.man), exp-d.bias-int(d.man))
	}
	if x>>(d.exp+d.man)&1 != 0 {
		v = -v
	}
	return v
}

// rounding is how a result that a format does not hold becomes one that it does.
type rounding uint8

const (
	roundNearest rounding = iota // ties to even
	roundZero
	roundDown
	roundUp
	roundAway // to nearest, ties away from zero
)

var roundingNames = map[string]rounding{"rn": roundNearest, "rz": roundZero, "rm": roundDown, "rp": roundUp, "rna": roundAway}

// up reports whether the magnitude n+frac, 0 < frac < 1 or 0, is rounded to n+1.
func (r rounding) up(negative bool, odd bool, frac float64) bool {
	switch r {
	case roundNearest:
		return frac > 0.5 || frac == 0.5 && odd
	case roundAway:
		return frac >= 0.5
	case roundDown:
		return negative && frac > 0
	case roundUp:
		return !negative && frac > 0
	}
	return false
}

// encode returns the bits in format f of v. finite makes what is too large the
// largest finite value.
func encode(v float64, f uint8, r rounding, finite bool) uint64 {
	switch {
	case f == fmtF64:
		return bits64(v)
	case f == fmtF32 && r == roundNearest && !finite:
		return bits32(float32(v))
	}
	d := &formats[f]
	if v != v {
		return d.nan << d.shift
	}
	negative := math.Signbit(v)
	sign := uint64(0)
	if negative {
		if d.unsigned { // a scale: its sign is dropped
			negative = false
		} else {
			sign = 1 << (d.exp + d.man)
		}
	}
	a := math.Abs(v)
	if math.IsInf(a, 1) {
		switch {
		case finite || d.max == d.nan:
			return (sign | d.max) << d.shift
		case d.inf:
			return (sign | (1<<d.exp-1)<<d.man) << d.shift
		}
		return (sign | d.nan) << d.shift
	}
	least := 1 - d.bias
	if d.unsigned {
		least = -d.bias
	}
	if a == 0 {
		return sign << d.shift
	}
	_, e := math.Frexp(a) // a = x * 2^e, x from 0.5
	e = max(e-1, least)
	x := math.Ldexp(a, int(d.man)-e)
	whole := math.Floor(x)
	n := uint64(whole)
	if r.up(negative, n&1 != 0, x-whole) {
		n++
	}
	if d.unsigned {
		n = uint64(e+d.bias) + n - 1
		if x < 1 && n > d.max { // below the least, rounded to zero
			n = 0
		}
	} else {
		n += uint64(e-least) << d.man // a carry goes on into the exponent
	}
	if n > d.max {
		if finite || d.max == d.nan || r == roundZero || r == roundDown && !negative || r == roundUp && negative {
			n = d.max
		} else if d.inf {
			n = (1<<d.exp - 1) << d.man
		} else {
			n = d.nan
		}
	}
	return (sign | n) << d.shift
}
