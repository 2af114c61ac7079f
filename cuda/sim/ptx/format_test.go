package ptx

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// refDecode is a format's value from its definition: sign, exponent and mantissa.
func refDecode(x uint64, f uint8) float64 {
	d := formats[f]
	sign, exp, man := x>>(d.exp+d.man)&1, int(x>>d.man&(1<<d.exp-1)), float64(x&(1<<d.man-1))
	man /= math.Pow(2, float64(d.man))
	v := 0.0
	switch top := exp == 1<<d.exp-1; {
	case top && d.inf && man == 0:
		v = math.Inf(1)
	case top && d.inf, f == fmtE4M3 && x&0x7f == 0x7f:
		return math.NaN()
	case exp == 0:
		v = man * math.Pow(2, float64(1-d.bias))
	default:
		v = (1 + man) * math.Pow(2, float64(exp-d.bias))
	}
	if sign == 1 {
		return math.Copysign(v, -1)
	}
	return v
}

// allFormats are those with at most 16 bits and a sign.
var allFormats = map[string]uint8{"f16": fmtF16, "bf16": fmtBF16, "e4m3": fmtE4M3, "e5m2": fmtE5M2, "e2m3": fmtE2M3, "e3m2": fmtE3M2, "e2m1": fmtE2M1}

// TestFormatsExhaustively decodes every bit pattern, encodes it again, and encodes what
// lies between neighbours in every rounding.
func TestFormatsExhaustively(t *testing.T) {
	for name, f := range allFormats {
		t.Run(name, func(t *testing.T) {
			d := formats[f]
			most := uint64(d.max)
			for x := range uint64(1) << (1 + d.exp + d.man) {
				want, got := refDecode(x, f), decode(x, f)
				if want != want {
					require.True(t, got != got, "%#x", x)
					require.Equal(t, d.nan, encode(got, f, roundNearest, false))
					continue
				}
				require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%#x", x)
				if math.IsInf(got, 0) {
					require.Equal(t, x, encode(got, f, roundNearest, false))
					require.Equal(t, x&^(1<<(d.exp+d.man)-1)|most, encode(got, f, roundNearest, true))
					continue
				}
				for _, r := range []rounding{roundNearest, roundZero, roundDown, roundUp, roundAway} {
					require.Equal(t, x, encode(got, f, r, false), "%#x, rounding %d", x, r)
				}
			}
			sign := uint64(1) << (d.exp + d.man)
			for x := range most {
				lo, hi := decode(x, f), decode(x+1, f)
				mid := lo + (hi-lo)/2
				for _, c := range []struct {
					v             float64
					nearest, away uint64
				}{
					{mid, x + x&1, x + 1}, {math.Nextafter(mid, 0), x, x}, {math.Nextafter(mid, hi), x + 1, x + 1},
					{math.Nextafter(lo, hi), x, x}, {math.Nextafter(hi, lo), x + 1, x + 1},
				} {
					require.Equal(t, c.nearest, encode(c.v, f, roundNearest, false), "%g", c.v)
					require.Equal(t, c.nearest|sign, encode(-c.v, f, roundNearest, true), "%g", -c.v)
					require.Equal(t, c.away, encode(c.v, f, roundAway, false), "%g", c.v)
					require.Equal(t, x, encode(c.v, f, roundZero, false), "%g", c.v)
					require.Equal(t, x|sign, encode(-c.v, f, roundUp, false), "%g", -c.v)
					require.Equal(t, x, encode(c.v, f, roundDown, false), "%g", c.v)
					require.Equal(t, x+1, encode(c.v, f, roundUp, false), "%g", c.v)
					require.Equal(t, (x+1)|sign, encode(-c.v, f, roundDown, false), "%g", -c.v)
				}
			}
			// Beyond the largest finite value.
			last := decode(most, f)
			ulp := last - decode(most-1, f)
			require.Equal(t, most, encode(last+ulp*0.499, f, roundNearest, false))
			over := d.nan
			switch {
			case d.inf:
				over = (1<<d.exp - 1) << d.man
			case d.nan == d.max:
				over = most
			}
			require.Equal(t, over, encode(last+ulp*0.501, f, roundNearest, false))
			require.Equal(t, most, encode(1e300, f, roundNearest, true))
			require.Equal(t, most, encode(1e300, f, roundZero, false))
			require.Equal(t, most|sign, encode(-1e300, f, roundUp, false))
		})
	}
}

