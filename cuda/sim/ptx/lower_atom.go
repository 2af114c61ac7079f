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
	atomMinF
	atomMaxF
)

// atomTypes are the types that each operation takes.
var atomTypes = map[string]struct {
	classes string
	widths  []uint8
	sub     uint8
}{
	"add": {"us", []uint8{32, 64}, atomAdd}, "min": {"us", []uint8{32, 64}, atomMinU}, "max": {"us", []uint8{32, 64}, atomMaxU},
	"and": {"b", []uint8{32, 64}, atomAnd}, "or": {"b", []uint8{32, 64}, atomOr}, "xor": {"b", []uint8{32, 64}, atomXor},
	"inc": {"u", []uint8{32}, atomInc}, "dec": {"u", []uint8{32}, atomDec},
	"exch": {"b", []uint8{32, 64}, atomExch}, "cas": {"b", []uint8{16, 32, 64}, atomCas},
}

// atomMods is what the modifiers of atom and red say.
type atomMods struct {
	what   string
	space  space
	vec    uint8
	policy bool
	t      dtype
	sub    uint8
}

func (b *builder) readAtom(c *cursor) (a atomMods, err error) {
	c.opt("relaxed", "acquire", "release", "acq_rel")
	c.opt(scopes...)
	switch c.opt("global", "shared", "shared::cta", "shared::cluster") {
	case "global":
		a.space = spaceGlobal
	case "shared", "shared::cta", "shared::cluster":
		a.space = spaceShared
	}
	c.opt(scopes...)
	names := []string{"add", "min", "max", "and", "or", "xor", "inc", "dec"}
	if b.in.name == "atom" {
		names = append(names, "exch", "cas")
	}
	if a.what, err = c.one(names...); err != nil {
		return
	}
	noftz := c.opt("noftz") != ""
	a.policy = c.opt("L2::cache_hint") != ""
	a.vec = vector(c)
	if t, ok := c.floating(); ok {
		half := t.class == classF16 || t.class == classBF16 || t.class == classF16x2 || t.class == classBF16x2
		subs := map[string]uint8{"add": atomAddF, "min": atomMinF, "max": atomMaxF}
		if subs[a.what] == 0 || a.what != "add" && (a.vec == 1 || !half) || !half && t.class != classFloat {
			return a, b.errorf("type %s is not supported here", t)
		}
		a.t, a.sub = t, subs[a.what]
		if half && !noftz {
			return a, b.errorf("lacks .noftz")
		}
		if err = c.exactly(t); err == nil {
			err = c.end()
		}
		return
	}
	types := atomTypes[a.what]
	if noftz || a.vec > 1 {
		return a, b.errorf("modifier .noftz or a vector of integers is not supported here")
	}
	if a.t, err = c.typ(types.classes, types.widths...); err != nil {
		return
	}
	a.sub = types.sub
	switch {
	case a.t.signed() && a.sub == atomMinU:
		a.sub = atomMinS
	case a.t.signed() && a.sub == atomMaxU:
		a.sub = atomMaxS
	}
	return a, c.end()
}

// lowerAtom is atom and red. Orders and scopes are checked and have no effect: memory
// is in order. A vector is as many operations, one after the other.
func lowerAtom(b *builder, c *cursor) error {
	a, err := b.readAtom(c)
	if err != nil {
		return err
	}
	at, want := 0, 2
	if b.in.name == "atom" {
		at, want = 1, 3
	}
	if a.what == "cas" {
		want++
	}
	if a.policy {
		want++
	}
	if err := b.count(want, want); err != nil {
		return err
	}
	if a.policy {
		if err := b.policy(want - 1); err != nil {
			return err
		}
	}
	addr, err := b.arg(at)
	if err != nil {
		return err
	}
	place, err := b.addr(addr, a.space)
	if err != nil {
		return err
	}
	x, err := b.elements(b.in.args[at+1], a.vec)
	if err != nil {
		return err
	}
	d := make([]arg, a.vec)
	for i := range d {
		d[i].kind = argSink
	}
	if at == 1 {
		if d, err = b.elements(b.in.args[0], a.vec); err != nil {
			return err
		}
	}
	for i := range x {
		if err := b.atom(a, place, d[i], x[i]); err != nil {
			return err
		}
		place.off += int64(a.t.size())
	}
	return nil
}

