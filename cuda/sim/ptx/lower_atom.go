package ptx

// The operations of atom and red.
const (
	atomAdd = iota
	atomMinU
	atomMinS
	atomMaxU
	atomMaxS
	atomAnd
	atomOr
	atomXor
	atomExch
	atomCas
	atomInc
	atomDec
	atomAddF
)

func lowerAtom(b *builder, c *cursor) error {
	red := b.in.name == "red"
	c.opt("relaxed", "acquire", "release", "acq_rel")
	c.opt("cta", "gpu", "sys")
	sp := spaceGeneric
	switch c.opt("global", "shared") {
	case "global":
		sp = spaceGlobal
	case "shared":
		c.opt("cta")
		sp = spaceShared
	}
	c.opt("cta", "gpu", "sys")
	names := []string{"add", "min", "max", "and", "or", "xor", "inc", "dec"}
	if !red {
		names = append(names, "exch", "cas")
	}
	what, err := c.one(names...)
	if err != nil {
		return err
	}
	classes := map[string]string{"add": "usf", "min": "us", "max": "us", "and": "b", "or": "b", "xor": "b",
		"inc": "u", "dec": "u", "exch": "b", "cas": "b"}[what]
	widths := []uint8{32, 64}
	if what == "inc" || what == "dec" {
		widths = widths[:1]
	}
	t, err := c.typ(classes, widths...)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	sub := map[string]uint8{"add": atomAdd, "min": atomMinU, "max": atomMaxU, "and": atomAnd, "or": atomOr,
		"xor": atomXor, "exch": atomExch, "cas": atomCas, "inc": atomInc, "dec": atomDec}[what]
	switch {
	case t.class == classFloat:
		sub = atomAddF
	case t.signed() && sub == atomMinU:
		sub = atomMinS
	case t.signed() && sub == atomMaxU:
		sub = atomMaxS
	}
	at, want := 0, 2
	if !red {
		at, want = 1, 3
	}
	if what == "cas" {
		want++
	}
	if err := b.count(want, want); err != nil {
		return err
	}
	d := b.newSlot()
	if !red {
		if d, err = b.dest(0, t); err != nil {
			return err
		}
	}
	a, err := b.arg(at)
	if err != nil {
		return err
	}
	slot, off, err := b.addr(a, sp)
	if err != nil {
		return err
	}
	x, err := b.src(at+1, t)
	if err != nil {
		return err
	}
	y := int32(0)
	if what == "cas" {
		if y, err = b.src(at+2, t); err != nil {
			return err
		}
	}
	n, err := b.guarded(opAtom)
	if err != nil {
		return err
	}
	n.put(inst{space: sp, size: uint8(t.size()), vec: 1}, slot, off)
	n.width(t)
	n.d, n.b, n.c, n.sub = d, x, y, sub
	return nil
}

// lowerPrefetch checks a prefetch, which does nothing here.
func lowerPrefetch(b *builder, c *cursor) error {
	sp := spaceGeneric
	switch c.opt("global", "local") {
	case "global":
		sp = spaceGlobal
	case "local":
		sp = spaceLocal
	}
	if _, err := c.one("L1", "L2", "L2::evict_last", "L2::evict_normal"); err != nil {
		return err
	}
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
	if _, _, err = b.addr(a, sp); err != nil {
		return err
	}
	_, err = b.guarded(opNop)
	return err
}

// lowerFence is membar and fence: with one warp running at a time memory is
// always in order.
func lowerFence(b *builder, c *cursor) error {
	if b.in.name == "membar" {
		if _, err := c.one("cta", "gl", "sys", "gpu"); err != nil {
			return err
		}
	} else {
		c.opt("sc", "acq_rel")
		if _, err := c.one("cta", "gpu", "sys"); err != nil {
			return err
		}
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(0, 0); err != nil {
		return err
	}
	_, err := b.guarded(opNop)
	return err
}
