package ptx

import "math"

// floatX computes an operation in any format, element by element.
func floatX(d, a, b, c *lanes, in *inst) {
	if in.flags&flagPair == 0 {
		for i := range d {
			d[i] = in.float(a[i], b[i], c[i])
		}
		return
	}
	w := width(in.fmt)
	m := uint64(1)<<w - 1
	for i := range d {
		lo := in.float(a[i]&m, b[i]&m, c[i]&m)
		d[i] = lo | in.float(a[i]>>w, b[i]>>w, c[i]>>w)<<w
	}
}

// signBit is the bit of the sign in a format of an arithmetic instruction.
func signBit(f uint8) uint64 { return 1 << (width(f) - 1) }

// subnormal reports whether the bits x are a subnormal number.
func subnormal(x uint64, f uint8) bool {
	v := math.Abs(decode(x, f))
	if f == fmtF64 {
		return v != 0 && v < 0x1p-1022
	}
	return v != 0 && v < math.Ldexp(1, 1-formats[f].bias)
}

func (in *inst) flush(x uint64) uint64 {
	if in.flags&flagFtz != 0 && subnormal(x, in.fmt) {
		return x & signBit(in.fmt)
	}
	return x
}

// float is one element.
func (in *inst) float(xb, yb, zb uint64) uint64 {
	xb, yb = in.flush(xb), in.flush(yb)
	x := decode(xb, in.fmt)
	if in.sub == floatNeg || in.sub == floatAbs {
		if xb &^= signBit(in.fmt); in.sub == floatNeg && !math.Signbit(x) {
			xb |= signBit(in.fmt)
		}
		return xb
	}
	y := decode(yb, in.fmt)
	if in.sub == floatCopysign { // the sign of the first
		return yb&^signBit(in.fmt) | xb&signBit(in.fmt)
	}
	if in.sub == floatMin || in.sub == floatMax {
		return in.finish(encode(in.minMax(x, y), in.fmt, roundNearest, false))
	}
	z := 0.0
	if in.sub == floatFma {
		z = decode(in.flush(zb), in.fmt)
	}
	return in.finish(in.arithmetic(x, y, z).round(in.fmt, in.rnd, false))
}

// arithmetic is what is rounded once.
func (in *inst) arithmetic(x, y, z float64) exact {
	wide := in.fmt == fmtF64
	nearest := wide && in.rnd == roundNearest // what was rounded away does not matter
	switch in.sub {
	case floatAdd:
		return exactAdd(x, y).withSign(in.rnd, x, y)
	case floatSub:
		return exactAdd(x, -y).withSign(in.rnd, x, -y)
	case floatMul:
		if !wide || nearest {
			return exact{x * y, 0}
		}
		return exactFma(x, y, 0, true).signed(x * y)
	case floatFma:
		if nearest {
			return exact{math.FMA(x, y, z), 0}
		}
		return exactFma(x, y, z, wide).withSign(in.rnd, x*y, z)
	case floatDiv:
		if nearest {
			return exact{x / y, 0}
		}
		return exactDiv(x, y, wide)
	case floatSqrt:
		if nearest {
			return exact{math.Sqrt(x), 0}
		}
		return exactSqrt(x, wide)
	case floatRcp:
		if nearest {
			return exact{1 / x, 0}
		}
		return exactDiv(1, x, wide)
	}
	return exact{approximate(in.sub, x, y), 0}
}

// signed keeps the sign of a product that is zero.
func (e exact) signed(p float64) exact {
	if e.v == 0 {
		e.v = math.Copysign(0, p)
	}
	return e
}

// approximate is the nearest value of a function whose result hardware only
// comes near to.
func approximate(what uint8, x, y float64) float64 {
	switch what {
	case floatDivApprox:
		// Section "div": a divisor above 2^126 makes the quotient zero, or NaN of
		// an infinity.
		if a := math.Abs(y); a > 0x1p126 && !math.IsInf(y, 0) {
			if math.IsInf(x, 0) {
				return math.NaN()
			}
			return math.Copysign(0, x) * math.Copysign(1, y)
		}
		return x / y
	case floatRsqrt, floatRsqrtTop:
		return 1 / math.Sqrt(x)
	case floatRcpTop:
		return 1 / x
	case floatSin:
		return math.Sin(x)
	case floatCos:
		return math.Cos(x)
	case floatLg2:
		return math.Log2(x)
	case floatEx2:
		return math.Exp2(x)
	}
	return math.Tanh(x)
}

// minMax gives the other operand where one is NaN, and -0 is less than 0.
func (in *inst) minMax(x, y float64) float64 {
	negative := math.Signbit(x) != math.Signbit(y)
	if in.flags&flagXorSign != 0 {
		x, y = math.Abs(x), math.Abs(y)
	}
	v := 0.0
	switch {
	case x != x || y != y:
		if v = y; y != y {
			v = x
		}
		if in.flags&flagNaN != 0 {
			v = math.NaN()
		}
	case in.sub == floatMin:
		v = math.Min(x, y)
	default:
		v = math.Max(x, y)
	}
	if in.flags&flagXorSign != 0 && negative {
		v = -v
	}
	return v
}

