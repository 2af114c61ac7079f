package ptx

// saturating is add.sat and sub.sat on integers.
func (b *builder) saturating(c *cursor) error {
	c.opt("sat")
	t, err := c.typ("s", 32)
	if err != nil {
		return err
	}
	o := opAddSat
	if b.in.name == "sub" {
		o = opSubSat
	}
	if _, err := b.two(o, t); err != nil {
		return err
	}
	return c.end()
}

// halves is an instruction on the two 16-bit halves of a register.
func (b *builder) halves(c *cursor, t dtype, relu bool) error {
	if err := c.exactly(t); err != nil {
		return err
	}
	if relu && t.class != classS16x2 {
		return b.errorf("modifier .relu is not supported here")
	}
	n, err := b.two(opHalves, t)
	if err != nil {
		return err
	}
	n.sub = map[string]uint8{"add": halfAdd, "sub": halfSub, "min": halfMin, "max": halfMax}[b.in.name]
	if t.class == classS16x2 {
		n.flags |= flagSigned
	}
	if relu {
		n.flags |= flagRelu
	}
	return c.end()
}

// thenSaturate is mad.hi.sat.s32.
func (b *builder) thenSaturate(c *cursor, t dtype) error {
	n, err := b.three(opMulHiS, t, t, t)
	if err != nil {
		return err
	}
	d, z, tmp := n.d, n.c, b.newSlot()
	n.d = tmp
	if n, err = b.guarded(opAddSat); err != nil {
		return err
	}
	n.d, n.a, n.b = d, tmp, z
	n.width(t)
	return c.end()
}

// lowerMadc is madc.lo and madc.hi, with or without .cc.
func lowerMadc(b *builder, c *cursor) error {
	part, err := c.one("lo", "hi")
	if err != nil {
		return err
	}
	flags := uint32(flagCarryIn)
	if c.opt("cc") != "" {
		flags |= flagCarryOut
	}
	return b.madCarry(c, part, flags)
}

// madCarry is a product, then an addition with carry.
func (b *builder) madCarry(c *cursor, part string, flags uint32) error {
	t, err := c.typ("us", 32, 64)
	if err != nil {
		return err
	}
	o := opMul
	switch {
	case part == "hi" && t.signed():
		o = opMulHiS
	case part == "hi":
		o = opMulHiU
	case part != "lo":
		return b.errorf("modifier .cc is not supported here")
	}
	n, err := b.three(o, t, t, t)
	if err != nil {
		return err
	}
	d, z, tmp := n.d, n.c, b.newSlot()
	n.d = tmp
	if n, err = b.guarded(opAddCC); err != nil {
		return err
	}
	n.d, n.a, n.b, n.flags = d, tmp, z, flags
	n.width(t)
	return c.end()
}

// lowerMul24 is mul24 and mad24: of the low 24 bits.
func lowerMul24(b *builder, c *cursor) error {
	part, err := c.one("lo", "hi")
	if err != nil {
		return err
	}
	sat := part == "hi" && b.in.name == "mad24" && c.opt("sat") != ""
	t, err := c.typ("us", 32)
	if err != nil {
		return err
	}
	if sat && !t.signed() {
		return b.errorf("modifier .sat is not supported here")
	}
	if err := c.end(); err != nil {
		return err
	}
	var n *inst
	if b.in.name == "mad24" {
		n, err = b.three(opMul24, t, t, t)
	} else {
		n, err = b.two(opMul24, t)
	}
	if err != nil {
		return err
	}
	if t.signed() {
		n.flags |= flagSigned
	}
	if part == "hi" {
		n.sub = 16
	}
	if b.in.name == "mul24" {
		return nil
	}
	d, z, tmp := n.d, n.c, b.newSlot()
	n.d = tmp
	o := opAdd
	if sat {
		o = opAddSat
	}
	if n, err = b.guarded(o); err != nil {
		return err
	}
	n.d, n.a, n.b = d, tmp, z
	n.width(t)
	return nil
}

// lowerDot is dp4a and dp2a: sums of products of bytes.
func lowerDot(b *builder, c *cursor) error {
	half := ""
	if b.in.name == "dp2a" {
		var err error
		if half, err = c.one("lo", "hi"); err != nil {
			return err
		}
	}
	ta, err := c.typ("us", 32)
	if err != nil {
		return err
	}
	tb, err := c.typ("us", 32)
	if err != nil {
		return err
	}
	n, err := b.three(opDot, ta, tb, ta)
	if err != nil {
		return err
	}
	n.sub = map[string]uint8{"": dotFour, "lo": dotLow, "hi": dotHigh}[half]
	if ta.signed() {
		n.flags |= flagSigned
	}
	if tb.signed() {
		n.flags |= flagSigned2
	}
	return c.end()
}
