package ptx

import (
	"math"
	"math/big"
)

func clampTo(x *big.Int, bits uint, signed bool) uint64 {
	lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), bits)
	if signed {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	if x.Cmp(lo) < 0 {
		x = lo
	}
	if x.Cmp(hi) > 0 {
		x = hi
	}
	return uint64(x.Int64()) | x.Uint64()&(1<<63)
}

func sat32(v int64) uint64 { return uint64(min(max(v, math.MinInt32), math.MaxInt32)) }

func pairwise(a, b uint64, f func(x, y uint64) uint64) uint64 {
	return f(a&0xffff, b&0xffff)&0xffff | f(a>>16, b>>16)&0xffff<<16
}

func byteOf(x uint64, i int, signed bool) int64 {
	if v := x >> (8 * i); signed {
		return int64(int8(v))
	} else {
		return int64(uint8(v))
	}
}

func dot4(a, b, c uint64, sa, sb bool) uint64 {
	v := int64(c)
	for i := range 4 {
		v += byteOf(a, i, sa) * byteOf(b, i, sb)
	}
	return uint64(v)
}

// ftz32 is what .ftz makes of a number.
func ftz32(f float32) float32 {
	if f != 0 && math.Abs(float64(f)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(f)))
	}
	return f
}

func sat01(f float32) uint64 {
	switch {
	case !(f > 0):
		return 0
	case f > 1:
		return 0x3f800000
	}
	return unfl(f)
}

// signed32 clamps like a conversion to an integer, to nearest even by default.
func toInt(f float64, bits uint, signed bool) uint64 {
	if f != f {
		return 0
	}
	lo, hi := 0.0, math.Ldexp(1, int(bits))
	if signed {
		hi /= 2
		lo = -hi
	}
	switch {
	case f <= lo:
		if lo == 0 {
			return 0
		}
		return uint64(int64(lo))
	case f >= hi:
		if signed {
			return 1<<(bits-1) - 1
		}
		return mask(uint8(bits))
	case signed:
		return uint64(int64(f))
	}
	return uint64(f)
}

