package ptx

import "strings"

// floatSpec is an instruction on floating-point numbers: what it computes, of how
// many operands, and for each type which modifiers it takes:
//
//	r, R  any rounding, R: it must be there
//	n, N  to nearest only
//	a, A  .approx, A: it must be there
//	f     .full
//	z, Z  .ftz, Z: it must be there
//	s     .sat
//	l     .relu
//	m     .NaN
//	x     .xorsign.abs
type floatSpec struct {
	what  uint8
	args  int
	types map[string]string
}

var (
	addTypes   = map[string]string{"f32": "rzs", "f64": "r", "f16": "nzs", "f16x2": "nzs", "bf16": "n", "bf16x2": "n", "f32x2": "rz"}
	fmaTypes   = map[string]string{"f32": "Rzs", "f64": "R", "f16": "Nzsl", "f16x2": "Nzsl", "bf16": "Nl", "bf16x2": "Nl", "f32x2": "Rz"}
	signTypes  = map[string]string{"f32": "z", "f64": "", "f16": "z", "f16x2": "z", "bf16": "", "bf16x2": ""}
	minTypes   = map[string]string{"f32": "zmx", "f64": "", "f16": "zmx", "f16x2": "zmx", "bf16": "mx", "bf16x2": "mx"}
	waveTypes  = map[string]string{"f32": "Az"}
	floatSpecs = map[string]floatSpec{
		"add": {floatAdd, 2, addTypes}, "sub": {floatSub, 2, addTypes}, "mul": {floatMul, 2, addTypes},
		"fma": {floatFma, 3, fmaTypes}, "mad": {floatFma, 3, map[string]string{"f32": "Rzs", "f64": "R"}},
		"div": {floatDiv, 2, map[string]string{"f32": "rafz", "f64": "R"}},
		"neg": {floatNeg, 1, signTypes}, "abs": {floatAbs, 1, signTypes},
		"min": {floatMin, 2, minTypes}, "max": {floatMax, 2, minTypes},
		"copysign": {floatCopysign, 2, map[string]string{"f32": "", "f64": ""}},
		"rcp":      {floatRcp, 1, map[string]string{"f32": "raz", "f64": "raz"}},
		"sqrt":     {floatSqrt, 1, map[string]string{"f32": "raz", "f64": "R"}},
		"rsqrt":    {floatRsqrt, 1, map[string]string{"f32": "Az", "f64": "Az"}},
		"sin":      {floatSin, 1, waveTypes}, "cos": {floatCos, 1, waveTypes}, "lg2": {floatLg2, 1, waveTypes},
		"ex2":  {floatEx2, 1, map[string]string{"f32": "Az", "f16": "A", "f16x2": "A", "bf16": "AZ", "bf16x2": "AZ"}},
		"tanh": {floatTanh, 1, map[string]string{"f32": "A", "f16": "A", "f16x2": "A", "bf16": "A", "bf16x2": "A"}},
	}
)

func lowerFloat(b *builder, c *cursor) error { return b.float(c) }

// floatMods reads the modifiers of an instruction in the order that they have in
// the ISA into an op without operands.
func (b *builder) floatMods(c *cursor, spec floatSpec, takes string) (n inst, err error) {
	has := func(letter string) bool { return strings.Contains(takes, letter) }
	n.sub = spec.what
	kind := c.opt("rn", "rz", "rm", "rp", "approx", "full")
	switch {
	case kind == "approx" && (has("a") || has("A")):
		switch {
		case spec.what == floatDiv:
			n.sub = floatDivApprox
		case spec.what == floatRcp && c.mods[len(c.mods)-1] == "f64":
			n.sub = floatRcpTop
		case spec.what == floatRsqrt && c.mods[len(c.mods)-1] == "f64":
			n.sub = floatRsqrtTop
		}
	case kind == "full" && has("f"):
	case kind == "" && !has("R") && !has("N") && !has("A") && !has("a"):
	case kind == "rn" && (has("n") || has("N")):
	case roundingNames[kind] != 0 && (has("r") || has("R")) || kind == "rn" && (has("r") || has("R")):
		n.rnd = roundingNames[kind]
	case kind == "":
		return n, b.errorf("lacks a rounding")
	default:
		return n, b.errorf("modifier .%s is not supported here", kind)
	}
	for _, m := range []struct {
		name, letter string
		flag         uint32
	}{{"ftz", "zZ", flagFtz}, {"sat", "s", flagSat}, {"relu", "l", flagRelu}, {"NaN", "m", flagNaN}, {"xorsign", "x", flagXorSign}} {
		if strings.ContainsAny(takes, m.letter) && c.opt(m.name) != "" {
			n.flags |= m.flag
		}
	}
	if n.flags&flagXorSign != 0 {
		if _, err := c.one("abs"); err != nil {
			return n, err
		}
	}
	if has("Z") && n.flags&flagFtz == 0 {
		return n, b.errorf("lacks .ftz")
	}
	return n, nil
}

