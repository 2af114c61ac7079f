package ptx

// accessSpace reads the state space of ld and st; generic without one.
func accessSpace(c *cursor) space {
	switch c.opt("global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "param::func", "const") {
	case "global":
		return spaceGlobal
	case "shared", "shared::cta", "shared::cluster":
		return spaceShared
	case "local":
		return spaceLocal
	case "param", "param::entry", "param::func":
		return spaceParam
	case "const":
		return spaceConst
	}
	return spaceGeneric
}

var scopes = []string{"cta", "cluster", "gpu", "sys"}

// ordering takes modifiers that say how an access is ordered with other threads,
// and reports whether it is a strong one: what others write between two of them is
// seen. Memory is in order here, so every access is as strong as the strongest.
func ordering(c *cursor) (strong bool) {
	if c.opt("mmio") != "" {
		strong = true
	}
	if c.opt("relaxed", "acquire", "release") != "" {
		c.opt(scopes...)
		strong = true
	}
	return c.opt("volatile", "weak") == "volatile" || strong
}

// cacheHints takes modifiers that change how fast an access is. policy: there is an
// operand more.
func cacheHints(c *cursor, load bool) (strong, policy bool) {
	if load {
		strong = c.opt("ca", "cg", "cs", "lu", "cv") == "cv"
		c.opt("nc")
	} else {
		c.opt("wb", "cg", "cs", "wt")
	}
	c.opt("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate")
	c.opt("L2::evict_normal", "L2::evict_first", "L2::evict_last")
	policy = c.opt("L2::cache_hint") != ""
	c.opt("L2::64B", "L2::128B", "L2::256B")
	return strong, policy
}

// policy checks the operand at i that says how a cache is to treat an access.
func (b *builder) policy(i int) error {
	_, err := b.src(i, typeB64)
	return err
}

func vector(c *cursor) uint8 {
	switch c.opt("v2", "v4", "v8") {
	case "v2":
		return 2
	case "v4":
		return 4
	case "v8":
		return 8
	}
	return 1
}

// access reads everything of ld and st but the registers.
func (b *builder) access(c *cursor, load bool) (n inst, t dtype, err error) {
	strong := ordering(c)
	n.space = accessSpace(c)
	volatile, policy := cacheHints(c, load)
	if strong || volatile {
		n.flags |= flagStrong
	}
	c.opt("unified")
	n.vec = vector(c)
	if t, err = c.typ("busf", 8, 16, 32, 64); err != nil {
		return
	}
	if err = c.end(); err != nil {
		return
	}
	n.size = uint8(t.size())
	most := 16
	if n.space == spaceGlobal && t.bits >= 32 {
		most = 32
	}
	if int(n.vec)*t.size() > most {
		return n, t, b.errorf("vector of %d bytes; the most is %d", int(n.vec)*t.size(), most)
	}
	want := 2
	if policy {
		if want = 3; len(b.in.args) == 3 {
			if err := b.policy(2); err != nil {
				return n, t, err
			}
		}
	}
	return n, t, b.count(want, want)
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
func (n *inst) put(acc inst, at operandAddr) {
	n.space, n.size, n.vec, n.flags = at.space, acc.size, acc.vec, acc.flags
	n.a, n.imm = at.slot, at.off
}

func lowerLd(b *builder, c *cursor) error {
	acc, t, err := b.access(c, true)
	if err != nil {
		return err
	}
	at, err := b.addr(b.in.args[1], acc.space)
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
	if at.space == spaceParam {
		if at, ok := b.fixedParam(b.in.args[1], acc.vec*acc.size); ok {
			return b.loadFixed(acc, t, reg, at)
		}
	}
	n, err := b.guarded(opLd)
	if err != nil {
		return err
	}
	if at.space == spaceParam {
		n.op = opLdParam
	}
	n.put(acc, at)
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
	at, err := b.addr(b.in.args[0], acc.space)
	switch {
	case acc.space == spaceConst:
		return b.errorf("modifier .const is not supported here")
	case err != nil:
		return err
	case at.space == spaceParam:
		return b.errorf("store to a parameter")
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
	n.put(acc, at)
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
