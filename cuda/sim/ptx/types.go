package ptx

import "strconv"

type class uint8

const (
	classBits class = iota
	classUint
	classInt
	classFloat
	classPred
)

// dtype is a fundamental type (section "Fundamental Types").
type dtype struct {
	class class
	bits  uint8 // 0 for predicates
}

var (
	typeU32 = dtype{classUint, 32}
	typeB32 = dtype{classBits, 32}
)

var typeNames = map[string]dtype{
	"b8": {classBits, 8}, "b16": {classBits, 16}, "b32": {classBits, 32}, "b64": {classBits, 64},
	"u8": {classUint, 8}, "u16": {classUint, 16}, "u32": {classUint, 32}, "u64": {classUint, 64},
	"s8": {classInt, 8}, "s16": {classInt, 16}, "s32": {classInt, 32}, "s64": {classInt, 64},
	"f32": {classFloat, 32}, "f64": {classFloat, 64},
	"pred": {classPred, 0},
}

func (t dtype) String() string {
	switch t.class {
	case classBits:
		return ".b" + strconv.Itoa(int(t.bits))
	case classUint:
		return ".u" + strconv.Itoa(int(t.bits))
	case classInt:
		return ".s" + strconv.Itoa(int(t.bits))
	case classFloat:
		return ".f" + strconv.Itoa(int(t.bits))
	}
	return ".pred"
}

func (t dtype) size() int    { return int(t.bits) / 8 }
func (t dtype) signed() bool { return t.class == classInt }

// mask has the bits of a value of that many bits.
func mask(bits uint8) uint64 {
	if bits >= 64 {
		return ^uint64(0)
	}
	return 1<<bits - 1
}

// agrees reports whether a register declared as reg may stand where an
// instruction wants t (section "Operand Size Exceeding Instruction-Type Size"
// and "Type Information for Instructions and Operands": untyped bits go with
// any type of their size, integers of either sign with each other).
func (t dtype) agrees(reg dtype) bool {
	if t.bits != reg.bits || (t.class == classPred) != (reg.class == classPred) {
		return false
	}
	if t.class == classBits || reg.class == classBits {
		return true
	}
	return (t.class == classFloat) == (reg.class == classFloat)
}

// holds reports whether a register declared as reg may hold a value of t that
// is loaded, stored or converted: it may be wider, then the value is extended.
func (t dtype) holds(reg dtype) bool {
	if t.bits == reg.bits {
		return t.agrees(reg)
	}
	if t.class == classFloat {
		return reg.class == classBits && reg.bits > t.bits
	}
	return reg.bits > t.bits && reg.class != classFloat
}
