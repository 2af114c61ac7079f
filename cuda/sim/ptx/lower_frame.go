package ptx

import "slices"

// lowerRet ends a function, or the threads of a kernel.
func lowerRet(b *builder, c *cursor) error {
	if !b.fn.e.function {
		return lowerExit(b, c)
	}
	c.opt("uni")
	if err := c.end(); err != nil {
		return err
	}
	if err := b.count(0, 0); err != nil {
		return err
	}
	return b.epilogue()
}

// prologue gives parameters and results their places in the frame, in this order and
// first, and loads those that are registers.
func (b *builder) prologue() error {
	if err := b.placeFormals(b.fn); err != nil {
		return err
	}
	for _, v := range b.fn.e.params {
		if v.reg {
			if err := b.register2(v, opLd); err != nil {
				return err
			}
		}
	}
	return nil
}

// placeFormals gives the parameters and results of a function their places.
func (b *builder) placeFormals(f *body) error {
	if f.placed {
		return nil
	}
	f.placed = true
	f.base = b.newSlot()
	caller := b.fn
	b.fn = f
	defer func() { b.fn = caller }()
	for _, list := range [][]*variable{f.e.params, f.e.rets} {
		for _, v := range list {
			if _, err := b.address(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// register2 moves a formal that is a register from or to its place in the frame.
func (b *builder) register2(v *variable, o op) error {
	in := b.in
	if in == nil {
		b.in = &instr{line: b.fn.e.line, scope: b.fn.e.top, name: b.fn.e.name}
		defer func() { b.in = nil }()
	} else {
		at := *in
		at.scope = b.fn.e.top
		b.in = &at
		defer func() { b.in = in }()
	}
	s, _, err := b.register(arg{kind: argName, name: v.name}, v.typ, dtype.agrees)
	if err != nil {
		return err
	}
	return b.frameAccess(o, s, int64(b.places[v]), v.typ)
}

// frameAccess loads or stores a register at a place in the frame.
func (b *builder) frameAccess(o op, slot int32, at int64, t dtype) error {
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.put(inst{size: uint8(t.size()), vec: 1}, operandAddr{b.fn.base, at, spaceLocal})
	n.elems[0], n.mask, n.sh = slot, mask(t.bits), 64-t.bits
	return nil
}

// epilogue stores results that are registers and returns.
func (b *builder) epilogue() error {
	for _, v := range b.fn.e.rets {
		if v.reg {
			if err := b.register2(v, opSt); err != nil {
				return err
			}
		}
	}
	_, err := b.guarded(opRet)
	return err
}

// finishCalls says how much local memory a thread has, fills in the frames' sizes,
// and finds the calls of functions that may be running already.
func (b *builder) finishCalls() error {
	for _, f := range b.fns {
		f.frame = alignUp(f.frame, 16)
	}
	deepest, cyclic := b.depth()
	if cyclic || b.taken {
		deepest = b.fns[0].frame + stackBytes
		for _, f := range b.fns {
			deepest += f.frame
		}
	}
	if deepest > maxLocal {
		return b.errorf("more than %d bytes of local memory", maxLocal)
	}
	b.k.local = deepest
	for i := range b.k.calls {
		site := &b.k.calls[i]
		site.frame = site.caller.frame
		if site.callee != nil {
			site.to = b.targetOf(site.callee, cyclic || b.taken)
		}
	}
	for i := range b.k.pointers {
		p := &b.k.pointers[i]
		p.to = b.targetOf(p.callee, true)
	}
	return nil
}

// targetOf returns a function as it is called. again: it may be running.
func (b *builder) targetOf(f *body, again bool) target {
	t := target{body: slices.Index(b.fns, f), base: f.base, size: f.frame}
	if again {
		t.regs = append([]int32{f.base}, f.regs...)
		t.preds = f.preds
	}
	return t
}

// depth returns the bytes of the frames on the deepest way through the calls, and
// whether there is a way without end.
func (b *builder) depth() (bytes int, cyclic bool) {
	const running = -1
	depths := map[*body]int{}
	var visit func(f *body, level int) int
	visit = func(f *body, level int) int {
		if d, ok := depths[f]; ok {
			if d == running {
				cyclic = true
				return 0
			}
			return d
		}
		if level > maxCallDepth {
			cyclic = true
			return 0
		}
		depths[f] = running
		below := 0
		for _, g := range f.calls {
			below = max(below, visit(g, level+1))
		}
		depths[f] = f.frame + below
		return f.frame + below
	}
	return visit(b.fns[0], 0), cyclic
}
