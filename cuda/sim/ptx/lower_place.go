package ptx

// layoutParams places a kernel's parameters as C places the fields of a struct.
func (b *builder) layoutParams() error {
	off := uint64(0)
	for _, v := range b.fn.e.params {
		off = (off + v.align - 1) &^ (v.align - 1)
		b.k.params = append(b.k.params, Param{Name: v.name, Type: v.typ.String(), Size: int(v.size), Align: int(v.align), Offset: int(off)})
		off += v.size
		if off > maxParamBytes {
			return b.errorf("kernel %s: parameters of more than %d bytes", b.fn.e.name, maxParamBytes)
		}
	}
	b.k.paramBytes = int(off)
	return nil
}

// inFrame reports whether the variable lies in a function's frame of local memory.
func (v *variable) inFrame() bool { return v.frame || v.space == spaceLocal }

// address returns where a variable lies: in its state space, in the frame of b.fn,
// or among the module's variables.
func (b *builder) address(v *variable) (uint64, error) {
	switch {
	case v.extern:
		return 0, b.errorf("%s is not defined in this module", v.name)
	case v.space == spaceGlobal || v.space == spaceConst:
		return v.image, nil
	case v.space == spaceParam && !v.frame:
		return uint64(b.k.params[v.param].Offset), nil
	}
	if at, ok := b.places[v]; ok {
		return at, nil
	}
	size, limit := &b.k.staticShared, maxShared
	if v.inFrame() {
		size, limit = &b.fn.frame, maxLocal
	}
	at := (uint64(*size) + v.align - 1) &^ (v.align - 1)
	if at+v.size > uint64(limit) {
		return 0, b.errorf("more than %d bytes of %s memory", limit, v.space)
	}
	*size = int(at + v.size)
	b.places[v] = at
	return at, nil
}

// variableAddress is a name used as a value: its address in its state space.
func (b *builder) variableAddress(v *variable, off int64, t dtype) (int32, error) {
	if t.bits != 64 && (t.bits != 32 || v.space == spaceGlobal || v.space == spaceConst) || t.floating() {
		return 0, b.errorf("address of %s where %s belongs", v.name, t)
	}
	if off < -1<<31 || off > 1<<31 {
		return 0, b.errorf("offset %d", off)
	}
	if v.extern && v.space == spaceShared {
		b.externAlign = max(b.externAlign, int(v.align))
		s, ok := b.externs[off]
		if !ok {
			s = b.newSlot()
			b.externs[off] = s
		}
		return s, nil
	}
	at, err := b.address(v)
	switch {
	case err != nil:
		return 0, err
	case v.space == spaceGlobal || v.space == spaceConst:
		return b.imageAddress(at + uint64(off)), nil
	case v.inFrame() && b.fn.e.function:
		n, err := b.guarded(opAdd)
		if err != nil {
			return 0, err
		}
		n.d, n.a, n.b, n.mask = b.newSlot(), b.fn.base, b.constant(at+uint64(off)), mask(t.bits)
		return n.d, nil
	}
	return b.constant((at + uint64(off)) & mask(t.bits)), nil
}

// imageAddress returns the slot of an address among the module's variables.
func (b *builder) imageAddress(at uint64) int32 {
	s, ok := b.images[at]
	if !ok {
		s = b.newSlot()
		b.images[at] = s
		b.k.images = append(b.k.images, constSlot{s, at})
	}
	return s
}

// finishShared places dynamic shared memory behind the static, and with it the
// addresses of extern variables.
func (b *builder) finishShared() error {
	base := alignUp(b.k.staticShared, max(b.externAlign, 16))
	if base > maxShared {
		return b.errorf("kernel %s: more than %d bytes of shared memory", b.fn.e.name, maxShared)
	}
	b.k.dynamicBase = base
	for off, slot := range b.externs {
		b.k.consts = append(b.k.consts, constSlot{slot, uint64(base) + uint64(off)})
	}
	return nil
}

// layout gives each variable of the module its place among all of them, constants
// first, and returns where the constants end and the size of all.
func (t *tree) layout() (consts, size uint64, err error) {
	for _, sp := range []space{spaceConst, spaceGlobal} {
		for _, v := range t.globals {
			if v.space != sp {
				continue
			}
			if v.size > maxImage {
				return 0, 0, &SyntaxError{Line: v.line, Msg: v.name + " is too large"}
			}
			size = (size + v.align - 1) &^ (v.align - 1)
			v.image = size
			if size += v.size; size > maxImage {
				return 0, 0, &SyntaxError{Line: v.line, Msg: "the module's variables are too large"}
			}
		}
		if sp == spaceConst {
			consts = size
		}
	}
	return consts, size, nil
}
