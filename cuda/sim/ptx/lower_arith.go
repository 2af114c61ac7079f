package ptx

type lowering func(b *builder, c *cursor) error

// lowerings has a function for each instruction name.
var lowerings = map[string]lowering{
	"mov": lowerMov, "cvt": lowerCvt, "cvta": lowerCvta, "isspacep": lowerIsspacep,
	"add": lowerAdd, "sub": lowerAdd, "addc": lowerCarry, "subc": lowerCarry,
	"mul": lowerMul, "mad": lowerMad, "madc": lowerMadc, "mul24": lowerMul24, "mad24": lowerMul24,
	"div": lowerBinary, "rem": lowerBinary, "min": lowerBinary, "max": lowerBinary,
	"neg": lowerUnary, "abs": lowerUnary, "sad": lowerSad, "dp4a": lowerDot, "dp2a": lowerDot,

	"fma": lowerFloat, "sqrt": lowerFloat, "rcp": lowerFloat, "rsqrt": lowerFloat, "copysign": lowerFloat,
	"sin": lowerFloat, "cos": lowerFloat, "lg2": lowerFloat, "ex2": lowerFloat, "tanh": lowerFloat, "testp": lowerTestp,

	"and": lowerLogic, "or": lowerLogic, "xor": lowerLogic, "not": lowerNot, "cnot": lowerNot,
	"shl": lowerShift, "shr": lowerShift, "shf": lowerShf, "lop3": lowerLop3, "prmt": lowerPrmt,
	"bfe": lowerBfe, "bfi": lowerBfi, "popc": lowerCount, "clz": lowerCount, "brev": lowerBrev, "bfind": lowerBfind,
	"bmsk": lowerBmsk, "szext": lowerSzext, "fns": lowerFns,

	"setp": lowerSetp, "set": lowerSet, "selp": lowerSelp, "slct": lowerSlct,

	"ld": lowerLd, "ldu": lowerLd, "st": lowerSt, "atom": lowerAtom, "red": lowerAtom,
	"prefetch": lowerPrefetch, "prefetchu": lowerPrefetch, "applypriority": lowerPrefetch, "discard": lowerPrefetch,
	"createpolicy": lowerCreatePolicy, "cp": lowerCp,

	"shfl": lowerShfl, "vote": lowerVote, "match": lowerMatch, "activemask": lowerActive, "redux": lowerRedux, "elect": lowerElect,
	"bar": lowerBar, "barrier": lowerBar, "membar": lowerFence, "fence": lowerFence,

	"bra": lowerBra, "brx": lowerBrx, "call": lowerCall, "ret": lowerRet, "exit": lowerExit, "trap": lowerTrap, "brkpt": lowerTrap,
	"nanosleep": lowerNanosleep, "griddepcontrol": lowerHint, "setmaxnreg": lowerHint, "pmevent": lowerHint,
}

// intOps are the ops of instructions of two operands on integers, unsigned and
// signed.
var intOps = map[string]struct{ u, s op }{
	"add": {opAdd, opAdd}, "sub": {opSub, opSub}, "div": {opDivU, opDivS}, "rem": {opRemU, opRemS},
	"min": {opMinU, opMinS}, "max": {opMaxU, opMaxS},
}

// two reads d, a, b of type t into an op.
func (b *builder) two(o op, t dtype) (*inst, error) {
	if err := b.count(3, 3); err != nil {
		return nil, err
	}
	d, err := b.dest(0, t)
	if err != nil {
		return nil, err
	}
	x, err := b.src(1, t)
	if err != nil {
		return nil, err
	}
	y, err := b.src(2, t)
	if err != nil {
		return nil, err
	}
	n, err := b.guarded(o)
	if err != nil {
		return nil, err
	}
	n.d, n.a, n.b = d, x, y
	n.width(t)
	return n, nil
}

// one reads d, a of type t into an op.
func (b *builder) one(o op, t dtype) (*inst, error) {
	if err := b.count(2, 2); err != nil {
		return nil, err
	}
	d, err := b.dest(0, t)
	if err != nil {
		return nil, err
	}
	x, err := b.src(1, t)
	if err != nil {
		return nil, err
	}
	n, err := b.guarded(o)
	if err != nil {
		return nil, err
	}
	n.d, n.a = d, x
	n.width(t)
	return n, nil
}

// three reads d, a, b, c into an op; c has a type of its own.
func (b *builder) three(o op, t, tb, tc dtype) (*inst, error) {
	if err := b.count(4, 4); err != nil {
		return nil, err
	}
	d, err := b.dest(0, t)
	if err != nil {
		return nil, err
	}
	x, err := b.src(1, t)
	if err != nil {
		return nil, err
	}
	y, err := b.src(2, tb)
	if err != nil {
		return nil, err
	}
	z, err := b.src(3, tc)
	if err != nil {
		return nil, err
	}
	n, err := b.guarded(o)
	if err != nil {
		return nil, err
	}
	n.d, n.a, n.b, n.c = d, x, y, z
	n.width(t)
	return n, nil
}

