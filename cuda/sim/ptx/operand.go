package ptx

import (
	"math"
	"strings"
)

// resolve finds a register's declaration: by its name, or as one of a range.
func (b *builder) resolve(name string) (dtype, regKey, bool) {
	prefix := strings.TrimRight(name, "0123456789")
	number := name[len(prefix):]
	for sc := b.in.scope; sc != nil; sc = sc.up {
		if t, ok := sc.regs[name]; ok {
			return t, regKey{sc, name}, true
		}
		r, ok := sc.ranges[prefix]
		if !ok || number == "" || len(number) > 9 || len(number) > 1 && number[0] == '0' {
			continue
		}
		n := uint64(0)
		for _, c := range []byte(number) {
			n = n*10 + uint64(c-'0')
		}
		if n < r.count {
			return r.typ, regKey{sc, name}, true
		}
	}
	return dtype{}, regKey{}, false
}

func (b *builder) variable(name string) *variable {
	for sc := b.in.scope; sc != nil; sc = sc.up {
		if v := sc.vars[name]; v != nil {
			return v
		}
	}
	return nil
}

func (b *builder) newSlot() int32 {
	b.k.slots++
	return int32(b.k.slots - 1)
}

func (b *builder) constant(v uint64) int32 {
	s, ok := b.constSlots[v]
	if !ok {
		s = b.newSlot()
		b.constSlots[v] = s
		b.k.consts = append(b.k.consts, constSlot{s, v})
	}
	return s
}

// register returns the slot of a register that fits, by fit, type t.
func (b *builder) register(a arg, t dtype, fit func(t, reg dtype) bool) (int32, dtype, error) {
	if a.kind != argName || a.not || a.off != 0 {
		return 0, dtype{}, b.errorf("operand is not a register")
	}
	reg, key, ok := b.resolve(a.name)
	if !ok {
		return 0, dtype{}, b.errorf("unknown register %s", a.name)
	}
	if reg.class == classPred || !fit(t, reg) {
		return 0, dtype{}, b.errorf("register %s is %s, not %s", a.name, reg, t)
	}
	s, ok := b.regSlots[key]
	if !ok {
		s = b.newSlot()
		b.regSlots[key] = s
		b.fn.regs = append(b.fn.regs, s)
	}
	return s, reg, nil
}

// dest returns the slot of a destination of exactly t's width.
func (b *builder) dest(i int, t dtype) (int32, error) {
	a, err := b.arg(i)
	if err != nil {
		return 0, err
	}
	if a.kind == argSink {
		return b.newSlot(), nil
	}
	s, _, err := b.register(a, t, dtype.agrees)
	return s, err
}

// src returns the slot of a source of type t: a register or a constant.
func (b *builder) src(i int, t dtype) (int32, error) {
	a, err := b.arg(i)
	if err != nil {
		return 0, err
	}
	return b.source(a, t)
}

func (b *builder) source(a arg, t dtype) (int32, error) {
	switch {
	case a.kind == argInt && t.floating() && t.class != classF16x2 && t.class != classBF16x2 && t.class != classF16 && t.class != classBF16:
		return 0, b.errorf("integer constant where %s belongs", t)
	case a.kind == argInt:
		if v := int64(a.num); a.num > mask(t.bits) && (v >= 0 || v < -1<<(t.bits-1)) {
			return 0, b.errorf("constant %d does not fit %s", v, t)
		}
		return b.constant(a.num & mask(t.bits)), nil
	case a.kind == argFloat && a.bits == 0 && t == typeF32:
		return b.constant(uint64(math.Float32bits(float32(f64(a.num))))), nil
	case a.kind == argFloat:
		if t.class != classFloat && t.class != classBits || t.bits != a.bits && (a.bits != 0 || t.bits != 64) {
			return 0, b.errorf("floating-point constant where %s belongs", t)
		}
		return b.constant(a.num), nil
	case a.kind == argName && !a.not:
		if k, ok := specialNames[a.name]; ok && a.off == 0 {
			return b.special(k, t)
		}
		if v := b.variable(a.name); v != nil {
			return b.variableAddress(v, a.off, t)
		}
		if e := b.t.function[a.name]; e != nil && t.bits == 64 && !t.floating() && a.off == 0 {
			if _, _, isReg := b.resolve(a.name); !isReg {
				return b.constant(functionAddress(e)), nil
			}
		}
	}
	s, _, err := b.register(a, t, dtype.agrees)
	return s, err
}

func (b *builder) arg(i int) (arg, error) {
	if i >= len(b.in.args) {
		return arg{}, b.errorf("%d operands are too few", len(b.in.args))
	}
	if a := b.in.args[i]; a.pair == nil {
		return a, nil
	}
	return arg{}, b.errorf("a pair of predicates does not belong here")
}

// count checks the number of operands.
func (b *builder) count(least, most int) error {
	if n := len(b.in.args); n < least || n > most {
		if least == most {
			return b.errorf("%d operands instead of %d", n, least)
		}
		return b.errorf("%d operands instead of %d to %d", n, least, most)
	}
	return nil
}

// pred returns the slot of a predicate register.
func (b *builder) pred(a arg) (int32, error) {
	if a.kind == argSink {
		return b.newPred(), nil
	}
	if a.kind != argName || a.off != 0 {
		return 0, b.errorf("operand is not a predicate")
	}
	reg, key, ok := b.resolve(a.name)
	if !ok {
		return 0, b.errorf("unknown register %s", a.name)
	}
	if reg.class != classPred {
		return 0, b.errorf("register %s is %s, not .pred", a.name, reg)
	}
	s, ok := b.predSlots[key]
	if !ok {
		s = b.newPred()
		b.predSlots[key] = s
		b.fn.preds = append(b.fn.preds, s)
	}
	return s, nil
}

func (b *builder) newPred() int32 {
	b.k.preds++
	return int32(b.k.preds - 1)
}

// predSrc returns the slot of a predicate source and whether it is inverted.
func (b *builder) predSrc(i int) (int32, bool, error) {
	a, err := b.arg(i)
	if err != nil {
		return 0, false, err
	}
	if a.kind == argSink {
		return 0, false, b.errorf("_ as a source")
	}
	p, err := b.pred(a)
	return p, a.not, err
}
