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
	opAddSat
	opSubSat
	opHalves
	opMul24
	opDot
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
	opBmsk
	opSzext
	opFns

	// Predicates and choice.
	opSetEq
	opSetNe
	opSetLtU
	opSetLeU
	opSetLtS
	opSetLeS
	opSetF
	opSetX // in any format
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
	opFloatX // any of these in any format, with all modifiers
	opCvtF
	opCvtX // conversions with another format, rounding or modifier
	opCvtPack
	opTestp

	// Memory.
	opLd
	opSt
	opLdParam
	opAtom
	opFence
	opCopyAsync
	opCopyCommit
	opCopyWait
	opIsspacep
	opNop

	// Lanes and threads together.
	opShfl
	opVote
	opMatch
	opRedux
	opElect
	opActive
	opWarpSync
	opBar
	opClock
	opTimer
	opSleep

	// Control.
	opBra
	opJoin
	opCall
	opCallPointer
	opRet
	opPrint
	opAssert
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
	opSadU: "sad.u", opSadS: "sad.s", opAddCC: "add.cc", opSubCC: "sub.cc",
	opAddSat: "add.sat", opSubSat: "sub.sat", opHalves: "16x2", opMul24: "mul24", opDot: "dp", opCvt: "cvt",
	opAnd: "and", opOr: "or", opXor: "xor", opNot: "not", opCnot: "cnot", opShl: "shl", opShrU: "shr.u", opShrS: "shr.s",
	opShfL: "shf.l", opShfR: "shf.r", opLop3: "lop3", opPrmt: "prmt", opBfeU: "bfe.u", opBfeS: "bfe.s", opBfi: "bfi",
	opPopc: "popc", opClz: "clz", opBrev: "brev", opFindU: "bfind.u", opFindS: "bfind.s", opPack: "pack", opUnpack: "unpack",
	opBmsk: "bmsk", opSzext: "szext", opFns: "fns",
	opSetEq: "setp.eq", opSetNe: "setp.ne", opSetLtU: "setp.lt.u", opSetLeU: "setp.le.u", opSetLtS: "setp.lt.s", opSetLeS: "setp.le.s",
	opSetF: "setp.f", opSetX: "setp.x", opSelp: "selp", opSlct: "slct", opPredAnd: "and.pred", opPredOr: "or.pred", opPredXor: "xor.pred",
	opPredNot: "not.pred", opPredMov: "mov.pred", opPredSet: "set",
	opFloat2: "float of two", opFloat3: "float of three", opFloat1: "float of one", opFloatX: "float", opCvtF: "cvt.f", opCvtX: "cvt.x", opCvtPack: "cvt.pack", opTestp: "testp",
	opLd: "ld", opSt: "st", opLdParam: "ld.param", opAtom: "atom", opFence: "fence",
	opCopyAsync: "cp.async", opCopyCommit: "cp.async.commit", opCopyWait: "cp.async.wait", opIsspacep: "isspacep", opNop: "nop",
	opShfl: "shfl", opVote: "vote", opMatch: "match", opRedux: "redux", opElect: "elect", opActive: "activemask", opWarpSync: "bar.warp", opBar: "bar", opClock: "clock",
	opTimer: "globaltimer", opSleep: "nanosleep",
	opBra: "bra", opJoin: "join", opCall: "call", opCallPointer: "call through a pointer", opRet: "ret", opPrint: "vprintf", opAssert: "__assertfail", opExit: "exit", opTrap: "trap",
}

func (o op) String() string {
	if o < opEnd {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// ends reports whether a lane that executes the op leaves the code of its function.
func (o op) ends() bool { return o == opExit || o == opRet }

// writesPred reports whether the result is a predicate.
func (o op) writesPred() bool {
	return o >= opSetEq && o <= opPredMov || o == opTestp || o == opIsspacep || o == opElect
}

// space is a state space (section "State Spaces").
type space uint8

const (
	spaceGeneric space = iota
	spaceGlobal
	spaceShared
	spaceLocal
	spaceParam
	spaceConst
)

var spaceNames = [...]string{"generic", "global", "shared", "local", "param", "const"}

func (s space) String() string { return spaceNames[s] }

// Where the other spaces lie in the generic address space: far above user-space
// addresses.
const (
	windowShared = 0xa1 << 56
	windowLocal  = 0xa2 << 56
	windowParam  = 0xa3 << 56
	windowCode   = 0xa4 << 56
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
	fmt     uint8 // the floating-point format of operands
	fmt2    uint8 // cvt: of the result
	rnd     rounding
	flags   uint32
	guard   int32 // predicate slot, -1 without
	invert  uint32
	d, a    int32
	b, c    int32
	p, q    int32 // predicate slots, -1 without
	mask    uint64
	mask2   uint64
	imm     int64    // address offset
	elems   [8]int32 // registers of a vector; further sources; sources of ops on predicates
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
	flagFtz                  // subnormal operands and results are zero
	flagSat                  // clamp to [0, 1], or to the type's range
	flagRelu                 // negative results and NaN are zero
	flagNaN                  // min, max: NaN if an operand is
	flagXorSign              // min, max: of magnitudes, with the sign of the product
	flagFinite               // cvt: what is too large is the largest finite value
	flagFirst                // cvt: pack two sources, the first above
	flagPair                 // two elements in one register
	flagStrong               // an access that other threads see: volatile, relaxed and stronger, or atomic
	flagIgnore               // cp.async: a predicate says which lanes copy zeros
	flagAll                  // cp.async.wait_all
	flagArrive               // bar.arrive
	flagCluster              // barrier.cluster
)