func lowerAdd(b *builder, c *cursor) error {
	if c.opt("cc") != "" {
		return b.carry(c, flagCarryOut)
	}
	if len(c.mods) > 0 && c.mods[0] == "sat" {
		if _, ok := c.floating(); !ok {
			return b.saturating(c)
		}
	}
	return lowerBinary(b, c)
}

// lowerCarry is addc and subc, with or without .cc.
func lowerCarry(b *builder, c *cursor) error {
	flags := uint32(flagCarryIn)
	if c.opt("cc") != "" {
		flags |= flagCarryOut
	}
	return b.carry(c, flags)
}

func (b *builder) carry(c *cursor, flags uint32) error {
	t, err := c.typ("us", 32, 64)
	if err != nil {
		return err
	}
	o := opAddCC
	if b.in.name[:3] == "sub" {
		o = opSubCC
	}
	n, err := b.two(o, t)
	if err != nil {
		return err
	}
	n.flags = flags
	return c.end()
}

func lowerBinary(b *builder, c *cursor) error {
	if _, ok := c.floating(); ok {
		return b.float(c)
	}
	ops := intOps[b.in.name]
	minMax := ops.u == opMinU || ops.u == opMaxU
	relu := minMax && c.opt("relu") != ""
	if len(c.mods) > 0 && (minMax || ops.u == opAdd || ops.u == opSub) {
		if t := typeNames[c.mods[0]]; t.class == classU16x2 || t.class == classS16x2 {
			return b.halves(c, t, relu)
		}
	}
	t, err := c.typ("us", 16, 32, 64)
	if err != nil {
		return err
	}
	if relu && t != (dtype{classInt, 32}) {
		return b.errorf("modifier .relu is not supported here")
	}
	o := ops.u
	if t.signed() {
		o = ops.s
	}
	n, err := b.two(o, t)
	if err != nil {
		return err
	}
	if relu {
		d := n.d
		if n, err = b.guarded(opMaxS); err != nil {
			return err
		}
		n.d, n.a, n.b = d, d, b.constant(0)
		n.width(t)
	}
	return c.end()
}

// lowerMul is mul.lo, mul.hi, mul.wide and mul on floats.
func lowerMul(b *builder, c *cursor) error {
	part := c.opt("lo", "hi", "wide")
	if part == "" {
		return b.float(c)
	}
	t, err := c.typ("us", 16, 32, 64)
	if err != nil {
		return err
	}
	o := opMul
	switch {
	case part == "hi" && t.signed():
		o = opMulHiS
	case part == "hi":
		o = opMulHiU
	case part == "wide":
		return b.wide(c, t, 3, opMulWideU, opMulWideS)
	}
	if _, err := b.two(o, t); err != nil {
		return err
	}
	return c.end()
}

// wide is mul.wide and mad.wide: a result, and an addend, of twice the width.
func (b *builder) wide(c *cursor, t dtype, args int, u, s op) error {
	if t.bits == 64 {
		return b.errorf("type %s is not supported here", t)
	}
	if err := b.count(args, args); err != nil {
		return err
	}
	w := dtype{t.class, 2 * t.bits}
	d, err := b.dest(0, w)
	if err != nil {
		return err
	}
	x, err := b.src(1, t)
	if err != nil {
		return err
	}
	y, err := b.src(2, t)
	if err != nil {
		return err
	}
	z := int32(0)
	if args == 4 {
		if z, err = b.src(3, w); err != nil {
			return err
		}
	}
	o := u
	if t.signed() {
		o = s
	}
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.d, n.a, n.b, n.c = d, x, y, z
	n.sh, n.mask = 64-t.bits, mask(w.bits)
	return c.end()
}

func lowerMad(b *builder, c *cursor) error {
	part := c.opt("lo", "hi", "wide")
	if part == "" {
		return b.float(c)
	}
	if c.opt("cc") != "" {
		return b.madCarry(c, part, flagCarryOut)
	}
	sat := part == "hi" && c.opt("sat") != ""
	t, err := c.typ("us", 16, 32, 64)
	if err != nil {
		return err
	}
	if sat && t != (dtype{classInt, 32}) {
		return b.errorf("modifier .sat is not supported here")
	}
	o := opMad
	switch {
	case sat:
		return b.thenSaturate(c, t)
	case part == "hi" && t.signed():
		o = opMadHiS
	case part == "hi":
		o = opMadHiU
	case part == "wide":
		return b.wide(c, t, 4, opMadWideU, opMadWideS)
	}
	if _, err := b.three(o, t, t, t); err != nil {
		return err
	}
	return c.end()
}

func lowerSad(b *builder, c *cursor) error {
	t, err := c.typ("us", 16, 32, 64)
	if err != nil {
		return err
	}
	o := opSadU
	if t.signed() {
		o = opSadS
	}
	if _, err := b.three(o, t, t, t); err != nil {
		return err
	}
	return c.end()
}

func lowerUnary(b *builder, c *cursor) error {
	if _, ok := c.floating(); ok {
		return b.float(c)
	}
	t, err := c.typ("s", 16, 32, 64)
	if err != nil {
		return err
	}
	o := opNeg
	if b.in.name == "abs" {
		o = opAbs
	}
	if _, err := b.one(o, t); err != nil {
		return err
	}
	return c.end()
}
