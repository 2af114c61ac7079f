package ptx

// lowerCvt converts between integers of any width, and to and from floats.
func lowerCvt(b *builder, c *cursor) error {
	round := c.opt("rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp")
	sat := c.opt("sat") != ""
	to, err := c.typ("usbf", 8, 16, 32, 64)
	if err != nil {
		return err
	}
	from, err := c.typ("usbf", 8, 16, 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(2, 2); err != nil {
		return err
	}
	if to.class == classBits || from.class == classBits {
		return b.errorf("untyped conversion")
	}
	a, err := b.arg(0)
	if err != nil {
		return err
	}
	d, reg, err := b.register(a, to, dtype.holds)
	if err != nil {
		return err
	}
	src, err := b.arg(1)
	if err != nil {
		return err
	}
	var x int32
	if _, isSpecial := specialNames[src.name]; src.kind != argName || isSpecial {
		x, err = b.source(src, from)
	} else {
		x, _, err = b.register(src, from, dtype.holds)
	}
	if err != nil {
		return err
	}
	fromF, toF := from.class == classFloat, to.class == classFloat
	switch {
	case sat:
		return b.errorf("modifier .sat is not supported here")
	case fromF && !toF && (len(round) != 3 || round == ""):
		return b.errorf("float to integer without integer rounding")
	case toF && !fromF && (round != "rn" || from.bits > 64):
		return b.errorf("integer to float with other rounding than .rn")
	case toF && fromF && to.bits < from.bits && round != "rn":
		return b.errorf("narrowing with other rounding than .rn")
	case toF && fromF && to.bits > from.bits && round != "":
		return b.errorf("modifier .%s is not supported here", round)
	case toF && fromF && to.bits == from.bits && round != "" && len(round) != 3:
		return b.errorf("modifier .%s is not supported here", round)
	case !toF && !fromF && round != "":
		return b.errorf("modifier .%s is not supported here", round)
	}
	n, err := b.guarded(opCvt)
	if err != nil {
		return err
	}
	n.d, n.a = d, x
	n.sh, n.sh2, n.mask, n.mask2 = 64-from.bits, 64-to.bits, mask(reg.bits), mask(to.bits)
	if from.signed() {
		n.flags |= flagSigned
	}
	if to.signed() {
		n.flags |= flagSigned2
	}
	if fromF || toF {
		n.op = opCvtF
		n.sub = roundings[round]
		if fromF {
			n.flags |= flagFloat
		}
		if toF {
			n.flags |= flagFloat2
		}
	}
	return nil
}
