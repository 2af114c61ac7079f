package ptx

type lowering func(b *builder, c *cursor) error

// lowerings has a function for each instruction name.
var lowerings = map[string]lowering{
	"mov": lowerMov, "cvt": lowerCvt, "cvta": lowerCvta,
	"add": lowerAdd, "sub": lowerAdd, "addc": lowerCarry, "subc": lowerCarry,
	"mul": lowerMul, "mad": lowerMad, "fma": lowerFma,
	"div": lowerBinary, "rem": lowerBinary, "min": lowerBinary, "max": lowerBinary,
	"neg": lowerUnary, "abs": lowerUnary, "sad": lowerSad,
	"sqrt": lowerFloatUnary, "rcp": lowerFloatUnary,

	"and": lowerLogic, "or": lowerLogic, "xor": lowerLogic, "not": lowerNot, "cnot": lowerNot,
	"shl": lowerShift, "shr": lowerShift, "shf": lowerShf, "lop3": lowerLop3, "prmt": lowerPrmt,
	"bfe": lowerBfe, "bfi": lowerBfi, "popc": lowerCount, "clz": lowerCount, "brev": lowerBrev, "bfind": lowerBfind,

	"setp": lowerSetp, "set": lowerSet, "selp": lowerSelp, "slct": lowerSlct,

	"ld": lowerLd, "ldu": lowerLd, "st": lowerSt, "atom": lowerAtom, "red": lowerAtom,
	"prefetch": lowerPrefetch, "prefetchu": lowerPrefetch,

	"shfl": lowerShfl, "vote": lowerVote, "match": lowerMatch, "activemask": lowerActive,
	"bar": lowerBar, "barrier": lowerBar, "membar": lowerFence, "fence": lowerFence,

	"bra": lowerBra, "brx": lowerBrx, "ret": lowerExit, "exit": lowerExit, "trap": lowerTrap,
	"nanosleep": lowerNanosleep,
}

// intOps are the ops of instructions of two operands on integers, unsigned and
// signed, and the code of the same on floats.
var intOps = map[string]struct {
	u, s op
	f    uint8
}{
	"add": {opAdd, opAdd, floatAdd}, "sub": {opSub, opSub, floatSub},
	"div": {opDivU, opDivS, floatDiv}, "rem": {opRemU, opRemS, floatNone},
	"min": {opMinU, opMinS, floatMin}, "max": {opMaxU, opMaxS, floatMax},
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
		return carry(b, c, flagCarryOut)
	}
	return lowerBinary(b, c)
}

// lowerCarry is addc and subc, with or without .cc.
func lowerCarry(b *builder, c *cursor) error {
	flags := uint16(flagCarryIn)
	if c.opt("cc") != "" {
		flags |= flagCarryOut
	}
	return carry(b, c, flags)
}

func carry(b *builder, c *cursor, flags uint16) error {
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
	ops := intOps[b.in.name]
	c.opt("rn") // the only rounding there is here
	classes := "us"
	if ops.f != floatNone {
		classes = "usf"
	}
	t, err := c.typ(classes, 16, 32, 64)
	if err != nil {
		return err
	}
	o := ops.u
	switch t.class {
	case classInt:
		o = ops.s
	case classFloat:
		o = opFloat2
	}
	n, err := b.two(o, t)
	if err != nil {
		return err
	}
	n.sub = ops.f
	return c.end()
}

// lowerMul is mul.lo, mul.hi, mul.wide and mul on floats.
func lowerMul(b *builder, c *cursor) error {
	part := c.opt("lo", "hi", "wide")
	if part == "" {
		c.opt("rn")
		t, err := c.typ("f", 32, 64)
		if err != nil {
			return err
		}
		n, err := b.two(opFloat2, t)
		if err != nil {
			return err
		}
		n.sub = floatMul
		return c.end()
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
		return lowerFma(b, c)
	}
	t, err := c.typ("us", 16, 32, 64)
	if err != nil {
		return err
	}
	o := opMad
	switch {
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

// lowerFma is fma, and mad on floats, which is the same since sm_20.
func lowerFma(b *builder, c *cursor) error {
	if _, err := c.one("rn"); err != nil {
		return err
	}
	t, err := c.typ("f", 32, 64)
	if err != nil {
		return err
	}
	if _, err := b.three(opFloat3, t, t, t); err != nil {
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
	t, err := c.typ("sf", 16, 32, 64)
	if err != nil {
		return err
	}
	o, f := opNeg, uint8(floatNeg)
	if b.in.name == "abs" {
		o, f = opAbs, floatAbs
	}
	if t.class == classFloat {
		o = opFloat1
	}
	n, err := b.one(o, t)
	if err != nil {
		return err
	}
	n.sub = f
	return c.end()
}

// lowerFloatUnary is sqrt and rcp, correctly rounded.
func lowerFloatUnary(b *builder, c *cursor) error {
	if _, err := c.one("rn"); err != nil {
		return err
	}
	t, err := c.typ("f", 32, 64)
	if err != nil {
		return err
	}
	n, err := b.one(opFloat1, t)
	if err != nil {
		return err
	}
	n.sub = floatSqrt
	if b.in.name == "rcp" {
		n.sub = floatRcp
	}
	return c.end()
}
