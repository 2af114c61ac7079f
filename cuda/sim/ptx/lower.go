package ptx

import "fmt"

// Limits of one kernel, so that hostile text stays in proportion.
const (
	maxSlots = 16384 // registers, constants, special registers
	maxCode  = 1 << 17
)

// builder lowers one kernel: a straight pass that turns each instruction into
// ops over slots, then flow.go cuts the ops into blocks and puts joins in.
type builder struct {
	k      *Kernel
	e      *entry
	code   []inst
	labels map[labelKey]int32 // to the index of the op behind
	fixups []fixup

	regSlots   map[regKey]int32
	predSlots  map[regKey]int32
	constSlots map[uint64]int32
	paramSlots map[paramSlot]int32 // slot 0 in the key
	specials   map[special]int32
	places     map[*variable]uint64

	externs     map[int64]int32 // slots of addresses in dynamic shared memory, by offset
	externAlign int

	in  *instr
	idx int32
}

type labelKey struct {
	scope *scope
	name  string
}

type regKey struct {
	scope *scope
	name  string
}

type fixup struct {
	at    int
	scope *scope
	name  string
	in    *instr
}

func (b *builder) errorf(format string, args ...any) error {
	e := &SyntaxError{Line: b.e.line, Msg: fmt.Sprintf(format, args...)}
	if b.in != nil {
		e.Line, e.Instr = b.in.line, b.in.text()
	}
	return e
}

func lower(e *entry) (*Kernel, error) {
	b := &builder{
		k: &Kernel{name: e.name, maxThreads: MaxThreads, reqThreads: e.reqThreads, slots: 1, preds: 1},
		e: e, labels: map[labelKey]int32{}, regSlots: map[regKey]int32{}, predSlots: map[regKey]int32{},
		constSlots: map[uint64]int32{}, paramSlots: map[paramSlot]int32{}, specials: map[special]int32{},
		places: map[*variable]uint64{}, externs: map[int64]int32{},
	}
	if e.maxThreads != 0 {
		b.k.maxThreads = e.maxThreads
	}
	if err := b.layoutParams(); err != nil {
		return nil, err
	}
	for _, v := range e.vars {
		if _, err := b.address(v); err != nil {
			return nil, err
		}
	}
	for i := range e.body {
		in := &e.body[i]
		b.in, b.idx = in, int32(len(b.k.text))
		if in.label != "" {
			b.labels[labelKey{in.scope, in.label}] = int32(len(b.code))
			continue
		}
		b.k.text = append(b.k.text, in.text())
		if err := lowerings[in.name](b, &cursor{b: b, mods: in.mods}); err != nil {
			return nil, err
		}
		if b.k.slots > maxSlots || b.k.preds > maxSlots || len(b.code) > maxCode {
			return nil, b.errorf("kernel %s is too large", e.name)
		}
	}
	b.in = nil
	b.k.text = append(b.k.text, "end of kernel")
	b.idx = int32(len(b.k.text) - 1)
	end := b.inst(opExit)
	end.guard = -1
	if n := len(e.body); n > 0 {
		end.line = int32(e.body[n-1].line)
	}
	for _, f := range b.fixups {
		at, ok := b.label(f.scope, f.name)
		if !ok {
			b.in = f.in
			return nil, b.errorf("unknown label %s", f.name)
		}
		b.code[f.at].target = at
	}
	if err := b.finishShared(); err != nil {
		return nil, err
	}
	propagate(b.code, b.k.slots, b.k.fixedSlots)
	b.k.code = withJoins(b.code)
	return b.k, nil
}

// inst appends an op that carries the current instruction's guard and line.
func (b *builder) inst(o op) *inst {
	n := inst{op: o, guard: -1, p: -1, q: -1, join: -1, srcInst: b.idx, mask: ^uint64(0)}
	if b.in != nil {
		n.line = int32(b.in.line)
	}
	b.code = append(b.code, n)
	return &b.code[len(b.code)-1]
}

// guarded appends an op under the instruction's guard.
func (b *builder) guarded(o op) (*inst, error) {
	n := b.inst(o)
	if b.in.guard != "" {
		p, err := b.pred(arg{kind: argName, name: b.in.guard})
		if err != nil {
			return nil, err
		}
		n.guard = p
		if b.in.not {
			n.invert = ^uint32(0)
		}
	}
	return n, nil
}

func (b *builder) label(sc *scope, name string) (int32, bool) {
	for ; sc != nil; sc = sc.up {
		if at, ok := b.labels[labelKey{sc, name}]; ok {
			return at, true
		}
	}
	return 0, false
}

// layoutParams places parameters as C places the fields of a struct.
func (b *builder) layoutParams() error {
	off := uint64(0)
	for _, v := range b.e.params {
		off = (off + v.align - 1) &^ (v.align - 1)
		b.k.params = append(b.k.params, Param{Name: v.name, Type: v.typ.String(), Size: int(v.size), Align: int(v.align), Offset: int(off)})
		off += v.size
		if off > maxParamBytes {
			return b.errorf("kernel %s: parameters of more than %d bytes", b.e.name, maxParamBytes)
		}
	}
	b.k.paramBytes = int(off)
	return nil
}

// address returns where a variable lies in its state space.
func (b *builder) address(v *variable) (uint64, error) {
	if v.space == spaceParam {
		return uint64(b.k.params[v.param].Offset), nil
	}
	if at, ok := b.places[v]; ok {
		return at, nil
	}
	size, limit := &b.k.staticShared, maxShared
	switch {
	case v.space == spaceLocal:
		size, limit = &b.k.local, maxLocal
	}
	at := (uint64(*size) + v.align - 1) &^ (v.align - 1)
	if at+v.size > uint64(limit) {
		return 0, b.errorf("more than %d bytes of %s memory", limit, v.space)
	}
	*size = int(at + v.size)
	b.places[v] = at
	return at, nil
}

// finishShared places dynamic shared memory behind the static, and with it the
// addresses of extern variables.
func (b *builder) finishShared() error {
	base := alignUp(b.k.staticShared, max(b.externAlign, 16))
	if base > maxShared {
		return b.errorf("kernel %s: more than %d bytes of shared memory", b.e.name, maxShared)
	}
	b.k.dynamicBase = base
	for off, slot := range b.externs {
		b.k.consts = append(b.k.consts, constSlot{slot, uint64(base) + uint64(off)})
	}
	return nil
}

// width fills in the fields that depend on a type's width.
func (n *inst) width(t dtype) {
	n.mask, n.sh = mask(t.bits), 64-t.bits
}

func alignUp(n, to int) int { return (n + to - 1) &^ (to - 1) }
