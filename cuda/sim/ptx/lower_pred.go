package ptx

import (
	"maps"
	"slices"
)

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

var comparisonNames = slices.Collect(maps.Keys(comparisons))

// compare reads what setp and set share: the comparison, an operator that
// combines its result with a predicate, and (with result) the result's type.
func (b *builder) compare(c *cursor, result bool) (t, to dtype, cmp string, combine string, err error) {
	if cmp = c.opt(comparisonNames...); cmp == "" {
		if len(c.mods) == 0 {
			return t, to, "", "", b.errorf("lacks a comparison")
		}
		return t, to, "", "", b.errorf("modifier .%s is not supported here", c.mods[0])
	}
	cm := comparisons[cmp]
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
	n.p, n.elems[0] = inverse, tmp
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
		n.p, n.elems[0] = with, s
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
		n.p, n.elems[0], n.elems[1] = out.dst, out.src, max(with, 0)
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
	b.code[start] = inst{op: opPredMov, guard: -1, p: kept, q: -1, elems: [8]int32{first.guard}, join: -1, line: first.line, srcInst: first.srcInst}
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
