package ptx

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
	n.p, n.elems[0], n.elems[1] = slots[0], slots[1], slots[2]
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
	b.code[start] = inst{op: opPredMov, guard: -1, p: kept, q: -1, elems: [8]int32{first.guard}, join: -1, line: first.line, srcInst: first.srcInst}
	for i := start + 1; i < len(b.code); i++ {
		b.code[i].guard = kept
	}
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

// lowerSlct is slct: a where c is not negative, b where it is, or is NaN.
func lowerSlct(b *builder, c *cursor) error {
	ftz := c.opt("ftz") != ""
	t, err := c.typ("busf", 16, 32, 64)
	if err != nil {
		return err
	}
	by, err := c.typ("sf", 32)
	if err != nil {
		return err
	}
	if ftz && by != typeF32 {
		return b.errorf("modifier .ftz is not supported here")
	}
	if err := c.end(); err != nil {
		return err
	}
	n, err := b.three(opSlct, t, t, by)
	if err != nil || by != typeF32 {
		if n != nil {
			n.width(by)
		}
		return err
	}
	d, x, y, z := n.d, n.a, n.b, n.c
	p := b.newPred()
	n.op, n.p, n.a, n.b, n.c, n.d = opSetX, p, z, b.constant(0), 0, 0
	n.fmt, n.sub = fmtF32, floatCompares["ge"]
	if ftz {
		n.flags |= flagFtz
	}
	if n, err = b.guarded(opSelp); err != nil {
		return err
	}
	n.d, n.a, n.b, n.p = d, x, y, p
	return nil
}
