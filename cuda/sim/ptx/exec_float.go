package ptx

import "math"

// Floating-point operations of float1 and float2.
const (
	floatNone = iota
	floatAdd
	floatSub
	floatMul
	floatDiv
	floatMin
	floatMax
	floatNeg
	floatAbs
	floatSqrt
	floatRcp
	floatFma
	floatCopysign
	// Approximations, here the nearest value.
	floatDivApprox
	floatRsqrt
	floatSin
	floatCos
	floatLg2
	floatEx2
	floatTanh
	floatRcpTop // rcp and rsqrt of which the upper half of a 64-bit result counts
	floatRsqrtTop
)

// Roundings of cvt. The plain ones, to nearest even, are zero.
var roundings = map[string]uint8{"": 0, "rn": 0, "rni": 1, "rzi": 2, "rmi": 3, "rpi": 4}

// floatCompares number setp's comparisons of floats: bit 0 less, bit 1 equal,
// bit 2 greater, bit 3 unordered.
var floatCompares = map[string]uint8{"lt": 1, "eq": 2, "le": 3, "gt": 4, "ne": 5, "ge": 6, "num": 7,
	"nan": 8, "ltu": 9, "equ": 10, "leu": 11, "gtu": 12, "neu": 13, "geu": 14}

const (
	nan32 = 0x7fffffff
	nan64 = 0x7ff8000000000000
)

func f32(x uint64) float32 { return math.Float32frombits(uint32(x)) }
func f64(x uint64) float64 { return math.Float64frombits(x) }

// bits32 and bits64 make one NaN of all, the one that the hardware makes.
func bits32(f float32) uint64 {
	if f != f {
		return nan32
	}
	return uint64(math.Float32bits(f))
}

func bits64(f float64) uint64 {
	if f != f {
		return nan64
	}
	return math.Float64bits(f)
}

func setFloat(a, b *lanes, which, sh uint8) (set uint32) {
	for i := range a {
		x, y := f64(a[i]), f64(b[i])
		if sh != 0 {
			x, y = float64(f32(a[i])), float64(f32(b[i]))
		}
		rel := uint8(8)
		switch {
		case x < y:
			rel = 1
		case x == y:
			rel = 2
		case x > y:
			rel = 4
		}
		if which&rel != 0 {
			set |= 1 << i
		}
	}
	return set
}

func float1(d, a *lanes, what, sh uint8) {
	sign := uint64(1) << (63 - sh)
	for i := range d {
		switch what {
		case floatNeg:
			d[i] = a[i] ^ sign
		case floatAbs:
			d[i] = a[i] &^ sign
		case floatSqrt:
			if sh != 0 {
				d[i] = bits32(float32(math.Sqrt(float64(f32(a[i])))))
			} else {
				d[i] = bits64(math.Sqrt(f64(a[i])))
			}
		case floatRcp:
			if sh != 0 {
				d[i] = bits32(1 / f32(a[i]))
			} else {
				d[i] = bits64(1 / f64(a[i]))
			}
		}
	}
}

func float2(d, a, b *lanes, what, sh uint8) {
	if sh != 0 {
		for i := range d {
			d[i] = bits32(binary32(f32(a[i]), f32(b[i]), what))
		}
		return
	}
	for i := range d {
		d[i] = bits64(binary64(f64(a[i]), f64(b[i]), what))
	}
}

func binary32(x, y float32, what uint8) float32 {
	switch what {
	case floatAdd:
		return x + y
	case floatSub:
		return x - y
	case floatMul:
		return x * y
	case floatDiv:
		return x / y
	}
	return float32(binary64(float64(x), float64(y), what))
}

func binary64(x, y float64, what uint8) float64 {
	switch what {
	case floatAdd:
		return x + y
	case floatSub:
		return x - y
	case floatMul:
		return x * y
	case floatDiv:
		return x / y
	}
	// min and max give the other operand where one is NaN.
	switch {
	case x != x:
		return y
	case y != y:
		return x
	case what == floatMin:
		return math.Min(x, y)
	}
	return math.Max(x, y)
}

func float3(d, a, b, c *lanes, sh uint8) {
	for i := range d {
		if sh != 0 {
			d[i] = bits32(fma32(f32(a[i]), f32(b[i]), f32(c[i])))
		} else {
			d[i] = bits64(math.FMA(f64(a[i]), f64(b[i]), f64(c[i])))
		}
	}
}

// fma32 rounds once: the product is exact in double precision, and the sum is
// rounded to odd there.
func fma32(x, y, z float32) float32 {
	return float32(exactAdd(float64(x)*float64(y), float64(z)).odd())
}

// convertFloat is cvt with a float on either side. Integers are clamped to
// their range, and NaN becomes 0 (section "cvt").
func convertFloat(d, a *lanes, in *inst) {
	for i := range d {
		d[i] = convertOne(a[i], in) & in.mask
	}
}

func convertOne(x uint64, in *inst) uint64 {
	to64 := in.sh2 == 0
	if in.flags&flagFloat == 0 {
		x &= ^uint64(0) >> in.sh
		switch signed := in.flags&flagSigned != 0; {
		case signed && to64:
			return bits64(float64(sext(x, in.sh)))
		case signed:
			return bits32(float32(sext(x, in.sh)))
		case to64:
			return bits64(float64(x))
		}
		return bits32(float32(x))
	}
	f := f64(x)
	if in.sh != 0 {
		f = float64(f32(x))
	}
	switch in.sub {
	case 1:
		f = math.RoundToEven(f)
	case 2:
		f = math.Trunc(f)
	case 3:
		f = math.Floor(f)
	case 4:
		f = math.Ceil(f)
	}
	if in.flags&flagFloat2 != 0 {
		if to64 {
			return bits64(f)
		}
		return bits32(float32(f))
	}
	return clampInt(f, 64-in.sh2, in.flags&flagSigned2 != 0)
}

// clampInt makes an integer of so many bits of a whole number.
func clampInt(f float64, width uint8, signed bool) uint64 {
	lo, hi := 0.0, math.Ldexp(1, int(width))
	least, most := uint64(0), mask(width)
	if signed {
		hi = math.Ldexp(1, int(width)-1)
		lo = -hi
		least, most = ^uint64(0)<<(width-1), mask(width-1)
	}
	switch {
	case f != f:
		return 0
	case f < lo:
		return least
	case f >= hi:
		return most
	case signed:
		return uint64(int64(f))
	}
	return uint64(f)
}