// TestScaleFormat is ue8m0: powers of two.
func TestScaleFormat(t *testing.T) {
	for x := range uint64(255) {
		v := math.Ldexp(1, int(x)-127)
		require.Equal(t, v, decode(x, fmtUE8M0))
		require.Equal(t, x, encode(v, fmtUE8M0, roundZero, true))
		require.Equal(t, x, encode(v, fmtUE8M0, roundUp, true))
		require.Equal(t, x, encode(v*1.5, fmtUE8M0, roundZero, true))
		require.Equal(t, min(x+1, 254), encode(v*1.5, fmtUE8M0, roundUp, true))
	}
	require.EqualValues(t, 255, encode(math.NaN(), fmtUE8M0, roundZero, true))
	require.EqualValues(t, 254, encode(math.Inf(1), fmtUE8M0, roundZero, true))
}

// refRound rounds an exact number to a float32 or float64: the nearest one, and the
// neighbour where the direction asks for it.
func refRound(x *big.Float, wide bool, r rounding) float64 {
	var near float64
	var acc big.Accuracy
	if wide {
		near, acc = x.Float64()
	} else {
		var f float32
		f, acc = x.Float32()
		near = float64(f)
	}
	step := func(to float64) float64 {
		if wide {
			return math.Nextafter(near, to)
		}
		return float64(math.Nextafter32(float32(near), float32(to)))
	}
	negative := x.Sign() < 0
	down := r == roundDown || r == roundZero && !negative
	up := r == roundUp || r == roundZero && negative
	switch {
	case acc == big.Above && down:
		return step(math.Inf(-1))
	case acc == big.Below && up:
		return step(math.Inf(1))
	}
	return near
}

func bigOf(x float64) *big.Float { return new(big.Float).SetFloat64(x) }

// refOp computes an operation exactly and rounds it. ok is false where there is no
// finite, exact result other than zero to round.
func refOp(what string, x, y, z float64, wide bool, r rounding) (v float64, ok bool) {
	for _, a := range []float64{x, y, z} {
		if math.IsInf(a, 0) || a != a {
			return 0, false
		}
	}
	prec := uint(800) // more bits than any result of float32 operands needs
	if wide {
		prec = 4500
	}
	s := new(big.Float).SetPrec(prec)
	bigOf := func(x float64) *big.Float { return new(big.Float).SetFloat64(x) }
	switch what {
	case "add":
		s.Add(bigOf(x), bigOf(y))
	case "sub":
		s.Sub(bigOf(x), bigOf(y))
	case "mul":
		s.Mul(bigOf(x), bigOf(y))
	case "fma":
		s.Add(s.Mul(bigOf(x), bigOf(y)), bigOf(z))
	case "div":
		if y == 0 {
			return 0, false
		}
		s.SetPrec(400).Quo(bigOf(x), bigOf(y))
	case "rcp":
		if x == 0 {
			return 0, false
		}
		s.SetPrec(400).Quo(bigOf(1), bigOf(x))
	case "sqrt":
		if x < 0 {
			return 0, false
		}
		s.SetPrec(400).Sqrt(bigOf(x))
	}
	if s.Sign() == 0 {
		return 0, false
	}
	return refRound(s, wide, r), true
}

