package ptx

import "strings"

// lowerMov is mov between registers, from special registers and constants, of
// variables' addresses, and between a register and a vector.
func lowerMov(b *builder, c *cursor) error {
	t, err := c.typ("busfp", 16, 32, 64)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(2, 2); err != nil {
		return err
	}
	d, s := b.in.args[0], b.in.args[1]
	switch {
	case t.class == classPred:
		return b.predicate(opPredMov)
	case d.kind == argVec && t.class == classBits:
		return b.unpack(t, d.vec, s)
	case s.kind == argVec && t.class == classBits:
		return b.pack(t, d, s.vec)
	case s.name == "%clock" || s.name == "%clock64" || s.name == "%clock_hi":
		return b.clock(opClock, t, s.name)
	case s.name == "%globaltimer" || s.name == "%globaltimer_lo" || s.name == "%globaltimer_hi":
		return b.clock(opTimer, t, s.name)
	}
	_, err = b.one(opMov, t)
	return err
}

// clock is a counter of instructions or of time, or a half of it.
func (b *builder) clock(o op, t dtype, name string) error {
	want := typeU32
	if name == "%clock64" || name == "%globaltimer" {
		want.bits = 64
	}
	if !want.agrees(t) {
		return b.errorf("%s is %s, not %s", name, want, t)
	}
	d, err := b.dest(0, t)
	if err != nil {
		return err
	}
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.d = d
	n.width(t)
	if strings.HasSuffix(name, "_hi") {
		n.sub = 32
	}
	return nil
}

// element returns the type of one of n parts of t.
func (b *builder) element(t dtype, n int) (dtype, error) {
	if n != 2 && n != 4 || int(t.bits)/n < 16 {
		return dtype{}, b.errorf("vector of %d in %s", n, t)
	}
	return dtype{classBits, t.bits / uint8(n)}, nil
}

func (b *builder) unpack(t dtype, vec []arg, s arg) error {
	e, err := b.element(t, len(vec))
	if err != nil {
		return err
	}
	x, err := b.source(s, t)
	if err != nil {
		return err
	}
	for i, v := range vec {
		if v.kind == argSink {
			continue
		}
		d, _, err := b.register(v, e, dtype.agrees)
		if err != nil {
			return err
		}
		n, err := b.guarded(opUnpack)
		if err != nil {
			return err
		}
		n.d, n.a, n.sh, n.mask = d, x, uint8(i)*e.bits, mask(e.bits)
	}
	return nil
}

func (b *builder) pack(t dtype, d arg, vec []arg) error {
	e, err := b.element(t, len(vec))
	if err != nil {
		return err
	}
	dst, _, err := b.register(d, t, dtype.agrees)
	if err != nil {
		return err
	}
	var elems [8]int32
	for i, v := range vec {
		if elems[i], err = b.source(v, e); err != nil {
			return err
		}
	}
	n, err := b.guarded(opPack)
	if err != nil {
		return err
	}
	n.d, n.elems, n.vec, n.sh, n.mask = dst, elems, uint8(len(vec)), e.bits, mask(t.bits)
	return nil
}
