package ptx

// addr reads an address operand into the address slot and offset of an op.
func (b *builder) addr(a arg, sp space) (slot int32, off int64, err error) {
	if a.kind != argAddr {
		return 0, 0, b.errorf("operand is not an address")
	}
	if a.off < -1<<31 || a.off > 1<<31 && a.name != "" {
		return 0, 0, b.errorf("offset %d", a.off)
	}
	if a.name == "" {
		if sp != spaceLocal {
			return 0, 0, b.errorf("absolute %s address", sp)
		}
		return b.constant(uint64(a.off)), 0, nil
	}
	if v := b.variable(a.name); v != nil {
		if v.space != sp {
			return 0, 0, b.errorf("%s lies in .%s", a.name, v.space)
		}
		slot, err = b.variableAddress(v, 0, dtype{classUint, 64})
		return slot, a.off, err
	}
	slot, reg, err := b.register(arg{kind: argName, name: a.name}, dtype{classUint, 32}, func(_, reg dtype) bool {
		return reg.bits == 64 && reg.class != classFloat || reg.bits == 32 && reg.class != classFloat
	})
	if err != nil {
		return 0, 0, err
	}
	if reg.bits == 32 && (sp == spaceGeneric || sp == spaceGlobal) {
		return 0, 0, b.errorf("register %s is %s, a %s address is 64 bits", a.name, reg, sp)
	}
	return slot, a.off, nil
}

// accessSpace reads the state space of ld and st; generic without one.
func accessSpace(c *cursor) space {
	switch c.opt("global", "shared", "local", "param") {
	case "global":
		return spaceGlobal
	case "shared":
		c.opt("cta")
		return spaceShared
	case "local":
		return spaceLocal
	case "param":
		return spaceParam
	}
	return spaceGeneric
}

// ordering takes modifiers that say how an access is ordered with other threads. Blocks run one by one and warps only change over at
// barriers, so every access is as strong as the strongest.
func ordering(c *cursor) {
	if c.opt("relaxed", "acquire", "release") != "" {
		c.opt("cta", "gpu", "sys")
	}
	c.opt("volatile", "weak")
}

// cacheHints takes modifiers that change how fast an access is.
func cacheHints(c *cursor, load bool) {
	if load {
		c.opt("ca", "cg", "cs", "lu", "cv")
		c.opt("nc")
	} else {
		c.opt("wb", "cg", "cs", "wt")
	}
	c.opt("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate")
	c.opt("L2::64B", "L2::128B", "L2::256B")
}

func vector(c *cursor) uint8 {
	switch c.opt("v2", "v4") {
	case "v2":
		return 2
	case "v4":
		return 4
	}
	return 1
}

// access reads everything of ld and st but the registers.
func (b *builder) access(c *cursor, load bool) (n inst, t dtype, err error) {
	ordering(c)
	n.space = accessSpace(c)
	cacheHints(c, load)
	n.vec = vector(c)
	if t, err = c.typ("busf", 8, 16, 32, 64); err != nil {
		return
	}
	if err = c.end(); err != nil {
		return
	}
	n.size = uint8(t.size())
	if int(n.vec)*t.size() > 16 {
		return n, t, b.errorf("vector of %d bytes; the most is 16", int(n.vec)*t.size())
	}
	return n, t, b.count(2, 2)
}

// elements returns the n operands of a vector, or the operand itself.
func (b *builder) elements(a arg, n uint8) ([]arg, error) {
	if a.kind == argVec {
		if len(a.vec) != int(n) {
			return nil, b.errorf("vector of %d elements instead of %d", len(a.vec), n)
		}
		return a.vec, nil
	}
	if n != 1 {
		return nil, b.errorf("operand is no vector of %d elements", n)
	}
	return []arg{a}, nil
}

// put merges the fields of an access into an op.
func (n *inst) put(acc inst, slot int32, off int64) {
	n.space, n.size, n.vec = acc.space, acc.size, acc.vec
	n.a, n.imm = slot, off
}

