package ptx

// Registers that are only ever a copy of a constant, a parameter or a special
// register are that slot: NVRTC loads each parameter into a register at the
// kernel's start, and constants inside loops.

// sources calls f on each register slot that the op reads.
func (n *inst) sources(f func(slot *int32)) {
	if n.op >= opPredAnd && n.op <= opPredMov {
		return // predicates only
	}
	f(&n.a)
	f(&n.b)
	f(&n.c)
	elems := 0
	switch n.op {
	case opSt, opPack:
		elems = int(n.vec)
	case opBfi, opShfl, opVote, opMatch, opRedux, opElect, opWarpSync, opCopyAsync:
		elems = 1
	}
	for i := range n.elems[:elems] {
		f(&n.elems[i])
	}
}

// results calls f on each register slot that the op writes. Slot 0 stands for
// none.
func (n *inst) results(f func(slot int32)) {
	if n.op == opLd || n.op == opLdParam {
		for _, s := range n.elems[:n.vec] {
			f(s)
		}
		return
	}
	f(n.d)
}

// propagate replaces such registers by what they copy and leaves a nop where
// the copy was. Reading a register before its only definition is undefined in
// PTX, so the place of the copy does not matter.
func propagate(code []inst, slots int, fixed func(f func(slot int32))) {
	defs := make([]int32, slots)
	isFixed := make([]bool, slots)
	fixed(func(s int32) { isFixed[s] = true })
	for i := range code {
		code[i].results(func(s int32) { defs[s]++ })
	}
	for changed := true; changed; {
		changed = false
		instead := make(map[int32]int32)
		for i := range code {
			n := &code[i]
			if n.op == opMov && n.guard < 0 && n.d != 0 && defs[n.d] == 1 && isFixed[n.a] {
				instead[n.d] = n.a
				n.op, n.d, n.a = opNop, 0, 0
			}
		}
		for i := range code {
			code[i].sources(func(s *int32) {
				if to, ok := instead[*s]; ok {
					*s = to
					changed = true
				}
			})
		}
	}
}

// fixedSlots calls f on each slot that is filled before the kernel starts.
func (k *Kernel) fixedSlots(f func(slot int32)) {
	for _, c := range k.consts {
		f(c.slot)
	}
	for _, p := range k.paramIn {
		f(p.slot)
	}
	for _, s := range k.specials {
		f(s.slot)
	}
}
