package ptx

import (
	"maps"
	"slices"
)

var comparisonNames = slices.Collect(maps.Keys(comparisons))

// compareSpec is what the modifiers of setp and set say: the comparison, an operator
// that combines its result with a predicate, the operands' type, and the result's.
type compareSpec struct {
	t, to        dtype
	cmp, combine string
	ftz          bool
}

// pair reports whether the operands have two elements.
func (s compareSpec) pair() bool { return s.t.class == classF16x2 || s.t.class == classBF16x2 }

// compare reads the modifiers of setp, or with result those of set.
func (b *builder) compare(c *cursor, result bool) (s compareSpec, err error) {
	if s.cmp = c.opt(comparisonNames...); s.cmp == "" {
		if len(c.mods) == 0 {
			return s, b.errorf("lacks a comparison")
		}
		return s, b.errorf("modifier .%s is not supported here", c.mods[0])
	}
	s.combine = c.opt("and", "or", "xor")
	s.ftz = c.opt("ftz") != ""
	if result {
		if s.to, err = c.resultType(); err != nil {
			return
		}
	}
	classes := comparisons[s.cmp].classes
	if t, ok := c.floating(); ok && t.class > classPred && classes[len(classes)-1] == 'f' {
		s.t = t
		switch t.class {
		case classF16, classBF16, classF16x2, classBF16x2:
			err = c.exactly(t)
		default:
			err = b.errorf("type %s is not supported here", t)
		}
	} else {
		s.t, err = c.typ(classes, 16, 32, 64)
	}
	switch {
	case err != nil:
		return
	case s.ftz && s.t != typeF32 && s.t.class != classF16 && s.t.class != classF16x2:
		return s, b.errorf("modifier .ftz is not supported here")
	case result && !s.results():
		return s, b.errorf("type %s is not supported here", s.to)
	}
	return s, c.end()
}

// resultType takes the type of what set returns.
func (c *cursor) resultType() (dtype, error) {
	if len(c.mods) > 0 {
		if t, ok := typeNames[c.mods[0]]; ok && t.class > classPred {
			c.mods = c.mods[1:]
			return t, nil
		}
	}
	return c.typ("usf", 16, 32)
}

// results reports whether set returns such a type for such operands.
func (s compareSpec) results() bool {
	half := s.t.class == classF16 || s.t.class == classBF16
	switch s.to.class {
	case classUint, classInt, classFloat:
		return !s.pair() && (s.to.bits == 32 || half)
	case classF16, classBF16:
		return half
	case classF16x2, classBF16x2, classU16x2, classS16x2:
		return s.pair()
	}
	return false
}

// one is the value of a type that set returns where the comparison holds.
func one(t dtype) uint64 {
	switch f, _ := formatOf(t); t.class {
	case classFloat, classF16, classBF16:
		return encode(1, f, roundNearest, false)
	case classF16x2:
		return encode(1, fmtF16, roundNearest, false)
	case classBF16x2:
		return encode(1, fmtBF16, roundNearest, false)
	case classU16x2, classS16x2:
		return 0xffff
	}
	return mask(t.bits)
}

// emitOne appends the comparison of x and y, or of the upper elements of both, into p.
func (b *builder) emitOne(s compareSpec, x, y, p int32, upper bool) error {
	cm := comparisons[s.cmp]
	o := cm.u
	if s.t.signed() {
		o = cm.s
	}
	swap := cm.swap
	f, _ := formatOf(s.t)
	switch {
	case s.t.class == classFloat && !s.ftz:
		o, swap = opSetF, false
	case s.t.floating():
		o, swap = opSetX, false
	}
	if swap {
		x, y = y, x
	}
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.p, n.a, n.b, n.sub, n.fmt = p, x, y, floatCompares[s.cmp], f
	n.width(s.t)
	if s.ftz {
		n.flags |= flagFtz
	}
	if s.pair() {
		n.flags |= flagPair
	}
	if upper {
		n.flags |= flagFirst
	}
	return nil
}

// emitCompare appends the comparison of sources first and first+1 into p and, when q
// is not -1, into q: its opposite, or the comparison of the upper elements of pairs;
// each combined with a predicate.
func (b *builder) emitCompare(s compareSpec, first int, p, q int32) error {
	x, err := b.src(first, s.t)
	if err != nil {
		return err
	}
	y, err := b.src(first+1, s.t)
	if err != nil {
		return err
	}
	if s.combine == "" && q < 0 {
		return b.emitOne(s, x, y, p, false)
	}
	start := len(b.code)
	tmp, other := b.newPred(), b.newPred()
	if err := b.emitOne(s, x, y, tmp, false); err != nil {
		return err
	}
	if s.pair() {
		err = b.emitOne(s, x, y, other, true)
	} else {
		err = b.emitPred(opPredNot, other, tmp, 0)
	}
	if err != nil {
		return err
	}
	with := int32(0)
	if s.combine != "" {
		c, not, err := b.predSrc(first + 2)
		if err != nil {
			return err
		}
		o := opPredMov
		if not {
			o = opPredNot
		}
		// A copy: p may be the same register as the predicate to combine with.
		with = b.newPred()
		if err := b.emitPred(o, with, c, 0); err != nil {
			return err
		}
	}
	o := map[string]op{"and": opPredAnd, "or": opPredOr, "xor": opPredXor, "": opPredMov}[s.combine]
	if err := b.emitPred(o, p, tmp, with); err != nil {
		return err
	}
	if q >= 0 {
		if err := b.emitPred(o, q, other, with); err != nil {
			return err
		}
	}
	b.keepGuard(start)
	return nil
}

func (b *builder) emitPred(o op, p, x, y int32) error {
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.p, n.elems[0], n.elems[1] = p, x, y
	return nil
}

func lowerSetp(b *builder, c *cursor) error {
	s, err := b.compare(c, false)
	if err != nil {
		return err
	}
	want := 3
	if s.combine != "" {
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
	return b.emitCompare(s, 1, p, q)
}

// lowerSet is set: a comparison whose result is one or zero, all ones where it is an
// integer.
func lowerSet(b *builder, c *cursor) error {
	s, err := b.compare(c, true)
	if err != nil {
		return err
	}
	want := 3
	if s.combine != "" {
		want = 4
	}
	if err := b.count(want, want); err != nil {
		return err
	}
	d, err := b.dest(0, s.to)
	if err != nil {
		return err
	}
	p, q := b.newPred(), int32(-1)
	if s.pair() {
		q = b.newPred()
	}
	if err := b.emitCompare(s, 1, p, q); err != nil {
		return err
	}
	if !s.pair() {
		return b.emitPredSet(d, p, one(s.to))
	}
	lo, hi := b.newSlot(), b.newSlot()
	if err := b.emitPredSet(lo, p, one(s.to)); err != nil {
		return err
	}
	if err := b.emitPredSet(hi, q, one(s.to)<<16); err != nil {
		return err
	}
	n, err := b.guarded(opOr)
	if err != nil {
		return err
	}
	n.d, n.a, n.b = d, lo, hi
	return nil
}

// emitPredSet makes a value of a predicate, or zero.
func (b *builder) emitPredSet(d, p int32, value uint64) error {
	n, err := b.guarded(opPredSet)
	if err != nil {
		return err
	}
	n.d, n.p, n.mask = d, p, value
	return nil
}
