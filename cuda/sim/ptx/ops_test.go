package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// opCase is one instruction and what it computes, written the obvious way. D,
// A, B, C in the text are its operands; widths are theirs in bits, 1 for a
// predicate result.
type opCase struct {
	text   string
	widths [4]int // d, a, b, c; 0: none
	twin   func(a, b, c uint64) uint64
}

func i16(x uint64) int64 { return int64(int16(x)) }
func i32(x uint64) int64 { return int64(int32(x)) }

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func bigMul(a, b *big.Int, shift uint) uint64 {
	p := new(big.Int).Mul(a, b)
	p.Rsh(p, shift)
	return p.And(p, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
}

func bigU(x uint64) *big.Int { return new(big.Int).SetUint64(x) }
func bigS(x uint64) *big.Int { return big.NewInt(int64(x)) }

func div32(a, b uint64, f func(a, b uint64) uint64, zero uint64) uint64 {
	if b == 0 {
		return zero
	}
	return f(a, b)
}

func naiveBfe(a, b, c uint64, width int, signed bool) uint64 {
	pos, length := int(b&0xff), int(c&0xff)
	bit := func(i int) uint64 { return a >> i & 1 }
	sbit := uint64(0)
	if signed && length > 0 {
		sbit = bit(min(pos+length-1, width-1))
	}
	d := uint64(0)
	for i := range width {
		v := sbit
		if i < length && pos+i < width {
			v = bit(pos + i)
		}
		d |= v << i
	}
	return d
}

func naiveBfi(a, b, c, length uint64, width int) uint64 {
	d := b
	for i := range int(length & 0xff) {
		if at := int(c&0xff) + i; at < width {
			d = d&^(1<<at) | a>>min(i, 63)&1<<at
		}
	}
	return d
}

func naivePrmt(a, b, c uint64) uint64 {
	src := binary.LittleEndian.AppendUint64(nil, b<<32|a)
	d := uint64(0)
	for i := range 4 {
		n := c >> (4 * i) & 15
		v := src[n&7]
		if n >= 8 {
			if v >= 128 {
				v = 255
			} else {
				v = 0
			}
		}
		d |= uint64(v) << (8 * i)
	}
	return d
}

func fl(x uint64) float32   { return math.Float32frombits(uint32(x)) }
func unfl(f float32) uint64 { return canon32(uint64(math.Float32bits(f))) }
func db(x uint64) float64   { return math.Float64frombits(x) }
func undb(f float64) uint64 { return canon64(math.Float64bits(f)) }
func canon32(x uint64) uint64 {
	if f := fl(x); f != f {
		return 0x7fffffff
	}
	return x
}
func canon64(x uint64) uint64 {
	if f := db(x); f != f {
		return 0x7ff8000000000000
	}
	return x
}

// bigFma rounds a*b+c once, from the exact value.
func bigFma(a, b, c float32) float32 {
	for _, f := range []float32{a, b, c} {
		if f64 := float64(f); math.IsNaN(f64) || math.IsInf(f64, 0) {
			return float32(math.FMA(float64(a), float64(b), float64(c)))
		}
	}
	p := new(big.Float).SetPrec(1000).Mul(big.NewFloat(float64(a)), big.NewFloat(float64(b)))
	p.SetPrec(1000).Add(p, new(big.Float).SetPrec(1000).SetFloat64(float64(c)))
	if p.Sign() == 0 {
		return float32(math.FMA(float64(a), float64(b), float64(c)))
	}
	f, _ := p.Float32()
	return f
}

var opCases = []opCase{
	{"mov.b64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return a }},
	{"mov.u16 D, 65535", [4]int{16}, func(a, b, c uint64) uint64 { return 0xffff }},
	{"mov.u32 D, -5", [4]int{32}, func(a, b, c uint64) uint64 { return 0xfffffffb }},
	{"add.s16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 { return a + b }},
	{"add.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a + b }},
	{"add.s64 D, A, -16", [4]int{64, 64}, func(a, b, c uint64) uint64 { return a - 16 }},
	{"sub.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a - b }},
	{"sub.u16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 { return a - b }},
	{"sub.u64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 { return a - b }},
	{"mul.lo.s16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 { return a * b }},
	{"mul.lo.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a * b }},
	{"mul.lo.s64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 { return a * b }},
	{"mul.hi.u16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 { return a * b >> 16 }},
	{"mul.hi.s16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 { return uint64(i16(a) * i16(b) >> 16) }},
	{"mul.hi.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a * b >> 32 }},
	{"mul.hi.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return uint64(i32(a) * i32(b) >> 32) }},
	{"mul.hi.u64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 { return bigMul(bigU(a), bigU(b), 64) }},
	{"mul.hi.s64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 { return bigMul(bigS(a), bigS(b), 64) }},
	{"mul.wide.u16 D, A, B", [4]int{32, 16, 16}, func(a, b, c uint64) uint64 { return a * b }},
	{"mul.wide.s16 D, A, B", [4]int{32, 16, 16}, func(a, b, c uint64) uint64 { return uint64(i16(a) * i16(b)) }},
	{"mul.wide.u32 D, A, B", [4]int{64, 32, 32}, func(a, b, c uint64) uint64 { return a * b }},
	{"mul.wide.s32 D, A, B", [4]int{64, 32, 32}, func(a, b, c uint64) uint64 { return uint64(i32(a) * i32(b)) }},
	{"mad.lo.s32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return a*b + c }},
	{"mad.lo.u16 D, A, B, C", [4]int{16, 16, 16, 16}, func(a, b, c uint64) uint64 { return a*b + c }},
	{"mad.lo.s64 D, A, B, A", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 { return a*b + a }},
	{"mad.hi.u32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return a*b>>32 + c }},
	{"mad.hi.s32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return uint64(i32(a)*i32(b)>>32) + c }},
	{"mad.hi.u64 D, A, B, C", [4]int{64, 64, 64, 64}, func(a, b, c uint64) uint64 { return bigMul(bigU(a), bigU(b), 64) + c }},
	{"mad.wide.u32 D, A, B, C", [4]int{64, 32, 32, 64}, func(a, b, c uint64) uint64 { return a*b + c }},
	{"mad.wide.s32 D, A, B, C", [4]int{64, 32, 32, 64}, func(a, b, c uint64) uint64 { return uint64(i32(a)*i32(b)) + c }},
	{"mad.wide.s16 D, A, B, C", [4]int{32, 16, 16, 32}, func(a, b, c uint64) uint64 { return uint64(i16(a)*i16(b)) + c }},
	{"div.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return div32(a, b, func(a, b uint64) uint64 { return a / b }, math.MaxUint32)
	}},
	{"div.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return div32(a, b, func(a, b uint64) uint64 { return uint64(i32(a) / i32(b)) }, math.MaxUint32)
	}},
	{"div.s16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 {
		return div32(a, b, func(a, b uint64) uint64 { return uint64(i16(a) / i16(b)) }, math.MaxUint16)
	}},
	{"div.u64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 {
		return div32(a, b, func(a, b uint64) uint64 { return a / b }, math.MaxUint64)
	}},
	{"div.s64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 {
		return div32(a, b, func(a, b uint64) uint64 { return uint64(int64(a) / int64(b)) }, math.MaxUint64)
	}},
	{"rem.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return div32(a, b, func(a, b uint64) uint64 { return a % b }, a)
	}},
	{"rem.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		return div32(a, b, func(a, b uint64) uint64 { return uint64(i32(a) % i32(b)) }, a)
	}},
	{"rem.s64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 {
		return div32(a, b, func(a, b uint64) uint64 { return uint64(int64(a) % int64(b)) }, a)
	}},
	{"rem.u16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 {
		return div32(a, b, func(a, b uint64) uint64 { return a % b }, a)
	}},
	{"min.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return min(a, b) }},
	{"min.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return uint64(min(i32(a), i32(b))) }},
	{"min.s16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 { return uint64(min(i16(a), i16(b))) }},
	{"max.u64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 { return max(a, b) }},
	{"max.s64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 { return uint64(max(int64(a), int64(b))) }},
	{"max.s32 D, A, 7", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(max(i32(a), 7)) }},
	{"neg.s32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return -a }},
	{"neg.s16 D, A", [4]int{16, 16}, func(a, b, c uint64) uint64 { return -a }},
	{"neg.s64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return -a }},
	{"abs.s32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(max(i32(a), -i32(a))) }},
	{"abs.s16 D, A", [4]int{16, 16}, func(a, b, c uint64) uint64 { return uint64(max(i16(a), -i16(a))) }},
	{"abs.s64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return uint64(max(int64(a), -int64(a))) }},
	{"sad.u32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return c + max(a, b) - min(a, b) }},
	{"sad.s32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		return c + uint64(max(i32(a)-i32(b), i32(b)-i32(a)))
	}},

	{"and.b32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a & b }},
	{"or.b64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 { return a | b }},
	{"xor.b16 D, A, B", [4]int{16, 16, 16}, func(a, b, c uint64) uint64 { return a ^ b }},
	{"and.b64 D, A, -16", [4]int{64, 64}, func(a, b, c uint64) uint64 { return a &^ 15 }},
	{"not.b32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return ^a }},
	{"not.b64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return ^a }},
	{"cnot.b32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return b2u(a == 0) }},
	{"shl.b32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a << b }},
	{"shl.b16 D, A, B", [4]int{16, 16, 32}, func(a, b, c uint64) uint64 { return a << b }},
	{"shl.b64 D, A, B", [4]int{64, 64, 32}, func(a, b, c uint64) uint64 { return a << b }},
	{"shr.u32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return a >> b }},
	{"shr.b64 D, A, B", [4]int{64, 64, 32}, func(a, b, c uint64) uint64 { return a >> b }},
	{"shr.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return uint64(i32(a) >> b) }},
	{"shr.s16 D, A, B", [4]int{16, 16, 32}, func(a, b, c uint64) uint64 { return uint64(i16(a) >> b) }},
	{"shr.s64 D, A, B", [4]int{64, 64, 32}, func(a, b, c uint64) uint64 { return uint64(int64(a) >> b) }},
	{"shf.l.wrap.b32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return b<<(c&31) | a>>(32-c&31) }},
	{"shf.r.wrap.b32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return b<<(32-c&31) | a>>(c&31) }},
	{"shf.l.clamp.b32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { n := min(c, 32); return b<<n | a>>(32-n) }},
	{"shf.r.clamp.b32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { n := min(c, 32); return b<<(32-n) | a>>n }},
	{"lop3.b32 D, A, B, C, 0x6a", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return a&b ^ c }},
	{"lop3.b32 D, A, B, C, 0xe8", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return a&b | b&c | a&c }},
	{"lop3.b32 D, A, B, C, 0x1b", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		return (^a & ^b & ^c) | (^a & ^b & c) | (^a & b & c) | (a & ^b & ^c)
	}},
	{"prmt.b32 D, A, B, C", [4]int{32, 32, 32, 32}, naivePrmt},
	{"prmt.b32 D, A, B, 0x7531", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return naivePrmt(a, b, 0x7531) }},
	{"prmt.b32.f4e D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return (b<<32 | a) >> (8 * (c & 3)) }},
	{"prmt.b32.rc8 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return a >> (8 * (c & 3)) & 255 * 0x01010101 }},
	{"prmt.b32.rc16 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return a >> (16 * (c & 1)) & 0xffff * 0x10001 }},
	{"prmt.b32.b4e D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
		return naivePrmt(a, b, []uint64{0x5670, 0x6701, 0x7012, 0x0123}[c&3])
	}},
	{"bfe.u32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return naiveBfe(a, b, c, 32, false) }},
	{"bfe.s32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return naiveBfe(a, b, c, 32, true) }},
	{"bfe.u64 D, A, B, C", [4]int{64, 64, 32, 32}, func(a, b, c uint64) uint64 { return naiveBfe(a, b, c, 64, false) }},
	{"bfe.s64 D, A, B, C", [4]int{64, 64, 32, 32}, func(a, b, c uint64) uint64 { return naiveBfe(a, b, c, 64, true) }},
	{"bfi.b32 D, A, B, C, 9", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return naiveBfi(a, b, c, 9, 32) }},
	{"bfi.b32 D, A, B, 5, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return naiveBfi(a, b, 5, c, 32) }},
	{"bfi.b64 D, A, B, 13, C", [4]int{64, 64, 64, 32}, func(a, b, c uint64) uint64 { return naiveBfi(a, b, 13, c, 64) }},
	{"popc.b32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(bits.OnesCount32(uint32(a))) }},
	{"popc.b64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 { return uint64(bits.OnesCount64(a)) }},
	{"clz.b32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(bits.LeadingZeros32(uint32(a))) }},
	{"clz.b64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 { return uint64(bits.LeadingZeros64(a)) }},
	{"brev.b32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(bits.Reverse32(uint32(a))) }},
	{"brev.b64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return bits.Reverse64(a) }},
	{"bfind.u32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(bits.Len32(uint32(a)) - 1) }},
	{"bfind.s32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(bits.Len32(uint32(i32(a)^i32(a)>>31)) - 1) }},
	{"bfind.s64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 { return uint64(bits.Len64(a^uint64(int64(a)>>63)) - 1) }},
	{"bfind.shiftamt.u32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 {
		if a == 0 {
			return math.MaxUint32
		}
		return uint64(bits.LeadingZeros32(uint32(a)))
	}},
	{"mov.b64 D, {A, B}", [4]int{64, 32, 32}, func(a, b, c uint64) uint64 { return b<<32 | a }},
	{"mov.b32 D, {A, B}", [4]int{32, 16, 16}, func(a, b, c uint64) uint64 { return b<<16 | a }},
	{"mov.b64 D, {A, B, C, A}", [4]int{64, 16, 16, 16}, func(a, b, c uint64) uint64 { return a | b<<16 | c<<32 | a<<48 }},
	{"mov.b64 {_, D}, A", [4]int{32, 64}, func(a, b, c uint64) uint64 { return a >> 32 }},
	{"mov.b64 {%h1, %h2, D, %h3}, A", [4]int{16, 64}, func(a, b, c uint64) uint64 { return a >> 32 }},

	{"setp.eq.s32 D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(a == b) }},
	{"setp.ne.b64 D, A, B", [4]int{1, 64, 64}, func(a, b, c uint64) uint64 { return b2u(a != b) }},
	{"setp.lt.u32 D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(a < b) }},
	{"setp.lt.s32 D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(i32(a) < i32(b)) }},
	{"setp.le.s16 D, A, B", [4]int{1, 16, 16}, func(a, b, c uint64) uint64 { return b2u(i16(a) <= i16(b)) }},
	{"setp.le.u64 D, A, B", [4]int{1, 64, 64}, func(a, b, c uint64) uint64 { return b2u(a <= b) }},
	{"setp.gt.s64 D, A, B", [4]int{1, 64, 64}, func(a, b, c uint64) uint64 { return b2u(int64(a) > int64(b)) }},
	{"setp.ge.u16 D, A, B", [4]int{1, 16, 16}, func(a, b, c uint64) uint64 { return b2u(a >= b) }},
	{"setp.ge.s32 D, A, -1", [4]int{1, 32}, func(a, b, c uint64) uint64 { return b2u(i32(a) >= -1) }},
	{"setp.hi.u32 D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(a > b) }},
	{"setp.ls.u32 D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(a <= b) }},
	{"setp.lt.and.u32 D, A, B, %p6", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(a < b && c&1 != 0) }},
	{"setp.lt.or.s32 D, A, B, !%p6", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(i32(a) < i32(b) || c&1 == 0) }},
	{"setp.eq.xor.u32 %p5|D, A, B, %p6", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u((a != b) != (c&1 != 0)) }},
	{"setp.gt.u32 %p5|D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(a <= b) }},
	{"set.lt.u32.s32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return -b2u(i32(a) < i32(b)) }},
	{"set.ge.and.u32.u64 D, A, B, %p6", [4]int{32, 64, 64}, func(a, b, c uint64) uint64 { return -b2u(a >= b && c&1 != 0) }},
	{"selp.b32 D, A, B, %p6", [4]int{32, 32, 32, 0}, func(a, b, c uint64) uint64 {
		if c&1 != 0 {
			return a
		}
		return b
	}},
	{"selp.u16 D, A, 3, !%p6", [4]int{16, 16, 0, 0}, func(a, b, c uint64) uint64 {
		if c&1 == 0 {
			return a
		}
		return 3
	}},
	{"slct.u64.s32 D, A, B, C", [4]int{64, 64, 64, 32}, func(a, b, c uint64) uint64 {
		if i32(c) >= 0 {
			return a
		}
		return b
	}},
	{"and.pred D, %p6, %p7", [4]int{1}, func(a, b, c uint64) uint64 { return c & (c >> 1) & 1 }},
	{"or.pred D, %p6, %p7", [4]int{1}, func(a, b, c uint64) uint64 { return (c | c>>1) & 1 }},
	{"xor.pred D, %p6, %p7", [4]int{1}, func(a, b, c uint64) uint64 { return (c ^ c>>1) & 1 }},
	{"not.pred D, %p6", [4]int{1}, func(a, b, c uint64) uint64 { return ^c & 1 }},
	{"mov.pred D, %p7", [4]int{1}, func(a, b, c uint64) uint64 { return c >> 1 & 1 }},
	{"mov.pred D, -1", [4]int{1}, func(a, b, c uint64) uint64 { return 1 }},
	{"xor.pred D, %p6, -1", [4]int{1}, func(a, b, c uint64) uint64 { return ^c & 1 }},

	{"cvt.u32.u64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 { return a }},
	{"cvt.u64.u32 D, A", [4]int{64, 32}, func(a, b, c uint64) uint64 { return a }},
	{"cvt.s64.s32 D, A", [4]int{64, 32}, func(a, b, c uint64) uint64 { return uint64(i32(a)) }},
	{"cvt.u64.s32 D, A", [4]int{64, 32}, func(a, b, c uint64) uint64 { return uint64(i32(a)) }},
	{"cvt.s64.u32 D, A", [4]int{64, 32}, func(a, b, c uint64) uint64 { return a }},
	{"cvt.s32.s16 D, A", [4]int{32, 16}, func(a, b, c uint64) uint64 { return uint64(i16(a)) }},
	{"cvt.u32.u16 D, A", [4]int{32, 16}, func(a, b, c uint64) uint64 { return a }},
	{"cvt.u16.u32 D, A", [4]int{16, 32}, func(a, b, c uint64) uint64 { return a }},
	{"cvt.s64.s8 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return uint64(int64(int8(a))) }},
	{"cvt.u32.u8 D, A", [4]int{32, 16}, func(a, b, c uint64) uint64 { return a & 255 }},
	{"cvt.s16.s8 D, A", [4]int{16, 32}, func(a, b, c uint64) uint64 { return uint64(int8(a)) }},
	{"cvt.s8.s32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return uint64(int64(int8(a))) }},
	{"cvt.u8.u32 D, A", [4]int{16, 32}, func(a, b, c uint64) uint64 { return a & 255 }},
	{"cvt.s8.u32 D, A", [4]int{64, 32}, func(a, b, c uint64) uint64 { return uint64(int64(int8(a))) }},

	{"add.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return unfl(fl(a) + fl(b)) }},
	{"sub.f64 D, A, B", [4]int{64, 64, 64}, func(a, b, c uint64) uint64 { return undb(db(a) - db(b)) }},
	{"mul.rn.f32 D, A, 0f3E800000", [4]int{32, 32}, func(a, b, c uint64) uint64 { return unfl(fl(a) * 0.25) }},
	{"div.rn.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 { return unfl(fl(a) / fl(b)) }},
	{"fma.rn.f32 D, A, B, C", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 { return unfl(bigFma(fl(a), fl(b), fl(c))) }},
	{"fma.rn.f64 D, A, B, C", [4]int{64, 64, 64, 64}, func(a, b, c uint64) uint64 { return undb(math.FMA(db(a), db(b), db(c))) }},
	{"sqrt.rn.f64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return undb(math.Sqrt(db(a))) }},
	{"rcp.rn.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return unfl(1 / fl(a)) }},
	{"neg.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return a ^ 1<<31 }},
	{"abs.f64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return a &^ (1 << 63) }},
	{"setp.lt.f32 D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(fl(a) < fl(b)) }},
	{"setp.geu.f64 D, A, B", [4]int{1, 64, 64}, func(a, b, c uint64) uint64 { return b2u(!(db(a) < db(b))) }},
	{"setp.ne.f32 D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(fl(a) < fl(b) || fl(a) > fl(b)) }},
	{"setp.nan.f32 D, A, B", [4]int{1, 32, 32}, func(a, b, c uint64) uint64 { return b2u(fl(a) != fl(a) || fl(b) != fl(b)) }},
	{"min.f32 D, A, B", [4]int{32, 32, 32}, func(a, b, c uint64) uint64 {
		x, y := fl(a), fl(b)
		switch {
		case x != x:
			return canon32(b)
		case y != y || x < y || x == y && math.Signbit(float64(x)):
			return canon32(a)
		}
		return canon32(b)
	}},
	{"cvt.rn.f32.u32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return unfl(float32(uint32(a))) }},
	{"cvt.rn.f64.s64 D, A", [4]int{64, 64}, func(a, b, c uint64) uint64 { return undb(float64(int64(a))) }},
	{"cvt.rn.f32.s16 D, A", [4]int{32, 16}, func(a, b, c uint64) uint64 { return unfl(float32(i16(a))) }},
	{"cvt.f64.f32 D, A", [4]int{64, 32}, func(a, b, c uint64) uint64 { return undb(float64(fl(a))) }},
	{"cvt.rn.f32.f64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 { return unfl(float32(db(a))) }},
	{"cvt.rzi.s32.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 {
		f := float64(fl(a))
		if f != f {
			return 0
		}
		return uint64(int64(max(math.MinInt32, min(math.MaxInt32, math.Trunc(f)))))
	}},
	{"cvt.rni.u32.f64 D, A", [4]int{32, 64}, func(a, b, c uint64) uint64 {
		f := db(a)
		if f != f {
			return 0
		}
		return uint64(max(0, min(math.MaxUint32, math.RoundToEven(f))))
	}},
	{"cvt.rmi.f32.f32 D, A", [4]int{32, 32}, func(a, b, c uint64) uint64 { return unfl(float32(math.Floor(float64(fl(a))))) }},
}

// opModule wraps an instruction into a kernel that loads its operands for each
// thread, runs it under a guard, and stores the result: what it was before, a
// mark, where the guard is false.
func opModule(text string, widths [4]int, guarded bool) string {
	regs := map[int]string{1: "%p", 16: "%h", 32: "%r", 64: "%d"}
	var s strings.Builder
	s.WriteString(`.version 7.8
.target sm_70
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {
.reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<16>; .reg .b64 %d<16>;
mov.u32 %r0, %tid.x;
ld.param.u32 %r1, [n];
setp.ge.u32 %p1, %r0, %r1;
@%p1 bra DONE;
mul.wide.u32 %d0, %r0, 32;
ld.param.u64 %d1, [in];
add.s64 %d1, %d1, %d0;
ld.param.u64 %d2, [out];
mul.wide.u32 %d0, %r0, 8;
add.s64 %d2, %d2, %d0;
ld.global.u32 %r1, [%d1+16];
and.b32 %r2, %r1, 1;
setp.ne.u32 %p6, %r2, 0;
and.b32 %r2, %r1, 2;
setp.ne.u32 %p7, %r2, 0;
ld.global.u32 %r1, [%d1+24];
setp.ne.u32 %p2, %r1, 0;
`)
	text = " " + text + " "
	for i, letter := range "DABC" {
		w := widths[i]
		if w == 0 {
			continue
		}
		reg := fmt.Sprintf("%s%d", regs[w], 10+i)
		for _, sep := range []string{" ", ",", "}", "|", ";"} {
			for _, pre := range []string{" ", "{", "|"} {
				text = strings.ReplaceAll(text, pre+string(letter)+sep, pre+reg+sep)
			}
		}
		switch {
		case i > 0:
			fmt.Fprintf(&s, "ld.global.b%d %s, [%%d1+%d];\n", w, reg, 8*(i-1))
		case w == 1:
			fmt.Fprintf(&s, "setp.ne.u32 %s, 1, 1;\n", reg)
		default:
			fmt.Fprintf(&s, "mov.b%d %s, 21845;\n", w, reg)
		}
	}
	if guarded {
		s.WriteString("@%p2 ")
		text = strings.ReplaceAll(text, "; ", "; @%p2 ")
	}
	s.WriteString(strings.TrimSpace(text) + ";\n")
	switch w := widths[0]; w {
	case 1:
		s.WriteString("selp.u64 %d3, 1, 0, %p10;\n")
	case 64:
		s.WriteString("mov.b64 %d3, %d10;\n")
	default:
		fmt.Fprintf(&s, "cvt.u64.u%d %%d3, %s10;\n", w, regs[w])
	}
	s.WriteString("st.global.u64 [%d2], %d3;\nDONE: ret;\n}\n")
	return s.String()
}

var special64 = []uint64{0, 1, 2, 3, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000,
	0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64, math.MaxUint64 - 1,
	0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0xbf800000, 0x4f000000, 0x00800001, 1,
	0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x3ff0000000000000, 0x41e0000000000000, 0xc1e0000000200000}

func randomOperand(r *rand.Rand) uint64 {
	switch r.IntN(4) {
	case 0:
		return special64[r.IntN(len(special64))]
	case 1:
		return -special64[r.IntN(len(special64))]
	case 2:
		return r.Uint64() >> r.IntN(64)
	}
	return r.Uint64()
}

func TestOps(t *testing.T) {
	const threads = 205 // the last warp is partly full
	for _, c := range opCases {
		for _, guarded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/guarded=%t", c.text, guarded), func(t *testing.T) {
				m, err := Parse("op", []byte(opModule(c.text, c.widths, guarded)))
				require.NoError(t, err)
				k, _ := m.Kernel("k")
				rnd := rand.New(rand.NewPCG(1, 2))
				in, out := make([]byte, 32*threads), make([]byte, 8*threads)
				for i := range threads * 4 {
					binary.LittleEndian.PutUint64(in[8*i:], randomOperand(rnd))
				}
				for i := range threads {
					binary.LittleEndian.PutUint64(in[32*i+24:], uint64(rnd.IntN(2)))
				}
				runAll(t, k, testMemory{{Base: base, Data: in}, {Base: 2 * base, Data: out}}, Launch{
					Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{224, 1, 1}, Params: params(uint64(base), uint64(2*base), uint32(threads))})
				for i := range threads {
					var v [3]uint64
					for j := range v {
						v[j] = binary.LittleEndian.Uint64(in[32*i+8*j:])
						if w := c.widths[j+1]; w != 0 {
							v[j] &= mask(uint8(w))
						}
					}
					want := c.twin(v[0], v[1], v[2]) & mask(uint8(c.widths[0]))
					if guarded && in[32*i+24] == 0 {
						want = 21845 * b2u(c.widths[0] != 1)
					}
					got := binary.LittleEndian.Uint64(out[8*i:])
					require.Equalf(t, want, got, "thread %d: A %#x, B %#x, C %#x: want %#x, got %#x", i, v[0], v[1], v[2], want, got)
				}
			})
		}
	}
}

// TestCarry adds and subtracts 128-bit numbers with condition codes.
func TestCarry(t *testing.T) {
	text := "add.cc.u32 %r3, A, B; addc.cc.u32 %r4, A, B; addc.u32 D, C, 0"
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, sub := range []bool{false, true} {
		if sub {
			text = strings.NewReplacer("add", "sub").Replace(text)
		}
		m, err := Parse("carry", []byte(opModule(text, [4]int{32, 32, 32, 32}, false)))
		require.NoError(t, err)
		k, _ := m.Kernel("k")
		in, out := make([]byte, 32*64), make([]byte, 8*64)
		for i := range 64 * 4 {
			binary.LittleEndian.PutUint64(in[8*i:], randomOperand(rnd))
		}
		runAll(t, k, testMemory{{Base: base, Data: in}, {Base: 2 * base, Data: out}}, Launch{
			Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: params(uint64(base), uint64(2*base), uint32(64))})
		for i := range 64 {
			le := binary.LittleEndian
			a, b, c := le.Uint32(in[32*i:]), le.Uint32(in[32*i+8:]), le.Uint32(in[32*i+16:])
			var carry uint32
			step := bits.Add32
			if sub {
				step = bits.Sub32
			}
			_, carry = step(a, b, 0)
			_, carry = step(a, b, carry)
			want, _ := step(c, 0, carry)
			require.Equal(t, want, le.Uint32(out[8*i:]), "%#x %#x %#x", a, b, c)
		}
	}
}

// TestEveryOp runs each op once: it has a name and a case in the switch.
func TestEveryOp(t *testing.T) {
	for o := opBad; o < opEnd; o++ {
		require.NotEmpty(t, o.String(), "op %d has no name", uint8(o))
		code := []inst{
			{op: o, guard: -1, p: 1, size: 4, vec: 1, space: spaceGlobal, target: 1, join: 1, mask: math.MaxUint64},
			{op: opExit, guard: -1},
		}
		k := &Kernel{name: "k", code: code, text: []string{""}, sources: []string{""}, calls: []callSite{{to: target{start: 1}}}, local: 64, slots: 1, preds: 2, maxThreads: MaxThreads, barriers: true}
		r := start(t, k, nil, Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}})
		_, err := r.Step(1)
		if o == opBad {
			require.ErrorIs(t, err, ErrBadInstruction)
		} else {
			require.NotErrorIs(t, err, ErrBadInstruction, "op %s has no case", o)
		}
	}
	require.Equal(t, "op 250", op(250).String())
}
