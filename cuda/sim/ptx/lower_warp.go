package ptx

// Shuffle modes and votes.
const (
	shflUp = iota
	shflDown
	shflBfly
	shflIdx

	voteAll
	voteAny
	voteUni
	voteBallot

	matchAny
	matchAll
)

// lowerShfl is shfl.sync d|p, a, b, c, membermask.
func lowerShfl(b *builder, c *cursor) error {
	if _, err := c.one("sync"); err != nil {
		return err
	}
	mode, err := c.one("up", "down", "bfly", "idx")
	if err != nil {
		return err
	}
	t, err := c.typ("b", 32)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(5, 5); err != nil {
		return err
	}
	p := int32(-1)
	args := append([]arg(nil), b.in.args...)
	if q := args[0].pair; q != nil {
		if q.not {
			return b.errorf("! does not belong here")
		}
		if p, err = b.pred(*q); err != nil {
			return err
		}
		args[0].pair = nil
	}
	var s [5]int32
	for i := range s {
		switch {
		case i == 0 && args[0].kind == argSink:
			s[0] = b.newSlot()
		case i == 0:
			s[0], _, err = b.register(args[0], t, dtype.agrees)
		default:
			if args[i].pair != nil {
				return b.errorf("a pair of predicates does not belong here")
			}
			s[i], err = b.source(args[i], typeB32)
		}
		if err != nil {
			return err
		}
	}
	n, err := b.guarded(opShfl)
	if err != nil {
		return err
	}
	n.d, n.a, n.b, n.c, n.elems[0], n.p = s[0], s[1], s[2], s[3], s[4], p
	n.sub = map[string]uint8{"up": shflUp, "down": shflDown, "bfly": shflBfly, "idx": shflIdx}[mode]
	return nil
}

// lowerVote is vote.sync.
func lowerVote(b *builder, c *cursor) error {
	if _, err := c.one("sync"); err != nil {
		return err
	}
	mode, err := c.one("all", "any", "uni", "ballot")
	if err != nil {
		return err
	}
	classes := "p"
	if mode == "ballot" {
		classes = "b"
	}
	t, err := c.typ(classes, 32)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(3, 3); err != nil {
		return err
	}
	d, p := int32(0), int32(-1)
	if t.class == classPred {
		a, err := b.arg(0)
		if err != nil {
			return err
		}
		if a.not {
			return b.errorf("! does not belong here")
		}
		if p, err = b.pred(a); err != nil {
			return err
		}
	} else if d, err = b.dest(0, t); err != nil {
		return err
	}
	src, not, err := b.predSrc(1)
	if err != nil {
		return err
	}
	members, err := b.src(2, typeB32)
	if err != nil {
		return err
	}
	n, err := b.guarded(opVote)
	if err != nil {
		return err
	}
	n.d, n.p, n.q, n.elems[0] = d, p, src, members
	if not {
		n.flags |= flagNot
	}
	n.sub = map[string]uint8{"all": voteAll, "any": voteAny, "uni": voteUni, "ballot": voteBallot}[mode]
	return nil
}

// lowerMatch is match.any.sync d, a, members and match.all.sync d|p, a, members.
func lowerMatch(b *builder, c *cursor) error {
	mode, err := c.one("any", "all")
	if err != nil {
		return err
	}
	if _, err := c.one("sync"); err != nil {
		return err
	}
	t, err := c.typ("b", 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(3, 3); err != nil {
		return err
	}
	out, p := b.in.args[0], int32(-1)
	if out.pair != nil {
		if mode == "any" || out.pair.not {
			return b.errorf("a pair of predicates does not belong here")
		}
		if p, err = b.pred(*out.pair); err != nil {
			return err
		}
		out.pair = nil
	}
	d, _, err := b.register(out, typeB32, dtype.agrees)
	if err != nil {
		return err
	}
	x, err := b.src(1, t)
	if err != nil {
		return err
	}
	members, err := b.src(2, typeB32)
	if err != nil {
		return err
	}
	n, err := b.guarded(opMatch)
	if err != nil {
		return err
	}
	n.d, n.a, n.p, n.elems[0], n.sub = d, x, p, members, matchAny
	if mode == "all" {
		n.sub = matchAll
	}
	return nil
}

func lowerActive(b *builder, c *cursor) error {
	t, err := c.typ("b", 32)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(1, 1); err != nil {
		return err
	}
	d, err := b.dest(0, t)
	if err != nil {
		return err
	}
	n, err := b.guarded(opActive)
	if err != nil {
		return err
	}
	n.d = d
	return nil
}

// lowerRedux is redux.sync.
func lowerRedux(b *builder, c *cursor) error {
	if _, err := c.one("sync"); err != nil {
		return err
	}
	what, err := c.one("add", "min", "max", "and", "or", "xor")
	if err != nil {
		return err
	}
	flags := uint32(0)
	abs, nan := c.opt("abs") != "", c.opt("NaN") != ""
	classes := "us"
	switch what {
	case "and", "or", "xor":
		classes = "b"
	case "min", "max":
		classes = "usf"
	}
	t, err := c.typ(classes, 32)
	if err != nil {
		return err
	}
	if t.class != classFloat && (abs || nan) {
		return b.errorf("modifier .abs or .NaN is not supported here")
	}
	if abs {
		flags |= flagXorSign
	}
	if nan {
		flags |= flagNaN
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(3, 3); err != nil {
		return err
	}
	d, err := b.dest(0, t)
	if err != nil {
		return err
	}
	x, err := b.src(1, t)
	if err != nil {
		return err
	}
	members, err := b.src(2, typeB32)
	if err != nil {
		return err
	}
	n, err := b.guarded(opRedux)
	if err != nil {
		return err
	}
	n.d, n.a, n.elems[0], n.flags = d, x, members, flags
	n.sub = map[string]uint8{"add": reduxAdd, "min": reduxMinU, "max": reduxMaxU, "and": reduxAnd, "or": reduxOr, "xor": reduxXor}[what]
	switch {
	case t.signed() && what != "add":
		n.sub += reduxMinS - reduxMinU
	case t.class == classFloat:
		n.sub += reduxMinF - reduxMinU
	}
	return nil
}

// lowerElect is elect.sync d|p, members.
func lowerElect(b *builder, c *cursor) error {
	if _, err := c.one("sync"); err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(2, 2); err != nil {
		return err
	}
	out := b.in.args[0]
	if out.pair == nil || out.pair.not {
		return b.errorf("lacks a predicate beside the destination")
	}
	p, err := b.pred(*out.pair)
	if err != nil {
		return err
	}
	out.pair = nil
	d := b.newSlot()
	if out.kind != argSink {
		if d, _, err = b.register(out, typeB32, dtype.agrees); err != nil {
			return err
		}
	}
	members, err := b.src(1, typeB32)
	if err != nil {
		return err
	}
	n, err := b.guarded(opElect)
	if err != nil {
		return err
	}
	n.d, n.p, n.elems[0] = d, p, members
	return nil
}