func lowerLd(b *builder, c *cursor) error {
	acc, t, err := b.access(c, true)
	if err != nil {
		return err
	}
	slot, off, err := b.addr(b.in.args[1], acc.space)
	if err != nil {
		return err
	}
	vec, err := b.elements(b.in.args[0], acc.vec)
	if err != nil {
		return err
	}
	reg := dtype{}
	for i, v := range vec {
		if v.kind == argSink {
			acc.elems[i] = b.newSlot()
			continue
		}
		s, r, err := b.register(v, t, dtype.holds)
		if err != nil {
			return err
		}
		if reg.bits != 0 && reg.bits != r.bits {
			return b.errorf("registers of different widths in one vector")
		}
		acc.elems[i], reg = s, r
	}
	if reg.bits == 0 {
		if acc.vec > 1 { // as ptxas 12.9 does
			return b.errorf("a vector without a register")
		}
		reg = t
	}
	if acc.space == spaceParam {
		if at, ok := b.fixedParam(b.in.args[1], acc.vec*acc.size); ok {
			return b.loadFixed(acc, t, reg, at)
		}
	}
	n, err := b.guarded(opLd)
	if err != nil {
		return err
	}
	if acc.space == spaceParam {
		n.op = opLdParam
	}
	n.put(acc, slot, off)
	n.elems, n.mask, n.sh = acc.elems, mask(reg.bits), 64-t.bits
	if t.signed() {
		n.flags |= flagSigned
	}
	return nil
}

// fixedParam returns the place of a parameter access that is known now, whole
// inside the parameters and aligned; others are left to run and trap.
func (b *builder) fixedParam(a arg, size uint8) (int, bool) {
	if a.name == "" {
		return 0, false
	}
	v := b.variable(a.name)
	if v == nil {
		return 0, false
	}
	at := int64(b.k.params[v.param].Offset) + a.off
	return int(at), at >= 0 && at+int64(size) <= int64(b.k.paramBytes) && at%int64(size) == 0
}

// loadFixed makes a load of a parameter at a known place a move from a slot
// that the launch fills.
func (b *builder) loadFixed(acc inst, t, reg dtype, at int) error {
	for i := range int(acc.vec) {
		key := paramSlot{off: at + i*int(acc.size), size: int(acc.size), signed: t.signed(), mask: mask(reg.bits)}
		s, ok := b.paramSlots[key]
		if !ok {
			s = b.newSlot()
			b.paramSlots[key] = s
			in := key
			in.slot = s
			b.k.paramIn = append(b.k.paramIn, in)
		}
		n, err := b.guarded(opMov)
		if err != nil {
			return err
		}
		n.d, n.a = acc.elems[i], s
	}
	return nil
}

func lowerSt(b *builder, c *cursor) error {
	acc, t, err := b.access(c, false)
	if err != nil {
		return err
	}
	if acc.space == spaceParam {
		return b.errorf("store to a parameter")
	}
	slot, off, err := b.addr(b.in.args[0], acc.space)
	if err != nil {
		return err
	}
	vec, err := b.elements(b.in.args[1], acc.vec)
	if err != nil {
		return err
	}
	for i, v := range vec {
		if acc.elems[i], err = b.stored(v, t); err != nil {
			return err
		}
	}
	n, err := b.guarded(opSt)
	if err != nil {
		return err
	}
	n.put(acc, slot, off)
	n.elems = acc.elems
	return nil
}

// stored is the source of a store: a register may be wider than what is stored.
func (b *builder) stored(v arg, t dtype) (int32, error) {
	if v.kind == argName && b.variable(v.name) == nil {
		if _, ok := specialNames[v.name]; !ok {
			s, _, err := b.register(v, t, dtype.holds)
			return s, err
		}
	}
	return b.source(v, t)
}

// lowerCvta moves an address between a state space and the generic one: an
// addition of the window's base, or nothing for global memory.
func lowerCvta(b *builder, c *cursor) error {
	to := c.opt("to") != ""
	where, err := c.one("global", "shared", "local", "param")
	if err != nil {
		return err
	}
	if where == "shared" {
		c.opt("cta")
	}
	t, err := c.typ("u", 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if _, err := b.one(opMov, t); err != nil {
		return err
	}
	base := map[string]uint64{"shared": windowShared, "local": windowLocal, "param": windowParam}[where]
	if base == 0 {
		return nil
	}
	n := &b.code[len(b.code)-1]
	n.op, n.b = opAdd, b.constant(base)
	if to {
		n.op = opSub
	}
	return nil
}
