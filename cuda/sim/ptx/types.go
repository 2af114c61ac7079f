package ptx

// class is what the bits of a type mean.
type class uint8

const (
	classBits class = iota
	classUint
	classInt
	classFloat // f32 and f64
	classPred

	// Alternate and packed formats (section "Alternate Floating-Point Data
	// Formats" and "Packed Floating Point Data Types").
	classF16
	classBF16
	classTF32
	classF16x2
	classBF16x2
	classF32x2
	classE4M3x2
	classE5M2x2
	classE2M3x2
	classE3M2x2
	classE2M1x2
	classUE8M0x2
	classU16x2
	classS16x2
)

// dtype is a fundamental type (section "Fundamental Types") or a packed one.
type dtype struct {
	class class
	bits  uint8 // 0 for predicates
}

var (
	typeU32 = dtype{classUint, 32}
	typeU64 = dtype{classUint, 64}
	typeB32 = dtype{classBits, 32}
	typeB64 = dtype{classBits, 64}
	typeF32 = dtype{classFloat, 32}
)

var typeNames = map[string]dtype{
	"b8": {classBits, 8}, "b16": {classBits, 16}, "b32": {classBits, 32}, "b64": {classBits, 64},
	"u8": {classUint, 8}, "u16": {classUint, 16}, "u32": {classUint, 32}, "u64": {classUint, 64},
	"s8": {classInt, 8}, "s16": {classInt, 16}, "s32": {classInt, 32}, "s64": {classInt, 64},
	"f16": {classF16, 16}, "bf16": {classBF16, 16}, "tf32": {classTF32, 32}, "f32": {classFloat, 32}, "f64": {classFloat, 64},
	"f16x2": {classF16x2, 32}, "bf16x2": {classBF16x2, 32}, "f32x2": {classF32x2, 64},
	"e4m3x2": {classE4M3x2, 16}, "e5m2x2": {classE5M2x2, 16}, "e2m3x2": {classE2M3x2, 16}, "e3m2x2": {classE3M2x2, 16},
	"e2m1x2": {classE2M1x2, 8}, "ue8m0x2": {classUE8M0x2, 16}, "u16x2": {classU16x2, 32}, "s16x2": {classS16x2, 32},
	"pred": {classPred, 0},
}

var nameOfType = func() map[dtype]string {
	names := map[dtype]string{}
	for name, t := range typeNames {
		names[t] = "." + name
	}
	return names
}()

func (t dtype) String() string { return nameOfType[t] }

func (t dtype) size() int    { return int(t.bits) / 8 }
func (t dtype) signed() bool { return t.class == classInt }

// floating reports whether values of t are floating point, packed or not.
func (t dtype) floating() bool {
	switch t.class {
	case classBits, classUint, classInt, classPred, classU16x2, classS16x2:
		return false
	}
	return true
}

// declarable reports whether a register or variable may be declared as t (section
// "Fundamental Types": alternate formats live in registers of untyped bits).
func (t dtype) declarable() bool {
	switch t.class {
	case classBits, classUint, classInt, classFloat, classPred, classF16, classF16x2:
		return true
	}
	return false
}

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
	if t.floating() || reg.floating() {
		return t.class == reg.class
	}
	return true
}

// holds reports whether a register declared as reg may hold a value of t that
// is loaded, stored or converted: it may be wider, then the value is extended.
func (t dtype) holds(reg dtype) bool {
	if t.bits == reg.bits {
		return t.agrees(reg)
	}
	if t.floating() {
		return reg.class == classBits && reg.bits > t.bits
	}
	return reg.bits > t.bits && !reg.floating() && reg.class != classPred
}
