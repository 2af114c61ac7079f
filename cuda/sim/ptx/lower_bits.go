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

// lowerLop3 is lop3.b32 d, a, b, c, table, and lop3.and.b32 d|p, a, b, c, table, q,
// which also combines whether the result is not zero with a predicate.
func lowerLop3(b *builder, c *cursor) error {
	combine := c.opt("and", "or")
	t, err := c.typ("b", 32)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	args := b.in.args
	want := 5
	if combine != "" {
		want = 6
	}
	if err := b.count(want, want); err != nil {
		return err
	}
	table := args[4]
	if table.kind != argInt || table.num > 255 {
		return b.errorf("the table is no number from 0 to 255")
	}
	if combine == "" {
		b.in.args = args[:4]
		n, err := b.three(opLop3, t, t, t)
		b.in.args = args
		if err != nil {
			return err
		}
		n.sub = uint8(table.num)
		return nil
	}
	if args[0].pair == nil || args[0].pair.not {
		return b.errorf("lacks a predicate beside the destination")
	}
	p, err := b.pred(*args[0].pair)
	if err != nil {
		return err
	}
	q, not, err := b.predSrc(5)
	if err != nil {
		return err
	}
	start := len(b.code)
	plain := append([]arg(nil), args[:4]...)
	plain[0].pair = nil
	b.in.args = plain
	n, err := b.three(opLop3, t, t, t)
	b.in.args = args
	if err != nil {
		return err
	}
	n.sub = uint8(table.num)
	d := n.d
	if d == 0 {
		d = b.newSlot()
	}
	n.d = d
	some, with := b.newPred(), b.newPred()
	if n, err = b.guarded(opSetNe); err != nil {
		return err
	}
	n.p, n.a, n.b = some, d, b.constant(0)
	if n, err = b.guarded(opPredMov); err != nil {
		return err
	}
	n.p, n.elems[0] = with, q
	if not {
		n.op = opPredNot
	}
	if n, err = b.guarded(map[string]op{"and": opPredAnd, "or": opPredOr}[combine]); err != nil {
		return err
	}
	n.p, n.elems[0], n.elems[1] = p, some, with
	b.keepGuard(start)
	return nil
}

// lowerBmsk is bmsk: b ones from bit a on.
func lowerBmsk(b *builder, c *cursor) error {
	mode, err := c.one("clamp", "wrap")
	if err != nil {
		return err
	}
	t, err := c.typ("b", 32)
	if err != nil {
		return err
	}
	n, err := b.two(opBmsk, t)
	if err != nil {
		return err
	}
	if mode == "clamp" {
		n.flags |= flagClamp
	}
	return c.end()
}

// lowerSzext is szext: the low b bits of a, extended.
func lowerSzext(b *builder, c *cursor) error {
	mode, err := c.one("clamp", "wrap")
	if err != nil {
		return err
	}
	t, err := c.typ("us", 32)
	if err != nil {
		return err
	}
	n, err := b.two(opSzext, t)
	if err != nil {
		return err
	}
	if mode == "clamp" {
		n.flags |= flagClamp
	}
	if t.signed() {
		n.flags |= flagSigned
	}
	return c.end()
}

// lowerFns is fns: the place of the n-th bit set from a base on.
func lowerFns(b *builder, c *cursor) error {
	t, err := c.typ("b", 32)
	if err != nil {
		return err
	}
	if _, err := b.three(opFns, t, typeB32, dtype{classInt, 32}); err != nil {
		return err
	}
	return c.end()
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
	_, err := b.toU32(c, o, "b")
	return err
}

func lowerBfind(b *builder, c *cursor) error {
	shift := c.opt("shiftamt") != ""
	t, err := b.toU32(c, opFindU, "us")
	if err != nil {
		return err
	}
	n := &b.code[len(b.code)-1]
	if t.signed() {
		n.op = opFindS
	}
	if shift {
		n.flags |= flagShift
	}
	return nil
}

func (b *builder) toU32(c *cursor, o op, classes string) (t dtype, err error) {
	if t, err = c.typ(classes, 32, 64); err != nil {
		return t, err
	}
	if err := c.end(); err != nil {
		return t, err
	}
	if err := b.count(2, 2); err != nil {
		return t, err
	}
	d, err := b.dest(0, typeU32)
	if err != nil {
		return t, err
	}
	x, err := b.src(1, t)
	if err != nil {
		return t, err
	}
	n, err := b.guarded(o)
	if err != nil {
		return t, err
	}
	n.d, n.a = d, x
	n.width(t)
	return t, nil
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