// float lowers an instruction of floatSpecs.
func (b *builder) float(c *cursor) error {
	spec := floatSpecs[b.in.name]
	t, ok := c.floating()
	if !ok {
		if len(c.mods) == 0 {
			return b.errorf("lacks a type")
		}
		return b.errorf("modifier .%s is not supported here", c.mods[len(c.mods)-1])
	}
	narrow := t // of a mixed-precision instruction
	if k := len(c.mods) - 2; (t.class == classF16 || t.class == classBF16) && k >= 0 && c.mods[k] == "f32" &&
		(spec.what == floatAdd || spec.what == floatSub || spec.what == floatFma) {
		t = typeF32
	}
	takes, ok := spec.types[t.String()[1:]]
	if !ok {
		return b.errorf("type %s is not supported here", t)
	}
	n, err := b.floatMods(c, spec, takes)
	if err != nil {
		return err
	}
	if err := c.exactly(t); err != nil {
		return err
	}
	args := spec.args
	if narrow != t {
		if err := c.exactly(narrow); err != nil {
			return err
		}
	} else if (spec.what == floatMin || spec.what == floatMax) && t == typeF32 && len(b.in.args) == 4 {
		args = 3
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(args+1, args+1); err != nil {
		return err
	}
	d, err := b.dest(0, t)
	if err != nil {
		return err
	}
	var src [3]int32
	for i := range args {
		wide := narrow == t || spec.what == floatFma && i == 2 || spec.what != floatFma && i == 1
		if wide {
			src[i], err = b.src(i+1, t)
		} else {
			src[i], err = b.widened(i+1, narrow)
		}
		if err != nil {
			return err
		}
	}
	f, count := formatOf(t)
	n.fmt = f
	if count == 2 {
		n.flags |= flagPair
	}
	if args == 3 && spec.args == 2 { // the least or greatest of three
		tmp := b.newSlot()
		if err := b.floatOp(n, t, tmp, src[0], src[1], 0); err != nil {
			return err
		}
		n.flags &^= flagFtz
		return b.floatOp(n, t, d, tmp, src[2], 0)
	}
	return b.floatOp(n, t, d, src[0], src[1], src[2])
}

// floatOp emits an operation, as one of the fast ops where there is one.
func (b *builder) floatOp(like inst, t dtype, d, x, y, z int32) error {
	o := opFloatX
	if t.class == classFloat && like.flags == 0 && like.rnd == roundNearest {
		switch like.sub {
		case floatNeg, floatAbs, floatSqrt, floatRcp:
			o = opFloat1
		case floatAdd, floatSub, floatMul, floatDiv, floatMin, floatMax:
			o = opFloat2
		case floatFma:
			o = opFloat3
		}
	}
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.sub, n.fmt, n.rnd, n.flags = like.sub, like.fmt, like.rnd, like.flags
	n.d, n.a, n.b, n.c = d, x, y, z
	n.width(t)
	return nil
}

// widened converts a source of type t to single precision.
func (b *builder) widened(i int, t dtype) (int32, error) {
	x, err := b.src(i, t)
	if err != nil {
		return 0, err
	}
	n, err := b.guarded(opCvtX)
	if err != nil {
		return 0, err
	}
	n.fmt, _ = formatOf(t)
	n.fmt2 = fmtF32
	n.a, n.d, n.mask = x, b.newSlot(), mask(32)
	return n.d, nil
}

func lowerTestp(b *builder, c *cursor) error {
	what, err := c.one("finite", "infinite", "number", "notanumber", "normal", "subnormal")
	if err != nil {
		return err
	}
	t, err := c.typ("f", 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(2, 2); err != nil {
		return err
	}
	p, err := b.predDest(0)
	if err != nil {
		return err
	}
	x, err := b.src(1, t)
	if err != nil {
		return err
	}
	n, err := b.guarded(opTestp)
	if err != nil {
		return err
	}
	n.p, n.a = p, x
	n.fmt, _ = formatOf(t)
	n.sub = map[string]uint8{"finite": testFinite, "infinite": testInfinite, "number": testNumber,
		"notanumber": testNaN, "normal": testNormal, "subnormal": testSubnormal}[what]
	return nil
}

// predDest returns the slot of a predicate destination.
func (b *builder) predDest(i int) (int32, error) {
	a, err := b.arg(i)
	if err != nil {
		return 0, err
	}
	if a.not {
		return 0, b.errorf("! does not belong here")
	}
	return b.pred(a)
}