func (b *builder) atom(a atomMods, at operandAddr, dst, src arg) error {
	d := int32(0)
	var err error
	if dst.kind == argSink {
		d = b.newSlot()
	} else if d, _, err = b.register(dst, a.t, dtype.agrees); err != nil {
		return err
	}
	x, err := b.source(src, a.t)
	if err != nil {
		return err
	}
	y := int32(0)
	if a.what == "cas" {
		if y, err = b.src(3, a.t); err != nil {
			return err
		}
	}
	n, err := b.guarded(opAtom)
	if err != nil {
		return err
	}
	n.put(inst{size: uint8(a.t.size()), vec: 1, flags: flagStrong}, at)
	n.width(a.t)
	n.d, n.b, n.c, n.sub = d, x, y, a.sub
	f, count := formatOf(a.t)
	n.fmt = f
	if count == 2 {
		n.flags |= flagPair
	}
	return nil
}

// lowerPrefetch checks what only moves memory between caches, and does nothing here:
// prefetch, applypriority, discard.
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
	want := 1
	if b.in.name == "discard" || b.in.name == "applypriority" {
		want = 2
	}
	if err := b.count(want, want); err != nil {
		return err
	}
	a, err := b.arg(0)
	if err != nil {
		return err
	}
	if _, err = b.addr(a, sp); err != nil {
		return err
	}
	_, err = b.guarded(opNop)
	return err
}

// lowerCreatePolicy makes a cache policy, which nothing here looks at.
func lowerCreatePolicy(b *builder, c *cursor) error {
	if _, err := c.one("fractional", "range", "cvt"); err != nil {
		return err
	}
	for len(c.mods) > 1 {
		if _, err := c.one("global", "L2", "L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"); err != nil {
			return err
		}
	}
	if err := c.exactly(typeB64); err != nil {
		return err
	}
	if err := b.count(1, 4); err != nil {
		return err
	}
	d, err := b.dest(0, typeB64)
	if err != nil {
		return err
	}
	n, err := b.guarded(opMov)
	if err != nil {
		return err
	}
	n.d, n.a = d, b.constant(0)
	return nil
}

// lowerFence is membar and fence. Memory is in order here; a fence only says that
// the thread looks at what others do.
func lowerFence(b *builder, c *cursor) error {
	proxy := c.opt("proxy") != ""
	switch {
	case proxy:
		if _, err := c.one("alias", "async", "async.global", "async::generic"); err != nil {
			return err
		}
		c.opt("global", "shared::cta", "shared::cluster")
	case b.in.name == "membar":
		if _, err := c.one("cta", "gl", "sys", "gpu"); err != nil {
			return err
		}
	case c.opt("mbarrier_init") != "":
		if _, err := c.one("release"); err != nil {
			return err
		}
		if _, err := c.one("cluster"); err != nil {
			return err
		}
	default:
		c.opt("sc", "acq_rel", "acquire", "release")
		if _, err := c.one(scopes...); err != nil {
			return err
		}
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(0, 0); err != nil {
		return err
	}
	_, err := b.guarded(opFence)
	return err
}

// lowerHint checks instructions that only say how fast something is to be:
// griddepcontrol, setmaxnreg, pmevent.
func lowerHint(b *builder, c *cursor) error {
	want := 1
	switch b.in.name {
	case "griddepcontrol":
		if _, err := c.one("wait", "launch_dependents"); err != nil {
			return err
		}
		want = 0
	case "setmaxnreg":
		if _, err := c.one("inc", "dec"); err != nil {
			return err
		}
		if _, err := c.one("sync"); err != nil {
			return err
		}
		c.opt("aligned")
		if err := c.exactly(typeU32); err != nil {
			return err
		}
	default:
		c.opt("mask")
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(want, want); err != nil {
		return err
	}
	_, err := b.guarded(opNop)
	return err
}
