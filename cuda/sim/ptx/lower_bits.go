package ptx

func lowerLogic(b *builder, c *cursor) error {
	t, err := c.typ("bp", 16, 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	ops := map[string][2]op{"and": {opAnd, opPredAnd}, "or": {opOr, opPredOr}, "xor": {opXor, opPredXor}}[b.in.name]
	if t.class != classPred {
		_, err := b.two(ops[0], t)
		return err
	}
	if err := b.count(3, 3); err != nil {
		return err
	}
	return b.predicate(ops[1])
}

// predicate reads p, a and perhaps b, all predicates, into an op. Sources have
// no negation here, but may be constants.
func (b *builder) predicate(o op) error {
	slots := [3]int32{}
	for i, a := range b.in.args {
		if i > 0 && a.kind == argInt {
			slots[i] = b.constantPred(a.num != 0)
			continue
		}
		p, not, err := b.predSrc(i)
		if err != nil {
			return err
		}
		if not {
			return b.errorf("! does not belong here")
		}
		slots[i] = p
	}
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.p, n.a, n.b = slots[0], slots[1], slots[2]
	return nil
}

// constantPred returns a predicate that has just been set to a constant.
func (b *builder) constantPred(v bool) int32 {
	n := b.inst(opSetEq)
	if !v {
		n.op = opSetNe
	}
	n.p = b.newPred()
	return n.p
}

func lowerNot(b *builder, c *cursor) error {
	classes := "bp"
	o := opNot
	if b.in.name == "cnot" {
		classes, o = "b", opCnot
	}
	t, err := c.typ(classes, 16, 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if t.class == classPred {
		if err := b.count(2, 2); err != nil {
			return err
		}
		return b.predicate(opPredNot)
	}
	_, err = b.one(o, t)
	return err
}

// lowerShift is shl and shr; the count is a 32-bit number whatever the type.
func lowerShift(b *builder, c *cursor) error {
	o, classes := opShl, "b"
	if b.in.name == "shr" {
		o, classes = opShrU, "bus"
	}
	t, err := c.typ(classes, 16, 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if t.signed() {
		o = opShrS
	}
	if err := b.count(3, 3); err != nil {
		return err
	}
	d, err := b.dest(0, t)
	if err != nil {
		return err
	}
	x, err := b.src(1, t)
	if err != nil {
		return err
	}
	y, err := b.src(2, typeU32)
	if err != nil {
		return err
	}
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.d, n.a, n.b = d, x, y
	n.width(t)
	return nil
}

func lowerShf(b *builder, c *cursor) error {
	dir, err := c.one("l", "r")
	if err != nil {
		return err
	}
	mode, err := c.one("wrap", "clamp")
	if err != nil {
		return err
	}
	t, err := c.typ("b", 32)
	if err != nil {
		return err
	}
	o := opShfL
	if dir == "r" {
		o = opShfR
	}
	n, err := b.three(o, t, t, typeU32)
	if err != nil {
		return err
	}
	if mode == "clamp" {
		n.flags |= flagClamp
	}
	return c.end()
}

func lowerLop3(b *builder, c *cursor) error {
	t, err := c.typ("b", 32)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(5, 5); err != nil {
		return err
	}
	table := b.in.args[4]
	if table.kind != argInt || table.num > 255 {
		return b.errorf("the table is no number from 0 to 255")
	}
	args := b.in.args
	b.in.args = args[:4]
	n, err := b.three(opLop3, t, t, t)
	b.in.args = args
	if err != nil {
		return err
	}
	n.sub = uint8(table.num)
	return nil
}

var prmtModes = map[string]uint8{"": 0, "f4e": 1, "b4e": 2, "rc8": 3, "ecl": 4, "ecr": 5, "rc16": 6}

func lowerPrmt(b *builder, c *cursor) error {
	t, err := c.typ("b", 32)
	if err != nil {
		return err
	}
	mode := c.opt("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
	n, err := b.three(opPrmt, t, t, t)
	if err != nil {
		return err
	}
	n.sub = prmtModes[mode]
	return c.end()
}

func lowerBfe(b *builder, c *cursor) error {
	t, err := c.typ("us", 32, 64)
	if err != nil {
		return err
	}
	o := opBfeU
	if t.signed() {
		o = opBfeS
	}
	if _, err := b.three(o, t, typeU32, typeU32); err != nil {
		return err
	}
	return c.end()
}

// lowerBfi is bfi d, a, b, pos, len; the fourth source goes into elems.
func lowerBfi(b *builder, c *cursor) error {
	t, err := c.typ("b", 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(5, 5); err != nil {
		return err
	}
	length, err := b.src(4, typeU32)
	if err != nil {
		return err
	}
	args := b.in.args
	b.in.args = args[:4]
	n, err := b.three(opBfi, t, t, typeU32)
	b.in.args = args
	if err != nil {
		return err
	}
	n.elems[0] = length
	return nil
}

// lowerCount is popc and clz: a 32-bit result of a 32- or 64-bit source.
func lowerCount(b *builder, c *cursor) error {
	o := opPopc
	if b.in.name == "clz" {
		o = opClz
	}
	return b.toU32(c, o, "b")
}

func lowerBfind(b *builder, c *cursor) error {
	shift := c.opt("shiftamt") != ""
	if err := b.toU32(c, opFindU, "us"); err != nil {
		return err
	}
	n := &b.code[len(b.code)-1]
	if b.in.mods[len(b.in.mods)-1][0] == 's' {
		n.op = opFindS
	}
	if shift {
		n.flags |= flagShift
	}
	return nil
}

func (b *builder) toU32(c *cursor, o op, classes string) error {
	t, err := c.typ(classes, 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(2, 2); err != nil {
		return err
	}
	d, err := b.dest(0, typeU32)
	if err != nil {
		return err
	}
	x, err := b.src(1, t)
	if err != nil {
		return err
	}
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.d, n.a = d, x
	n.width(t)
	return nil
}

func lowerBrev(b *builder, c *cursor) error {
	t, err := c.typ("b", 32, 64)
	if err != nil {
		return err
	}
	if _, err := b.one(opBrev, t); err != nil {
		return err
	}
	return c.end()
}

// lowerMov is mov between registers, from special registers and constants, of
// variables' addresses, and between a register and a vector.
func lowerMov(b *builder, c *cursor) error {
	t, err := c.typ("busfp", 16, 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(2, 2); err != nil {
		return err
	}
	d, s := b.in.args[0], b.in.args[1]
	switch {
	case t.class == classPred:
		return b.predicate(opPredMov)
	case d.kind == argVec && t.class == classBits:
		return b.unpack(t, d.vec, s)
	case s.kind == argVec && t.class == classBits:
		return b.pack(t, d, s.vec)
	case s.name == "%clock" || s.name == "%clock64" || s.name == "%clock_hi":
		return b.clock(t, s.name)
	}
	_, err = b.one(opMov, t)
	return err
}

func (b *builder) clock(t dtype, name string) error {
	want := typeU32
	if name == "%clock64" {
		want.bits = 64
	}
	if !want.agrees(t) {
		return b.errorf("%s is %s, not %s", name, want, t)
	}
	d, err := b.dest(0, t)
	if err != nil {
		return err
	}
	n, err := b.guarded(opClock)
	if err != nil {
		return err
	}
	n.d = d
	n.width(t)
	if name == "%clock_hi" {
		n.sub = 32
	}
	return nil
}

// element returns the type of one of n parts of t.
func (b *builder) element(t dtype, n int) (dtype, error) {
	if n != 2 && n != 4 || int(t.bits)/n < 16 {
		return dtype{}, b.errorf("vector of %d in %s", n, t)
	}
	return dtype{classBits, t.bits / uint8(n)}, nil
}

func (b *builder) unpack(t dtype, vec []arg, s arg) error {
	e, err := b.element(t, len(vec))
	if err != nil {
		return err
	}
	x, err := b.source(s, t)
	if err != nil {
		return err
	}
	// Through a fresh slot: the source may be one of the destinations.
	tmp := x
	if len(vec) > 0 {
		tmp = b.newSlot()
		n, err := b.guarded(opMov)
		if err != nil {
			return err
		}
		n.d, n.a = tmp, x
	}
	for i, v := range vec {
		if v.kind == argSink {
			continue
		}
		d, _, err := b.register(v, e, dtype.agrees)
		if err != nil {
			return err
		}
		n, err := b.guarded(opUnpack)
		if err != nil {
			return err
		}
		n.d, n.a, n.sh, n.mask = d, tmp, uint8(i)*e.bits, mask(e.bits)
	}
	return nil
}

func (b *builder) pack(t dtype, d arg, vec []arg) error {
	e, err := b.element(t, len(vec))
	if err != nil {
		return err
	}
	dst, _, err := b.register(d, t, dtype.agrees)
	if err != nil {
		return err
	}
	var elems [4]int32
	for i, v := range vec {
		if elems[i], err = b.source(v, e); err != nil {
			return err
		}
	}
	n, err := b.guarded(opPack)
	if err != nil {
		return err
	}
	n.d, n.elems, n.vec, n.sh, n.mask = dst, elems, uint8(len(vec)), e.bits, mask(t.bits)
	return nil
}

// comparisons are the integer comparisons of setp and set: the op, whether its
// operands are swapped and whether its result is inverted.
type comparison struct {
	u, s    op
	swap    bool
	classes string
}

var comparisons = map[string]comparison{
	"eq": {opSetEq, opSetEq, false, "busf"}, "ne": {opSetNe, opSetNe, false, "busf"},
	"lt": {opSetLtU, opSetLtS, false, "usf"}, "le": {opSetLeU, opSetLeS, false, "usf"},
	"gt": {opSetLtU, opSetLtS, true, "usf"}, "ge": {opSetLeU, opSetLeS, true, "usf"},
	"lo": {opSetLtU, opBad, false, "u"}, "ls": {opSetLeU, opBad, false, "u"},
	"hi": {opSetLtU, opBad, true, "u"}, "hs": {opSetLeU, opBad, true, "u"},
	"equ": {classes: "f"}, "neu": {classes: "f"}, "ltu": {classes: "f"}, "leu": {classes: "f"},
	"gtu": {classes: "f"}, "geu": {classes: "f"}, "num": {classes: "f"}, "nan": {classes: "f"},
}

// compare reads what setp and set share: the comparison, an operator that
// combines its result with a predicate, and (with result) the result's type.
func (b *builder) compare(c *cursor, result bool) (t, to dtype, cmp string, combine string, err error) {
	if len(c.mods) == 0 {
		return t, to, "", "", b.errorf("lacks a comparison")
	}
	cmp = c.mods[0]
	cm, ok := comparisons[cmp]
	if !ok {
		return t, to, "", "", b.errorf("modifier .%s is not supported here", cmp)
	}
	c.mods = c.mods[1:]
	combine = c.opt("and", "or", "xor")
	if result {
		if to, err = c.typ("us", 32); err != nil {
			return
		}
	}
	if t, err = c.typ(cm.classes, 16, 32, 64); err != nil {
		return
	}
	return t, to, cmp, combine, c.end()
}

// emitCompare appends the comparison of sources first and first+1 into p and,
// when q is not -1, its opposite into q, each combined with a predicate.
func (b *builder) emitCompare(t dtype, cmp, combine string, first int, p, q int32) error {
	x, err := b.src(first, t)
	if err != nil {
		return err
	}
	y, err := b.src(first+1, t)
	if err != nil {
		return err
	}
	cm := comparisons[cmp]
	o := cm.u
	if t.signed() {
		o = cm.s
	}
	swap := cm.swap
	if t.class == classFloat {
		o, swap = opSetF, false
	}
	if swap {
		x, y = y, x
	}
	if combine == "" && q < 0 {
		n, err := b.guarded(o)
		if err != nil {
			return err
		}
		n.p, n.a, n.b, n.sub = p, x, y, floatCompares[cmp]
		n.width(t)
		return nil
	}
	start := len(b.code)
	tmp := b.newPred()
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.p, n.a, n.b, n.sub = tmp, x, y, floatCompares[cmp]
	n.width(t)
	inverse := b.newPred()
	if n, err = b.guarded(opPredNot); err != nil {
		return err
	}
	n.p, n.a = inverse, tmp
	with := int32(-1)
	if combine != "" {
		s, not, err := b.predSrc(first + 2)
		if err != nil {
			return err
		}
		// A copy: p may be the same register as the predicate to combine with.
		with = b.newPred()
		if n, err = b.guarded(opPredMov); err != nil {
			return err
		}
		n.p, n.a = with, s
		if not {
			n.op = opPredNot
		}
	}
	combines := map[string]op{"and": opPredAnd, "or": opPredOr, "xor": opPredXor, "": opPredMov}
	for _, out := range [...]struct{ dst, src int32 }{{p, tmp}, {q, inverse}} {
		if out.dst < 0 {
			continue
		}
		if n, err = b.guarded(combines[combine]); err != nil {
			return err
		}
		n.p, n.a, n.b = out.dst, out.src, max(with, 0)
	}
	b.keepGuard(start)
	return nil
}

// keepGuard makes the ops from start on look at a copy of their guard: one of
// them may write the guard itself.
func (b *builder) keepGuard(start int) {
	if b.in.guard == "" {
		return
	}
	first := b.code[start]
	kept := b.newPred()
	b.code = append(b.code, inst{})
	copy(b.code[start+1:], b.code[start:])
	b.code[start] = inst{op: opPredMov, guard: -1, p: kept, q: -1, a: first.guard, join: -1, line: first.line, srcInst: first.srcInst}
	for i := start + 1; i < len(b.code); i++ {
		b.code[i].guard = kept
	}
}

func lowerSetp(b *builder, c *cursor) error {
	t, _, cmp, combine, err := b.compare(c, false)
	if err != nil {
		return err
	}
	want := 3
	if combine != "" {
		want = 4
	}
	if err := b.count(want, want); err != nil {
		return err
	}
	out := b.in.args[0]
	q := int32(-1)
	if out.pair != nil {
		if out.pair.not {
			return b.errorf("! does not belong here")
		}
		if q, err = b.pred(*out.pair); err != nil {
			return err
		}
		out.pair = nil
	}
	if out.not {
		return b.errorf("! does not belong here")
	}
	p, err := b.pred(out)
	if err != nil {
		return err
	}
	return b.emitCompare(t, cmp, combine, 1, p, q)
}

// lowerSet is set: a comparison whose result is all ones or zero.
func lowerSet(b *builder, c *cursor) error {
	t, to, cmp, combine, err := b.compare(c, true)
	if err != nil {
		return err
	}
	want := 3
	if combine != "" {
		want = 4
	}
	if err := b.count(want, want); err != nil {
		return err
	}
	d, err := b.dest(0, to)
	if err != nil {
		return err
	}
	p := b.newPred()
	if err := b.emitCompare(t, cmp, combine, 1, p, -1); err != nil {
		return err
	}
	n, err := b.guarded(opPredSet)
	if err != nil {
		return err
	}
	n.d, n.p = d, p
	n.width(to)
	return nil
}

func lowerSelp(b *builder, c *cursor) error {
	t, err := c.typ("busfp", 16, 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if t.class == classPred {
		return b.errorf("type .pred is not supported here")
	}
	if err := b.count(4, 4); err != nil {
		return err
	}
	p, not, err := b.predSrc(3)
	if err != nil {
		return err
	}
	args := b.in.args
	b.in.args = args[:3]
	n, err := b.two(opSelp, t)
	b.in.args = args
	if err != nil {
		return err
	}
	n.p = p
	if not {
		n.flags |= flagNot
	}
	return nil
}

// lowerSlct is slct: a where c is not negative, b where it is.
func lowerSlct(b *builder, c *cursor) error {
	t, err := c.typ("busf", 16, 32, 64)
	if err != nil {
		return err
	}
	by, err := c.typ("s", 32)
	if err != nil {
		return err
	}
	n, err := b.three(opSlct, t, t, by)
	if err != nil {
		return err
	}
	n.width(by)
	return c.end()
}