// approx32 allows an approximation a relative difference.
var moreCases = []opCase{
	{"add.sat.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return sat32(i32(a) + i32(b)) }},
	{"sub.sat.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return sat32(i32(a) - i32(b)) }},
	{"mad.hi.sat.s32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return sat32(i32(a)*i32(b)>>32 + i32(c)) }},
	{"mul24.lo.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a & 0xffffff * (b & 0xffffff) }},
	{"mul24.hi.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a & 0xffffff * (b & 0xffffff) >> 16 }},
	{"mul24.lo.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return uint64(int64(int32(a<<8)>>8) * int64(int32(b<<8)>>8))
	}},
	{"mad24.hi.s32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		return uint64(int64(int32(a<<8)>>8)*int64(int32(b<<8)>>8)>>16) + c
	}},
	{"mad24.hi.sat.s32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		return sat32(i32(uint64(int64(int32(a<<8)>>8)*int64(int32(b<<8)>>8)>>16)) + i32(c))
	}},
	{"dp4a.u32.u32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return dot4(a, b, c, false, false) }},
	{"dp4a.s32.u32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return dot4(a, b, c, true, false) }},
	{"dp4a.s32.s32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return dot4(a, b, c, true, true) }},
	{"dp2a.lo.s32.u32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		return uint64(int64(c) + i16(a)*byteOf(b, 0, false) + i16(a>>16)*byteOf(b, 1, false))
	}},
	{"dp2a.hi.u32.s32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		return uint64(int64(c) + int64(uint16(a))*byteOf(b, 2, true) + int64(uint16(a>>16))*byteOf(b, 3, true))
	}},
	{"add.u16x2 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return pairwise(a, b, func(x, y uint64) uint64 { return x + y }) }},
	{"min.s16x2 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return pairwise(a, b, func(x, y uint64) uint64 { return uint64(min(i16(x), i16(y))) })
	}},
	{"max.u16x2 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return pairwise(a, b, func(x, y uint64) uint64 { return max(x, y) })
	}},
	{"max.relu.s16x2 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return pairwise(a, b, func(x, y uint64) uint64 { return uint64(max(i16(x), i16(y), 0)) })
	}},
	{"min.relu.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return uint64(max(min(i32(a), i32(b)), 0)) }},
	{"bmsk.clamp.b32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		v := uint64(0)
		for i := range uint64(32) {
			if i >= a && i < a+min(b, 32) {
				v |= 1 << i
			}
		}
		return v
	}},
	{"bmsk.wrap.b32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return (1<<(b&31) - 1) << (a & 31) }},
	{"szext.clamp.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		if n := min(b, 32); n > 0 {
			return uint64(int64(a<<(64-n)) >> (64 - n))
		}
		return 0
	}},
	{"szext.wrap.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a & (1<<(b&31) - 1) }},
	{"lop3.or.b32 D|%p5, A, B, C, 0x80, %p6", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return a & b & c }},
	{"mad.lo.cc.u32 %r3, A, B, C; madc.hi.u32 D, A, B, 0", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return (a*b + c) >> 32 }},
	{"mad.lo.cc.u64 %d3, A, B, C; madc.hi.cc.u64 D, A, B, C", [4]int{64, 64, 64, 64}, func(a, b, c uint64) uint64 {
		s := new(big.Int).Mul(bigU(a), bigU(b))
		s.Add(s, bigU(c))
		s.Add(s, new(big.Int).Lsh(bigU(c), 64))
		s.Rsh(s, 64)
		return s.And(s, bigU(math.MaxUint64)).Uint64()
	}},

	{"cvt.sat.s8.s32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(min(max(i32(a), -128), 127)) }},
	{"cvt.sat.u8.s32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(min(max(i32(a), 0), 255)) }},
	{"cvt.sat.u16.u64 D, A", [4]int{16, 64}, func(a, b, c uint64) uint64 { return min(a, 0xffff) }},
	{"cvt.sat.s32.u64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 { return min(a, 0x7fffffff) }},
	{"cvt.sat.s32.s64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 { return sat32(int64(a)) }},
	{"cvt.sat.u64.s64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return uint64(max(int64(a), 0)) }},
	{"cvt.pack.sat.s16.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return clampTo(bigS(uint64(i32(a))), 16, true)&0xffff<<16 | clampTo(bigS(uint64(i32(b))), 16, true)&0xffff
	}},
	{"cvt.pack.sat.u8.s32.b32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		return c<<16 | clampTo(bigS(uint64(i32(a))), 8, false)<<8 | clampTo(bigS(uint64(i32(b))), 8, false)
	}},
	{"cvt.sat.f32.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return sat01(fl(a)) }},
	{"add.sat.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return sat01(fl(a) + fl(b)) }},
	{"fma.rn.ftz.sat.f32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		return sat01(ftz32(bigFma(ftz32(fl(a)), ftz32(fl(b)), ftz32(fl(c)))))
	}},
	{"mul.ftz.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return unfl(ftz32(ftz32(fl(a)) * ftz32(fl(b)))) }},
	{"add.ftz.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return unfl(ftz32(ftz32(fl(a)) + ftz32(fl(b)))) }},
	{"neg.ftz.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 {
		return uint64(math.Float32bits(ftz32(fl(a)))) ^ 1<<31
	}},
	{"abs.f16x2 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return a &^ 0x80008000 }},
	{"neg.bf16x2 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return a ^ 0x80008000 }},
	{"copysign.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return b&^(1<<31) | a&(1<<31) }},
	{"testp.finite.f32 D, A", [4]int{1, 32}, func(a, b, c uint64) uint64 { return b2u(a>>23&255 != 255) }},
	{"testp.subnormal.f64 D, A", [4]int{1, 64}, func(a, b, c uint64) uint64 { return b2u(a>>52&2047 == 0 && a<<12 != 0) }},
	{"testp.normal.f32 D, A", [4]int{1, 32}, func(a, b, c uint64) uint64 { return b2u(a>>23&255 != 255 && a>>23&255 != 0) }},
	{"testp.notanumber.f64 D, A", [4]int{1, 64}, func(a, b, c uint64) uint64 { return b2u(db(a) != db(a)) }},
	{"min.NaN.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return unfl(float32(math.Min(float64(fl(a)), float64(fl(b)))))
	}},
	{"max.NaN.xorsign.abs.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		x, y := math.Abs(float64(fl(a))), math.Abs(float64(fl(b)))
		v := math.Max(x, y)
		if x != x || y != y {
			v = math.NaN()
		}
		if (a^b)>>31&1 != 0 {
			v = -v
		}
		return unfl(float32(v))
	}},
	{"set.lt.f32.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return b2u(i32(a) < i32(b)) * 0x3f800000 }},
	{"setp.lt.f16 D, A, B", [4]int{1, 16, 16}, func(a, b, c uint64) uint64 { return b2u(decode(a, fmtF16) < decode(b, fmtF16)) }},
	{"setp.neu.bf16 D, A, B", [4]int{1, 16, 16}, func(a, b, c uint64) uint64 { return b2u(decode(a, fmtBF16) != decode(b, fmtBF16)) }},
	{"setp.gt.f16x2 %p5|D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 {
		return b2u(decode(a>>16, fmtF16) > decode(b>>16, fmtF16))
	}},
	{"setp.lt.ftz.f32 D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(ftz32(fl(a)) < ftz32(fl(b))) }},
	{"set.eq.u16.f16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 { return -b2u(decode(a, fmtF16) == decode(b, fmtF16)) }},
	{"set.ge.f16x2.f16x2 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return pairwise(a, b, func(x, y uint64) uint64 { return b2u(decode(x, fmtF16) >= decode(y, fmtF16)) * 0x3c00 })
	}},

	{"cvt.rn.bf16.f32 D, A", [4]int{16, 32}, func(a, b, c uint64) uint64 { return refNarrow(float64(fl(a)), fmtBF16) }},
	{"cvt.rn.f16.f32 D, A", [4]int{16, 32}, func(a, b, c uint64) uint64 { return refNarrow(float64(fl(a)), fmtF16) }},
	{"cvt.rn.f16.f64 D, A", [4]int{16, 64}, func(a, b, c uint64) uint64 { return refNarrow(db(a), fmtF16) }},
	{"cvt.rn.relu.bf16x2.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		relu := func(x uint64) uint64 {
			if fl(x) < 0 {
				return 0
			}
			return refNarrow(float64(fl(x)), fmtBF16)
		}
		return relu(a)<<16 | relu(b)
	}},
	{"cvt.rn.f16x2.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return refNarrow(float64(fl(a)), fmtF16)<<16 | refNarrow(float64(fl(b)), fmtF16)
	}},
	{"cvt.f32.bf16 D, A", [4]int{32, 16}, func(a, b, c uint64) uint64 { return canon32(a << 16) }},
	{"cvt.f32.f16 D, A", [4]int{32, 16}, func(a, b, c uint64) uint64 { return unfl(float32(refDecode(a, fmtF16))) }},
	{"cvt.f64.f16 D, A", [4]int{64, 16}, func(a, b, c uint64) uint64 { return undb(refDecode(a, fmtF16)) }},
	{"cvt.rn.f16.s32 D, A", [4]int{16, 32}, func(a, b, c uint64) uint64 { return refNarrow(float64(i32(a)), fmtF16) }},
	{"cvt.rn.bf16.u16 D, A", [4]int{16, 16}, func(a, b, c uint64) uint64 { return refNarrow(float64(a), fmtBF16) }},
	{"cvt.rzi.s32.f16 D, A", [4]int{32, 16}, func(a, b, c uint64) uint64 { return toInt(math.Trunc(refDecode(a, fmtF16)), 32, true) }},
	{"cvt.rni.u8.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return toInt(math.RoundToEven(float64(fl(a))), 8, false) }},
	{"cvt.rpi.ftz.s32.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return toInt(math.Ceil(float64(ftz32(fl(a)))), 32, true) }},
	{"cvt.rmi.f16.f16 D, A", [4]int{16, 16}, func(a, b, c uint64) uint64 { return refNarrow(math.Floor(refDecode(a, fmtF16)), fmtF16) }},
	{"cvt.rz.f32.f64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 {
		if f := db(a); f == 0 || f != f || math.IsInf(f, 0) {
			return unfl(float32(f))
		}
		return unfl(float32(refRound(bigOf(db(a)), false, roundZero)))
	}},
	{"cvt.rp.f32.u64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 {
		return unfl(float32(refRound(new(big.Float).SetPrec(64).SetUint64(a), false, roundUp)))
	}},
	{"cvt.rm.f64.s64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 {
		return undb(refRound(new(big.Float).SetPrec(64).SetInt64(int64(a)), true, roundDown))
	}},
	{"cvt.rna.tf32.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 {
		switch f := fl(a); {
		case f != f:
			return 0x7fffe000
		case math.IsInf(float64(f), 0):
			return a
		}
		return (a + 1<<12) &^ (1<<13 - 1)
	}},
	{"cvt.rn.satfinite.e4m3x2.f32 D, A, B", [4]int{16, 32, 32}, func(a, b, c uint64) uint64 {
		return refByte(float64(fl(a)), fmtE4M3)<<8 | refByte(float64(fl(b)), fmtE4M3)
	}},
	{"cvt.rn.satfinite.e5m2x2.f32 D, A, B", [4]int{16, 32, 32}, func(a, b, c uint64) uint64 {
		return refByte(float64(fl(a)), fmtE5M2)<<8 | refByte(float64(fl(b)), fmtE5M2)
	}},
	{"cvt.rn.satfinite.e4m3x2.f16x2 D, A", [4]int{16, 32}, func(a, b, c uint64) uint64 {
		return refByte(refDecode(a>>16, fmtF16), fmtE4M3)<<8 | refByte(refDecode(a&0xffff, fmtF16), fmtE4M3)
	}},
	{"cvt.rn.f16x2.e5m2x2 D, A", [4]int{32, 16}, func(a, b, c uint64) uint64 {
		return refNarrow(refDecode(a>>8, fmtE5M2), fmtF16)<<16 | refNarrow(refDecode(a&0xff, fmtE5M2), fmtF16)
	}},
	{"cvt.rn.f16x2.e4m3x2 D, A", [4]int{32, 16}, func(a, b, c uint64) uint64 {
		return refNarrow(refDecode(a>>8, fmtE4M3), fmtF16)<<16 | refNarrow(refDecode(a&0xff, fmtE4M3), fmtF16)
	}},
	{"add.f32.bf16 D, A, B", [4]int{32, 16, 32}, func(a, b, c uint64) uint64 { return unfl(fl(a<<16) + fl(b)) }},
	{"fma.rn.f32.f16 D, A, B, C", [4]int{32, 16, 16, 32}, func(a, b, c uint64) uint64 {
		return unfl(bigFma(float32(refDecode(a, fmtF16)), float32(refDecode(b, fmtF16)), fl(c)))
	}},
	{"add.rn.f32x2 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 {
		return unfl(fl(a)+fl(b)) | unfl(fl(a>>32)+fl(b>>32))<<32
	}},
	{"div.full.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return unfl(fl(a) / fl(b)) }},
	{"rcp.approx.ftz.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return unfl(ftz32(1 / ftz32(fl(a)))) }},
	{"ex2.approx.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return unfl(float32(math.Exp2(float64(fl(a))))) }},
	{"lg2.approx.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return unfl(float32(math.Log2(float64(fl(a))))) }},
	{"rsqrt.approx.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return unfl(float32(1 / math.Sqrt(float64(fl(a))))) }},
	{"mov.f32 D, 1.5", [4]int{32}, func(a, b, c uint64) uint64 { return 0x3fc00000 }},
	{"mov.f64 D, -2.5e-1", [4]int{64}, func(a, b, c uint64) uint64 { return undb(-0.25) }},
	{"mov.u32 D, WARP_SZ", [4]int{32}, func(a, b, c uint64) uint64 { return 32 }},
	{"min.f32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		v := float32(math.NaN())
		for _, x := range []float32{fl(a), fl(b), fl(c)} {
			if v != v || x == x && float32(math.Min(float64(v), float64(x))) == x {
				v = x
			}
		}
		return unfl(v)
	}},
}

// refNarrow is the nearest 16-bit float.
func refNarrow(f float64, to uint8) uint64 {
	switch {
	case f != f:
		return 0x7fff
	case f == 0 || math.IsInf(f, 0):
		return encode(f, to, roundNearest, false)
	}
	return refEncode(bigOf(f), to)
}

// refByte is the nearest of all finite 8-bit floats.
func refByte(f float64, to uint8) uint64 {
	if f != f {
		return 0x7f
	}
	f = max(min(f, 1e6), -1e6)
	best, bestD := uint64(0), math.Inf(1)
	for x := range formats[to].max + 1 {
		d := math.Abs(math.Abs(f) - refDecode(x, to))
		if d < bestD || d == bestD && x&1 == 0 {
			best, bestD = x, d
		}
	}
	return best | b2u(math.Signbit(f))<<7
}

func init() {
	opCases = append(opCases, moreCases...)
	opCases = append(opCases, roundedCases()...)
	opCases = append(opCases, halfCases()...)
}
