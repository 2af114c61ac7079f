package ptx

// lowerCp is cp.async: copies of a thread from global to shared memory, which are
// there when it has waited for them.
func lowerCp(b *builder, c *cursor) error {
	if _, err := c.one("async"); err != nil {
		return err
	}
	switch c.opt("commit_group", "wait_group", "wait_all") {
	case "commit_group":
		return b.copyGroups(c, opCopyCommit, 0, nil)
	case "wait_all":
		return b.copyGroups(c, opCopyWait, 0, nil)
	case "wait_group":
		return b.copyGroups(c, opCopyWait, 1, func(n *inst) error {
			a := b.in.args[0]
			if a.kind != argInt {
				return b.errorf("operand is no number of groups")
			}
			n.imm = int64(min(a.num, 1<<31))
			return nil
		})
	}
	return b.copyAsync(c)
}

func (b *builder) copyGroups(c *cursor, o op, args int, more func(*inst) error) error {
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(args, args); err != nil {
		return err
	}
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.flags |= flagAll
	if more == nil {
		return nil
	}
	n.flags &^= flagAll
	return more(n)
}

// copyAsync is cp.async.ca.shared.global [to], [from], size, of; without "of" bytes of
// the source, or where a predicate says so, the rest is zeros.
func (b *builder) copyAsync(c *cursor) error {
	cache, err := c.one("ca", "cg")
	if err != nil {
		return err
	}
	if _, err := c.one("shared", "shared::cta"); err != nil {
		return err
	}
	if _, err := c.one("global"); err != nil {
		return err
	}
	policy := c.opt("L2::cache_hint") != ""
	c.opt("L2::64B", "L2::128B", "L2::256B")
	if err := c.end(); err != nil {
		return err
	}
	least := 3
	if policy {
		least = 4
	}
	if err := b.count(least, least+1); err != nil {
		return err
	}
	args := b.in.args
	if policy {
		if err := b.policy(len(args) - 1); err != nil {
			return err
		}
		args = args[:len(args)-1]
	}
	to, err := b.addr(args[0], spaceShared)
	if err != nil {
		return err
	}
	from, err := b.addr(args[1], spaceGlobal)
	if err != nil {
		return err
	}
	size := args[2]
	if size.kind != argInt || size.num != 16 && (cache == "cg" || size.num != 4 && size.num != 8) {
		return b.errorf("a size that .%s does not copy", cache)
	}
	like := inst{b: b.constant(size.num), p: -1}
	if len(args) == 4 {
		if a := args[3]; a.kind == argName && b.isPred(a.name) {
			like.flags |= flagIgnore
			if a.not {
				like.flags |= flagNot
			}
			if like.p, err = b.pred(a); err != nil {
				return err
			}
		} else if like.b, err = b.source(a, typeU32); err != nil {
			return err
		}
	}
	n, err := b.guarded(opCopyAsync)
	if err != nil {
		return err
	}
	n.q, n.b, n.flags = like.p, like.b, like.flags
	n.a, n.imm = from.slot, from.off
	n.c, n.elems[0] = to.slot, b.constant(uint64(to.off))
	n.size, n.vec = uint8(size.num), 1
	return nil
}

func (b *builder) isPred(name string) bool {
	t, _, ok := b.resolve(name)
	return ok && t.class == classPred
}
