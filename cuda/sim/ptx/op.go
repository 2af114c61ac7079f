package ptx

import "fmt"

// op is what the interpreter's switch goes by.
type op uint8

const (
	opBad op = iota // no instruction becomes this

	// Integers. d, a, b, c are slots; mask has the bits of the width, sh is
	// 64 minus it.
	opMov
	opAdd
	opSub
	opMul
	opMulWideU
	opMulWideS
	opMulHiU
	opMulHiS
	opMad
	opMadWideU
	opMadWideS
	opMadHiU
	opMadHiS
	opDivU
	opDivS
	opRemU
	opRemS
	opMinU
	opMinS
	opMaxU
	opMaxS
	opNeg
	opAbs
	opSadU
	opSadS
	opAddCC
	opSubCC
	opCvt

	// Bits.
	opAnd
	opOr
	opXor
	opNot
	opCnot
	opShl
	opShrU
	opShrS
	opShfL
	opShfR
	opLop3
	opPrmt
	opBfeU
	opBfeS
	opBfi
	opPopc
	opClz
	opBrev
	opFindU
	opFindS
	opPack
	opUnpack

	// Predicates and choice.
	opSetEq
	opSetNe
	opSetLtU
	opSetLeU
	opSetLtS
	opSetLeS
	opSetF
	opPredAnd
	opPredOr
	opPredXor
	opPredNot
	opPredMov
	opSelp
	opSlct
	opPredSet // predicates made into a value by set.

	// Floating point.
	opFloat2
	opFloat3
	opFloat1
	opCvtF

	// Memory.
	opLd
	opSt
	opLdParam
	opAtom
	opNop

	// Lanes and threads together.
	opShfl
	opVote
	opMatch
	opActive
	opWarpSync
	opBar
	opClock
	opTimer
	opSleep

	// Control.
	opBra
	opJoin
	opExit
	opTrap

	opEnd
)

var opNames = [opEnd]string{
	opBad: "bad", opMov: "mov", opAdd: "add", opSub: "sub", opMul: "mul.lo",
	opMulWideU: "mul.wide.u", opMulWideS: "mul.wide.s", opMulHiU: "mul.hi.u", opMulHiS: "mul.hi.s",
	opMad: "mad.lo", opMadWideU: "mad.wide.u", opMadWideS: "mad.wide.s", opMadHiU: "mad.hi.u", opMadHiS: "mad.hi.s",
	opDivU: "div.u", opDivS: "div.s", opRemU: "rem.u", opRemS: "rem.s",
	opMinU: "min.u", opMinS: "min.s", opMaxU: "max.u", opMaxS: "max.s", opNeg: "neg", opAbs: "abs",
	opSadU: "sad.u", opSadS: "sad.s", opAddCC: "add.cc", opSubCC: "sub.cc", opCvt: "cvt",
	opAnd: "and", opOr: "or", opXor: "xor", opNot: "not", opCnot: "cnot", opShl: "shl", opShrU: "shr.u", opShrS: "shr.s",
	opShfL: "shf.l", opShfR: "shf.r", opLop3: "lop3", opPrmt: "prmt", opBfeU: "bfe.u", opBfeS: "bfe.s", opBfi: "bfi",
	opPopc: "popc", opClz: "clz", opBrev: "brev", opFindU: "bfind.u", opFindS: "bfind.s", opPack: "pack", opUnpack: "unpack",
	opSetEq: "setp.eq", opSetNe: "setp.ne", opSetLtU: "setp.lt.u", opSetLeU: "setp.le.u", opSetLtS: "setp.lt.s", opSetLeS: "setp.le.s",
	opSetF: "setp.f", opSelp: "selp", opSlct: "slct", opPredAnd: "and.pred", opPredOr: "or.pred", opPredXor: "xor.pred",
	opPredNot: "not.pred", opPredMov: "mov.pred", opPredSet: "set",
	opFloat2: "float of two", opFloat3: "float of three", opFloat1: "float of one", opCvtF: "cvt.f",
	opLd: "ld", opSt: "st", opLdParam: "ld.param", opAtom: "atom", opNop: "nop",
	opShfl: "shfl", opVote: "vote", opMatch: "match", opActive: "activemask", opWarpSync: "bar.warp", opBar: "bar", opClock: "clock",
	opTimer: "globaltimer", opSleep: "nanosleep",
	opBra: "bra", opJoin: "join", opExit: "exit", opTrap: "trap",
}

func (o op) String() string {
	if o < opEnd {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// writesPred reports whether the result is a predicate.
func (o op) writesPred() bool { return o >= opSetEq && o <= opPredMov }

// space is a state space (section "State Spaces").
type space uint8

const (
	spaceGeneric space = iota
	spaceGlobal
	spaceShared
	spaceLocal
	spaceParam
)

var spaceNames = [...]string{"generic", "global", "shared", "local", "param"}

func (s space) String() string { return spaceNames[s] }

// Where the other spaces lie in the generic address space: far above user-space
// addresses.
const (
	windowShared = 0xa1 << 56
	windowLocal  = 0xa2 << 56
	windowParam  = 0xa3 << 56
)

// inst is one lowered instruction. Operands are slots of the register file:
// constants, parameters at fixed places and special registers have slots too,
// filled before the kernel starts, so no op has immediate forms.
type inst struct {
	op      op
	sub     uint8 // what exactly, for families: atomic operation, shuffle mode, comparison
	sh      uint8 // 64 minus the width
	sh2     uint8 // cvt: 64 minus the width of the result
	size    uint8 // bytes of one element of an access
	vec     uint8 // elements of an access
	space   space
	flags   uint16
	guard   int32 // predicate slot, -1 without
	invert  uint32
	d, a    int32
	b, c    int32
	p, q    int32 // predicate slots, -1 without
	mask    uint64
	mask2   uint64
	imm     int64    // address offset
	elems   [4]int32 // registers of a vector; further sources; sources of ops on predicates
	target  int32
	join    int32 // where the lanes of a branch meet again; -1: nowhere before they exit
	line    int32
	srcInst int32 // index of the source instruction, for its text
}

// flags
const (
	flagSigned   = 1 << iota // sign-extend what is loaded or converted
	flagSigned2              // cvt: sign-extend the result into a wider register
	flagCarryIn              // addc, subc
	flagCarryOut             // .cc
	flagNot                  // invert the predicate source
	flagWrite                // red: no result
	flagClamp                // shf.clamp
	flagShift                // bfind.shiftamt
	flagCount                // bar.sync with a thread count
	flagFloat                // cvt: the source is floating point
	flagFloat2               // cvt: the result is
)
