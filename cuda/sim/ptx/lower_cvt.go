package ptx

// cvtMods are what a cvt says before its types.
type cvtMods struct {
	round string
	flags uint32
}

func (c *cursor) cvtMods() cvtMods {
	m := cvtMods{round: c.opt("rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp", "rna")}
	for _, x := range []struct {
		name string
		flag uint32
	}{{"ftz", flagFtz}, {"sat", flagSat}, {"relu", flagRelu}, {"satfinite", flagFinite}, {"relu", flagRelu}} {
		if m.flags&x.flag == 0 && c.opt(x.name) != "" {
			m.flags |= x.flag
		}
	}
	return m
}

// cvtType takes a type of any class but untyped bits.
func (c *cursor) cvtType() (dtype, error) {
	if len(c.mods) > 0 {
		if t, ok := typeNames[c.mods[0]]; ok && t.class > classPred && t.floating() && t.class != classF32x2 {
			c.mods = c.mods[1:]
			return t, nil
		}
	}
	t, err := c.typ("usbf", 8, 16, 32, 64)
	if err == nil && t.class == classBits {
		err = c.b.errorf("untyped conversion")
	}
	return t, err
}

// check refuses modifiers that do not go with the types.
func (m cvtMods) check(b *builder, to, from dtype) error {
	toF, fromF := to.floating(), from.floating()
	whole := len(m.round) == 3 && m.round != "rna" // to a whole number
	f1, n1 := formatOf(from)
	f2, n2 := formatOf(to)
	switch {
	case fromF && !toF && !whole:
		return b.errorf("float to integer without integer rounding")
	case toF && !fromF && (m.round == "" || len(m.round) == 3):
		return b.errorf("integer to float without a rounding")
	case !toF && !fromF && m.round != "":
		return b.errorf("modifier .%s is not supported here", m.round)
	case m.round == "rna" && to.class != classTF32:
		return b.errorf("modifier .rna is not supported here")
	case to.class == classTF32 && from != typeF32 || from.class == classTF32:
		return b.errorf("conversion of %s to %s", from, to)
	case (n1 == 2 || n2 == 2) && !packs(from, to):
		return b.errorf("conversion of %s to %s", from, to)
	case n2 == 2 && (m.round == "" || whole):
		return b.errorf("packed conversion without a rounding")
	case toF && fromF && f1 == f2 && m.round != "" && !whole:
		return b.errorf("modifier .%s is not supported here", m.round)
	case toF && fromF && f1 != f2 && n2 == 1 && to.bits > from.bits && m.round != "":
		return b.errorf("modifier .%s is not supported here", m.round)
	case toF && fromF && f1 != f2 && to.bits <= from.bits && (m.round == "" || whole):
		return b.errorf("narrowing without a rounding")
	case m.flags&(flagRelu|flagFinite) != 0 && (!toF || to.class == classFloat):
		return b.errorf("modifier .relu or .satfinite is not supported here")
	case m.flags&flagFtz != 0 && from != typeF32 && to != typeF32:
		return b.errorf("modifier .ftz is not supported here")
	case m.flags&flagSat != 0 && n2 == 2:
		return b.errorf("modifier .sat is not supported here")
	}
	return nil
}

// packs reports whether there is a conversion between the packed types, or from
// two floats to one.
func packs(from, to dtype) bool {
	small := func(t dtype) bool { return t.class >= classE4M3x2 && t.class <= classE2M1x2 }
	switch {
	case to.class == classF16x2:
		return from == typeF32 || small(from)
	case to.class == classBF16x2:
		return from == typeF32 || from.class == classUE8M0x2
	case small(to):
		return from == typeF32 || from.class == classF16x2 || from.class == classBF16x2
	}
	return to.class == classUE8M0x2 && (from == typeF32 || from.class == classBF16x2)
}

// lowerCvt converts between integers and floats of any format and width.
func lowerCvt(b *builder, c *cursor) error {
	if c.opt("pack") != "" {
		return b.cvtPack(c)
	}
	m := c.cvtMods()
	to, err := c.cvtType()
	if err != nil {
		return err
	}
	from, err := c.cvtType()
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	f1, n1 := formatOf(from)
	f2, n2 := formatOf(to)
	two := n2 == 2 && n1 == 1
	want := 2
	if two {
		want = 3
	}
	if err := b.count(want, want); err != nil {
		return err
	}
	a, err := b.arg(0)
	if err != nil {
		return err
	}
	d, reg, err := b.register(a, to, dtype.holds)
	if err != nil {
		return err
	}
	x, err := b.converted(1, from)
	if err != nil {
		return err
	}
	y := int32(0)
	if two {
		if y, err = b.converted(2, from); err != nil {
			return err
		}
	}
	if err := m.check(b, to, from); err != nil {
		return err
	}
	n, err := b.guarded(opCvt)
	if err != nil {
		return err
	}
	n.d, n.a, n.b = d, x, y
	n.sh, n.sh2, n.mask, n.mask2 = 64-from.bits, 64-to.bits, mask(reg.bits), mask(to.bits)
	n.fmt, n.fmt2, n.rnd, n.flags = f1, f2, roundingNames[m.round], m.flags
	if from.signed() {
		n.flags |= flagSigned
	}
	if to.signed() {
		n.flags |= flagSigned2
	}
	if len(m.round) == 3 {
		n.sub = roundings[m.round]
	}
	plain := func(t dtype) bool { return t.class <= classFloat }
	switch {
	case m.flags != 0 || !plain(from) || !plain(to) || n.rnd != roundNearest:
		n.op = opCvtX
		if two {
			n.flags |= flagFirst
		} else if n2 == 2 {
			n.flags |= flagPair
		}
	case from.floating() || to.floating():
		n.op = opCvtF
		if from.floating() {
			n.flags |= flagFloat
		}
		if to.floating() {
			n.flags |= flagFloat2
		}
	}
	return nil
}

// converted returns the slot of a source of cvt, whose register may be wider.
func (b *builder) converted(i int, from dtype) (int32, error) {
	src, err := b.arg(i)
	if err != nil {
		return 0, err
	}
	if _, isSpecial := specialNames[src.name]; src.kind != argName || isSpecial {
		return b.source(src, from)
	}
	x, _, err := b.register(src, from, dtype.holds)
	return x, err
}

// cvtPack is cvt.pack.sat: two integers clamped and packed, and what was packed
// before above them.
func (b *builder) cvtPack(c *cursor) error {
	if _, err := c.one("sat"); err != nil {
		return err
	}
	to, err := c.typ("us", 8, 16)
	if err != nil {
		return err
	}
	from, err := c.typ("us", 32)
	if err != nil {
		return err
	}
	third := to.bits == 8
	if third {
		if err := c.exactly(typeB32); err != nil {
			return err
		}
		if err := b.count(4, 4); err != nil {
			return err
		}
	} else if err := b.count(3, 3); err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	d, err := b.dest(0, typeB32)
	if err != nil {
		return err
	}
	var src [3]int32
	for i := range len(b.in.args) - 1 {
		if src[i], err = b.src(i+1, dtype{from.class, 32}); err != nil {
			return err
		}
	}
	n, err := b.guarded(opCvtPack)
	if err != nil {
		return err
	}
	n.d, n.a, n.b, n.c = d, src[0], src[1], src[2]
	n.sh, n.sh2, n.mask = 64-from.bits, 64-to.bits, mask(32)
	if from.signed() {
		n.flags |= flagSigned
	}
	if to.signed() {
		n.flags |= flagSigned2
	}
	return nil
}
