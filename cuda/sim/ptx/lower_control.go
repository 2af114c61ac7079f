package ptx

// maxTargets bounds the ops that one brx.idx becomes.
const maxTargets = 1024

func lowerBra(b *builder, c *cursor) error {
	c.opt("uni")
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(1, 1); err != nil {
		return err
	}
	a, err := b.arg(0)
	if err != nil {
		return err
	}
	if a.kind != argName || a.not || a.off != 0 {
		return b.errorf("operand is not a label")
	}
	if _, err = b.guarded(opBra); err != nil {
		return err
	}
	b.jump(a.name)
	return nil
}

// jump gives the last op a label as its target.
func (b *builder) jump(label string) {
	b.fixups = append(b.fixups, fixup{at: len(b.code) - 1, scope: b.in.scope, name: label, in: b.in})
}

// lowerBrx is brx.idx i, targets: a chain of comparisons and branches. An index
// past the end, undefined in PTX, goes to the last target.
func lowerBrx(b *builder, c *cursor) error {
	if _, err := c.one("idx"); err != nil {
		return err
	}
	c.opt("uni")
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(2, 2); err != nil {
		return err
	}
	i, err := b.src(0, typeU32)
	if err != nil {
		return err
	}
	var list []string
	for sc := b.in.scope; sc != nil && list == nil; sc = sc.up {
		list = sc.lists[b.in.args[1].name]
	}
	if list == nil || b.in.args[1].kind != argName {
		return b.errorf("unknown list of targets")
	}
	if len(list) > maxTargets {
		return b.errorf("%d targets; the limit is %d", len(list), maxTargets)
	}
	for at, label := range list {
		p := b.newPred()
		if at < len(list)-1 {
			n := b.inst(opSetEq)
			n.p, n.a, n.b = p, i, b.constant(uint64(at))
		}
		n, err := b.guarded(opBra)
		if err != nil {
			return err
		}
		if at < len(list)-1 {
			if b.in.guard != "" {
				return b.errorf("guarded indirect branch")
			}
			n.guard = p
		}
		b.jump(label)
	}
	return nil
}

func lowerExit(b *builder, c *cursor) error {
	c.opt("uni")
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(0, 0); err != nil {
		return err
	}
	_, err := b.guarded(opExit)
	return err
}

func lowerTrap(b *builder, c *cursor) error {
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(0, 0); err != nil {
		return err
	}
	_, err := b.guarded(opTrap)
	return err
}

// lowerNanosleep is nanosleep: see [Run.Slept].
func lowerNanosleep(b *builder, c *cursor) error {
	t, err := c.typ("u", 32)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(1, 1); err != nil {
		return err
	}
	a, err := b.src(0, t)
	if err != nil {
		return err
	}
	n, err := b.guarded(opSleep)
	if err != nil {
		return err
	}
	n.a = a
	return nil
}
