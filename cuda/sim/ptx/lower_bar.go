package ptx

// Reductions of bar.red; a plain barrier has none.
const (
	redNone = iota
	redPopc
	redAnd
	redOr
)

// lowerBar is bar.sync, bar.arrive, bar.red, the same of barrier, and bar.warp.sync.
// The threads of a warp must come to a barrier together, as .aligned demands.
func lowerBar(b *builder, c *cursor) error {
	if c.opt("warp") != "" {
		return b.warpBarrier(c)
	}
	if c.opt("cluster") != "" {
		return b.cluster(c)
	}
	c.opt("cta")
	what, err := c.one("sync", "red", "arrive")
	if err != nil {
		return err
	}
	red, d, p := uint8(redNone), int32(0), int32(-1)
	first := 0 // operand that is the barrier's number
	if what == "red" {
		how, err := c.one("popc", "and", "or")
		if err != nil {
			return err
		}
		red, first = map[string]uint8{"popc": redPopc, "and": redAnd, "or": redOr}[how], 1
	}
	c.opt("aligned")
	last := len(b.in.args)
	var vote int32
	var not bool
	if what == "red" {
		if d, p, err = b.reduced(c, red); err != nil {
			return err
		}
		if err := b.count(3, 4); err != nil {
			return err
		}
		last--
		if vote, not, err = b.predSrc(last); err != nil {
			return err
		}
	} else if what == "arrive" {
		if err := b.count(2, 2); err != nil {
			return err
		}
	} else if err := b.count(1, 2); err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	id, err := b.src(first, typeU32)
	if err != nil {
		return err
	}
	count := int32(0)
	if last-first == 2 {
		if count, err = b.src(first+1, typeU32); err != nil {
			return err
		}
	}
	n, err := b.guarded(opBar)
	if err != nil {
		return err
	}
	n.a, n.b, n.d, n.p, n.q, n.sub = id, count, d, p, vote, red
	if last-first == 2 {
		n.flags |= flagCount
	}
	if what == "arrive" {
		n.flags |= flagArrive
	}
	if not {
		n.flags |= flagNot
	}
	b.k.barriers = true
	return nil
}

// reduced reads the type and destination of a bar.red.
func (b *builder) reduced(c *cursor, red uint8) (d, p int32, err error) {
	classes := "p"
	if red == redPopc {
		classes = "u"
	}
	t, err := c.typ(classes, 32)
	if err != nil {
		return 0, -1, err
	}
	if red == redPopc {
		d, err = b.dest(0, t)
		return d, -1, err
	}
	p, not, err := b.predSrc(0)
	if err == nil && not {
		err = b.errorf("! does not belong here")
	}
	return 0, p, err
}

// cluster is barrier.cluster: of the one thread block that a cluster has, so that to
// arrive is nothing, and to wait is to wait for its threads.
func (b *builder) cluster(c *cursor) error {
	what, err := c.one("arrive", "wait")
	if err != nil {
		return err
	}
	c.opt("release", "relaxed", "acquire")
	c.opt("aligned")
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(0, 0); err != nil {
		return err
	}
	if what == "arrive" {
		_, err := b.guarded(opFence)
		return err
	}
	n, err := b.guarded(opBar)
	if err != nil {
		return err
	}
	n.a, n.flags = b.constant(clusterBarrier), flagCluster
	b.k.barriers = true
	return nil
}

func (b *builder) warpBarrier(c *cursor) error {
	if _, err := c.one("sync"); err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(1, 1); err != nil {
		return err
	}
	members, err := b.src(0, typeB32)
	if err != nil {
		return err
	}
	n, err := b.guarded(opWarpSync)
	if err != nil {
		return err
	}
	n.elems[0] = members
	return nil
}