// finish applies the modifiers of a result.
func (in *inst) finish(x uint64) uint64 {
	x = in.flush(x)
	if in.sub == floatRcpTop || in.sub == floatRsqrtTop {
		x &= 0xffffffff << 32
	}
	if in.flags&(flagSat|flagRelu) == 0 {
		return x
	}
	v := decode(x, in.fmt)
	switch {
	case in.flags&flagRelu != 0 && v != v: // stays NaN
	case !(v > 0):
		return 0
	case in.flags&flagSat != 0 && v > 1:
		return encode(1, in.fmt, roundNearest, false)
	}
	return x
}

// setFloatX compares in any format; of pairs the lower elements or, with flagFirst, the
// upper ones.
func setFloatX(a, b *lanes, in *inst) (set uint32) {
	var x, y lanes
	sh, m := uint(0), mask(uint8(width(in.fmt)))
	if in.flags&flagFirst != 0 {
		sh = width(in.fmt)
	}
	for i := range x {
		x[i] = bits64(decode(in.flush(a[i]>>sh&m), in.fmt))
		y[i] = bits64(decode(in.flush(b[i]>>sh&m), in.fmt))
	}
	return setFloat(&x, &y, in.sub, 0)
}

// Classes of testp.
const (
	testFinite = iota
	testInfinite
	testNumber
	testNaN
	testNormal
	testSubnormal
)

func testFloat(a *lanes, what, f uint8) (set uint32) {
	for i, x := range a {
		v := decode(x, f)
		inf, nan, sub := math.IsInf(v, 0), v != v, subnormal(x, f)
		var is bool
		switch what {
		case testFinite:
			is = !inf && !nan
		case testInfinite:
			is = inf
		case testNumber:
			is = !nan
		case testNaN:
			is = nan
		case testNormal:
			is = !inf && !nan && !sub && v != 0
		case testSubnormal:
			is = sub
		}
		if is {
			set |= 1 << i
		}
	}
	return set
}

// convertX is a conversion with one or two sources, of any format. Integers are
// clamped to their range where the source is a float or .sat says so.
func convertX(d, a, b *lanes, in *inst) {
	switch {
	case in.flags&flagFirst != 0:
		w := width(in.fmt2)
		for i := range d {
			d[i] = in.convert(a[i])<<w | in.convert(b[i])
		}
	case in.flags&flagPair != 0:
		w, w2 := width(in.fmt), width(in.fmt2)
		for i := range d {
			x := a[i] & (1<<(2*w) - 1)
			d[i] = in.convert(x>>w)<<w2 | in.convert(x&(1<<w-1))
		}
	default:
		for i := range d {
			d[i] = in.convert(a[i]) & in.mask
		}
	}
}

func (in *inst) convert(x uint64) uint64 {
	var e exact
	if in.fmt == fmtInt {
		x &= ^uint64(0) >> in.sh
		signed := in.flags&flagSigned != 0
		if signed {
			x = uint64(sext(x, in.sh))
		}
		if in.fmt2 == fmtInt {
			return in.clamp(x, signed)
		}
		e = exactOf(x, signed)
	} else {
		if in.flags&flagFtz != 0 && in.fmt == fmtF32 {
			x = in.flush(x)
		}
		e.v = decode(x, in.fmt)
	}
	switch in.sub {
	case 1:
		e = exact{v: math.RoundToEven(e.v)}
	case 2:
		e = exact{v: math.Trunc(e.v)}
	case 3:
		e = exact{v: math.Floor(e.v)}
	case 4:
		e = exact{v: math.Ceil(e.v)}
	}
	if in.fmt2 == fmtInt {
		return clampInt(e.v, 64-in.sh2, in.flags&flagSigned2 != 0)
	}
	if in.flags&flagRelu != 0 && e.v < 0 {
		e = exact{}
	}
	if in.flags&flagSat != 0 {
		switch {
		case !(e.v > 0):
			e = exact{}
		case e.v > 1:
			e = exact{v: 1}
		}
	}
	r := e.round(in.fmt2, in.rnd, in.flags&flagFinite != 0)
	if in.flags&flagFtz != 0 && in.fmt2 == fmtF32 && subnormal(r, fmtF32) {
		r &= 1 << 31
	}
	return r
}

// clamp makes an integer fit the result's type.
func (in *inst) clamp(x uint64, signed bool) uint64 {
	bits := 64 - in.sh2
	switch to := in.flags&flagSigned2 != 0; {
	case signed && to:
		least, most := int64(-1)<<(bits-1), int64(mask(bits-1))
		x = uint64(min(max(int64(x), least), most))
	case to:
		x = min(x, mask(bits-1))
	case signed && int64(x) < 0:
		x = 0
	default:
		x = min(x, mask(bits))
	}
	return x
}

// convertPack clamps two integers and puts them below what c has.
func convertPack(d, a, b, c *lanes, in *inst) {
	bits := 64 - in.sh2
	signed := in.flags&flagSigned != 0
	one := func(x uint64) uint64 {
		if signed {
			x = uint64(sext(x, in.sh))
		}
		return in.clamp(x, signed) & mask(bits)
	}
	for i := range d {
		d[i] = (one(a[i])<<bits | one(b[i]) | c[i]<<(2*bits)) & in.mask
	}
}
