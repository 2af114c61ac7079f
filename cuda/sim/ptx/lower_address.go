package ptx

// place is where an access goes: a slot with an address, an offset to it, and the
// space that both are in.
type operandAddr struct {
	slot  int32
	off   int64
	space space
}

// addr reads an address operand.
func (b *builder) addr(a arg, sp space) (operandAddr, error) {
	none := operandAddr{}
	if a.kind != argAddr {
		return none, b.errorf("operand is not an address")
	}
	if a.off < -1<<31 || a.off > 1<<31 && a.name != "" {
		return none, b.errorf("offset %d", a.off)
	}
	if a.name == "" {
		if sp != spaceLocal {
			return none, b.errorf("absolute %s address", sp)
		}
		return operandAddr{b.constant(uint64(a.off)), 0, sp}, nil
	}
	if v := b.variable(a.name); v != nil {
		if v.space != sp && (sp != spaceGeneric || v.space != spaceGlobal && v.space != spaceConst) {
			return none, b.errorf("%s lies in .%s", a.name, v.space)
		}
		if v.inFrame() {
			at, err := b.address(v)
			return operandAddr{b.fn.base, int64(at) + a.off, spaceLocal}, err
		}
		slot, err := b.variableAddress(v, 0, typeU64)
		return operandAddr{slot, a.off, sp.executed(b.fn.e.function)}, err
	}
	slot, reg, err := b.register(arg{kind: argName, name: a.name}, typeU32, func(_, reg dtype) bool {
		return (reg.bits == 64 || reg.bits == 32) && !reg.floating()
	})
	if err != nil {
		return none, err
	}
	if reg.bits == 32 && (sp == spaceGeneric || sp == spaceGlobal || sp == spaceConst) {
		return none, b.errorf("register %s is %s, a %s address is 64 bits", a.name, reg, sp)
	}
	return operandAddr{slot, a.off, sp.executed(b.fn.e.function)}, nil
}

// executed is the space as the interpreter has it: constant variables are in global
// memory, and parameters of functions on the stack.
func (s space) executed(function bool) space {
	switch {
	case s == spaceConst:
		return spaceGlobal
	case s == spaceParam && function:
		return spaceLocal
	}
	return s
}

// lowerCvta moves an address between a state space and the generic one: an
// addition of the window's base, or nothing for global and constant memory.
func lowerCvta(b *builder, c *cursor) error {
	to := c.opt("to") != ""
	sp := accessSpace(c).executed(b.fn.e.function)
	if sp == spaceGeneric {
		_, err := c.one("global", "shared", "local", "param", "const")
		return err
	}
	t, err := c.typ("u", 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	n, err := b.one(opMov, t)
	if err != nil || sp == spaceGlobal {
		return err
	}
	n.op, n.b = opAdd, b.constant(windows[sp])
	if to {
		n.op = opSub
	}
	return nil
}

var windows = map[space]uint64{spaceShared: windowShared, spaceLocal: windowLocal, spaceParam: windowParam}

// lowerIsspacep asks in which window a generic address is.
func lowerIsspacep(b *builder, c *cursor) error {
	sp := accessSpace(c)
	if sp == spaceGeneric {
		_, err := c.one("global", "shared", "local", "param", "const")
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
	x, err := b.src(1, typeU64)
	if err != nil {
		return err
	}
	n, err := b.guarded(opIsspacep)
	if err != nil {
		return err
	}
	n.p, n.a, n.space = p, x, sp
	return nil
}