// roundedCases are the operations that round, in every type and direction.
func roundedCases() (cases []opCase) {
	args := map[string]int{"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "rcp": 1, "sqrt": 1}
	for what, n := range args {
		for _, bits := range []int{32, 64} {
			for name, r := range map[string]rounding{"rn": roundNearest, "rz": roundZero, "rm": roundDown, "rp": roundUp} {
				widths := [4]int{bits}
				for i := range n {
					widths[i+1] = bits
				}
				wide := bits == 64
				cases = append(cases, opCase{
					text:   fmt.Sprintf("%s.%s.f%d D%s", what, name, bits, ", A, B, C"[:3*n]),
					widths: widths,
					twin: func(a, b, c uint64) uint64 {
						of := func(x uint64) float64 {
							if wide {
								return db(x)
							}
							return float64(fl(x))
						}
						x, y, z := of(a), of(b), of(c)
						if n < 3 {
							z = 0
						}
						if n < 2 {
							y = 1
						}
						v, ok := refOp(what, x, y, z, wide, r)
						if !ok { // zeros, infinities and NaN: as the machine has them, but for the sign of an exact zero
							switch what {
							case "add":
								v = x + y
							case "sub":
								v, y = x-y, -y
							case "mul":
								v = x * y
							case "div":
								v = x / y
							case "fma":
								v = math.FMA(x, y, z)
								if v == 0 && math.Signbit(x*y) != math.Signbit(z) && r == roundDown {
									v = math.Copysign(0, -1)
								}
							case "rcp":
								v = 1 / x
							case "sqrt":
								v = math.Sqrt(x)
							}
							if (what == "add" || what == "sub") && v == 0 && math.Signbit(x) != math.Signbit(y) && r == roundDown {
								v = math.Copysign(0, -1)
							}
						}
						if wide {
							return undb(v)
						}
						return unfl(float32(v))
					},
				})
			}
		}
	}
	return cases
}

// halfCases are operations on 16-bit floats and pairs of them.
func halfCases() (cases []opCase) {
	ops := map[string]struct {
		n int
		f func(x, y, z float64) *big.Float
	}{
		"add": {2, func(x, y, z float64) *big.Float { return new(big.Float).SetPrec(600).Add(bigOf(x), bigOf(y)) }},
		"sub": {2, func(x, y, z float64) *big.Float { return new(big.Float).SetPrec(600).Sub(bigOf(x), bigOf(y)) }},
		"mul": {2, func(x, y, z float64) *big.Float { return new(big.Float).SetPrec(600).Mul(bigOf(x), bigOf(y)) }},
		"fma": {3, func(x, y, z float64) *big.Float {
			p := new(big.Float).SetPrec(600).Mul(bigOf(x), bigOf(y))
			return p.Add(p, bigOf(z))
		}},
	}
	for what, op := range ops {
		for name, f := range map[string]uint8{"f16": fmtF16, "bf16": fmtBF16} {
			one := func(a, b, c uint64) uint64 {
				x, y, z := decode(a, f), decode(b, f), decode(c, f)
				if op.n == 2 {
					z = 0
				}
				var plain float64
				switch what {
				case "add":
					plain = x + y
				case "sub":
					plain = x - y
				case "mul":
					plain = x * y
				case "fma":
					plain = x*y + z
				}
				if plain != plain {
					return 0x7fff
				}
				if math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsInf(z, 0) {
					return encode(plain, f, roundNearest, false)
				}
				e := op.f(x, y, z)
				if e.Sign() == 0 {
					return encode(plain, f, roundNearest, false)
				}
				return refEncode(e, f)
			}
			widths := [4]int{16, 16, 16}
			pair := [4]int{32, 32, 32}
			if op.n == 3 {
				widths[3], pair[3] = 16, 32
			}
			text := " D, A, B, C"[:2+3*op.n]
			cases = append(cases,
				opCase{what + ".rn." + name + text, widths, one},
				opCase{what + ".rn." + name + "x2" + text, pair, func(a, b, c uint64) uint64 {
					return one(a&0xffff, b&0xffff, c&0xffff) | one(a>>16, b>>16, c>>16)<<16
				}})
		}
	}
	return cases
}

// refEncode finds the nearest value of a 16-bit format by looking at all of them.
func refEncode(x *big.Float, f uint8) uint64 {
	d := formats[f]
	sign := uint64(0)
	a := new(big.Float).SetPrec(600).Abs(x)
	if x.Sign() < 0 {
		sign = 0x8000
	}
	lo, hi := uint64(0), d.max+1 // the largest that is not above a, by bisection
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; bigOf(decode(mid, f)).Cmp(a) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	below := decode(lo, f)
	step := math.Ldexp(1, 1-d.bias-int(d.man))
	if e := int(lo >> d.man); e > 0 {
		step = math.Ldexp(1, e-d.bias-int(d.man))
	}
	half := new(big.Float).SetPrec(600).Add(bigOf(below), bigOf(step/2))
	switch c := a.Cmp(half); {
	case c > 0, c == 0 && lo&1 != 0:
		lo++
	}
	return lo | sign // above the largest comes infinity
}
