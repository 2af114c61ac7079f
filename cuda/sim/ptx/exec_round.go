package ptx

import (
	"math"
	"math/big"
)

// exact is a result as its nearest float64 and the sign of what was rounded away:
// of the true value less v. That is enough to round to any format and direction.
type exact struct {
	v    float64
	rest int
}

func signOf(x float64) int {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// odd returns the value rounded to odd, which keeps all that the rounding to a
// narrower format needs to know (Boldo and Melquiond, "Emulation of a FMA and
// correctly rounded sums").
func (e exact) odd() float64 {
	b := math.Float64bits(e.v)
	if e.rest == 0 || b&1 != 0 || math.IsInf(e.v, 0) || e.v != e.v {
		return e.v
	}
	if e.v == 0 {
		return math.Copysign(math.SmallestNonzeroFloat64, float64(e.rest))
	}
	if (e.rest > 0) == (e.v > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

// round returns the bits of the value in format f.
func (e exact) round(f uint8, r rounding, finite bool) uint64 {
	if f != fmtF64 {
		return encode(e.odd(), f, r, finite)
	}
	v := e.v
	switch {
	case e.rest == 0 || v != v:
	case r == roundDown && e.rest < 0, r == roundZero && e.rest < 0 && !math.Signbit(v):
		v = math.Nextafter(v, math.Inf(-1))
	case r == roundUp && e.rest > 0, r == roundZero && e.rest > 0 && math.Signbit(v):
		v = math.Nextafter(v, math.Inf(1))
	}
	return bits64(v)
}

func exactAdd(x, y float64) exact {
	s := x + y
	if math.IsInf(s, 0) {
		if math.IsInf(x, 0) || math.IsInf(y, 0) {
			return exact{s, 0}
		}
		return exact{s, -signOf(s)}
	}
	t := s - x
	return exact{s, signOf((x - (s - t)) + (y - t))}
}

// compare returns the sign of x*y+z-v, of finite numbers.
func compare(x, y, z, v float64) int {
	b := func(x float64) *big.Float { return new(big.Float).SetFloat64(x) }
	const prec = 8 << 10 // more than any sum of products needs
	s := new(big.Float).SetPrec(prec).Mul(b(x), b(y))
	s.Add(s, b(z))
	return s.Cmp(b(v))
}

// exactFma is x*y+z. wide says that the operands have more bits than a float32
// has, so that the product is not exact.
func exactFma(x, y, z float64, wide bool) exact {
	if !wide {
		return exactAdd(x*y, z)
	}
	v := math.FMA(x, y, z)
	switch {
	case v != v || math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsInf(z, 0):
		return exact{v, 0}
	case math.IsInf(v, 0):
		return exact{v, -signOf(v)}
	}
	return exact{v, compare(x, y, z, v)}
}

func exactDiv(x, y float64, wide bool) exact {
	q := x / y
	switch {
	case q != q || math.IsInf(x, 0) || math.IsInf(y, 0) || y == 0:
		return exact{q, 0}
	case math.IsInf(q, 0):
		return exact{q, -signOf(q)}
	}
	if !wide {
		return exact{q, signOf(math.FMA(-q, y, x)) * signOf(y)}
	}
	return exact{q, -compare(q, y, 0, x) * signOf(y)}
}

func exactSqrt(x float64, wide bool) exact {
	s := math.Sqrt(x)
	if s != s || math.IsInf(s, 0) {
		return exact{s, 0}
	}
	if !wide {
		return exact{s, signOf(math.FMA(-s, s, x))}
	}
	return exact{s, -compare(s, s, 0, x)}
}

// exactOf is an integer.
func exactOf(x uint64, signed bool) exact {
	if signed && int64(x) < 0 {
		e := exactOf(-x, false)
		return exact{-e.v, -e.rest}
	}
	v := float64(x)
	if v >= 1<<64 {
		return exact{v, -1}
	}
	switch n := uint64(v); {
	case n < x:
		return exact{v, 1}
	case n > x:
		return exact{v, -1}
	}
	return exact{v, 0}
}

// withSign gives a sum that is exactly zero its sign (IEEE 754-2008, 6.3): of numbers
// with opposite signs it is -0 when rounding down, and 0 else.
func (e exact) withSign(r rounding, x, y float64) exact {
	if e.v == 0 && e.rest == 0 && math.Signbit(x) != math.Signbit(y) && r == roundDown {
		e.v = math.Copysign(0, -1)
	}
	return e
}
