package ptx

import (
	"fmt"
	"strings"
)

// Limits of one kernel, so that hostile text stays in proportion.
const (
	maxSlots = 16384 // registers, constants, special registers
	maxCode  = 1 << 20
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

// resolve finds a register's declaration: by its name, or as one of a range.
func (b *builder) resolve(name string) (dtype, regKey, bool) {
	prefix := strings.TrimRight(name, "0123456789")
	number := name[len(prefix):]
	for sc := b.in.scope; sc != nil; sc = sc.up {
		if t, ok := sc.regs[name]; ok {
			return t, regKey{sc, name}, true
		}
		r, ok := sc.ranges[prefix]
		if !ok || number == "" || len(number) > 9 || len(number) > 1 && number[0] == '0' {
			continue
		}
		n := uint64(0)
		for _, c := range []byte(number) {
			n = n*10 + uint64(c-'0')
		}
		if n < r.count {
			return r.typ, regKey{sc, name}, true
		}
	}
	return dtype{}, regKey{}, false
}

func (b *builder) variable(name string) *variable {
	for sc := b.in.scope; sc != nil; sc = sc.up {
		if v := sc.vars[name]; v != nil {
			return v
		}
	}
	return nil
}

func (b *builder) newSlot() int32 {
	b.k.slots++
	return int32(b.k.slots - 1)
}

func (b *builder) constant(v uint64) int32 {
	s, ok := b.constSlots[v]
	if !ok {
		s = b.newSlot()
		b.constSlots[v] = s
		b.k.consts = append(b.k.consts, constSlot{s, v})
	}
	return s
}

// register returns the slot of a register that fits, by fit, type t.
func (b *builder) register(a arg, t dtype, fit func(t, reg dtype) bool) (int32, dtype, error) {
	if a.kind != argName || a.not || a.off != 0 {
		return 0, dtype{}, b.errorf("operand is not a register")
	}
	reg, key, ok := b.resolve(a.name)
	if !ok {
		return 0, dtype{}, b.errorf("unknown register %s", a.name)
	}
	if reg.class == classPred || !fit(t, reg) {
		return 0, dtype{}, b.errorf("register %s is %s, not %s", a.name, reg, t)
	}
	s, ok := b.regSlots[key]
	if !ok {
		s = b.newSlot()
		b.regSlots[key] = s
	}
	return s, reg, nil
}

// dest returns the slot of a destination of exactly t's width.
func (b *builder) dest(i int, t dtype) (int32, error) {
	a, err := b.arg(i)
	if err != nil {
		return 0, err
	}
	if a.kind == argSink {
		return b.newSlot(), nil
	}
	s, _, err := b.register(a, t, dtype.agrees)
	return s, err
}

// src returns the slot of a source of type t: a register or a constant.
func (b *builder) src(i int, t dtype) (int32, error) {
	a, err := b.arg(i)
	if err != nil {
		return 0, err
	}
	return b.source(a, t)
}

func (b *builder) source(a arg, t dtype) (int32, error) {
	switch {
	case a.kind == argInt && t.class == classFloat:
		return 0, b.errorf("integer constant where %s belongs", t)
	case a.kind == argInt:
		if v := int64(a.num); a.num > mask(t.bits) && (v >= 0 || v < -1<<(t.bits-1)) {
			return 0, b.errorf("constant %d does not fit %s", v, t)
		}
		return b.constant(a.num & mask(t.bits)), nil
	case a.kind == argFloat:
		if t.class != classFloat && t.class != classBits || t.bits != a.bits {
			return 0, b.errorf("floating-point constant where %s belongs", t)
		}
		return b.constant(a.num), nil
	case a.kind == argName && !a.not:
		if k, ok := specialNames[a.name]; ok && a.off == 0 {
			return b.special(k, t)
		}
		if v := b.variable(a.name); v != nil {
			return b.variableAddress(v, a.off, t)
		}
	}
	s, _, err := b.register(a, t, dtype.agrees)
	return s, err
}

// variableAddress is a name used as a value: its address in its state space.
func (b *builder) variableAddress(v *variable, off int64, t dtype) (int32, error) {
	if t.bits != 64 && (t.bits != 32 || v.space == spaceGlobal) || t.class == classFloat {
		return 0, b.errorf("address of %s where %s belongs", v.name, t)
	}
	if off < -1<<31 || off > 1<<31 {
		return 0, b.errorf("offset %d", off)
	}
	if v.extern {
		b.externAlign = max(b.externAlign, int(v.align))
		s, ok := b.externs[off]
		if !ok {
			s = b.newSlot()
			b.externs[off] = s
		}
		return s, nil
	}
	at, err := b.address(v)
	if err != nil {
		return 0, err
	}
	return b.constant((at + uint64(off)) & mask(t.bits)), nil
}

func (b *builder) arg(i int) (arg, error) {
	if i >= len(b.in.args) {
		return arg{}, b.errorf("%d operands are too few", len(b.in.args))
	}
	if a := b.in.args[i]; a.pair == nil {
		return a, nil
	}
	return arg{}, b.errorf("a pair of predicates does not belong here")
}

// count checks the number of operands.
func (b *builder) count(least, most int) error {
	if n := len(b.in.args); n < least || n > most {
		if least == most {
			return b.errorf("%d operands instead of %d", n, least)
		}
		return b.errorf("%d operands instead of %d to %d", n, least, most)
	}
	return nil
}

// pred returns the slot of a predicate register.
func (b *builder) pred(a arg) (int32, error) {
	if a.kind == argSink {
		return b.newPred(), nil
	}
	if a.kind != argName || a.off != 0 {
		return 0, b.errorf("operand is not a predicate")
	}
	reg, key, ok := b.resolve(a.name)
	if !ok {
		return 0, b.errorf("unknown register %s", a.name)
	}
	if reg.class != classPred {
		return 0, b.errorf("register %s is %s, not .pred", a.name, reg)
	}
	s, ok := b.predSlots[key]
	if !ok {
		s = b.newPred()
		b.predSlots[key] = s
	}
	return s, nil
}

func (b *builder) newPred() int32 {
	b.k.preds++
	return int32(b.k.preds - 1)
}

// predSrc returns the slot of a predicate source and whether it is inverted.
func (b *builder) predSrc(i int) (int32, bool, error) {
	a, err := b.arg(i)
	if err != nil {
		return 0, false, err
	}
	if a.kind == argSink {
		return 0, false, b.errorf("_ as a source")
	}
	p, err := b.pred(a)
	return p, a.not, err
}

// width fills in the fields that depend on a type's width.
func (n *inst) width(t dtype) {
	n.mask, n.sh = mask(t.bits), 64-t.bits
}

// cursor walks the modifiers of an instruction: each must be taken by someone.
type cursor struct {
	b    *builder
	mods []string
}

// opt takes the next modifier if it is one of names, else returns "".
func (c *cursor) opt(names ...string) string {
	if len(c.mods) > 0 {
		for _, n := range names {
			if c.mods[0] == n {
				c.mods = c.mods[1:]
				return n
			}
		}
	}
	return ""
}

// one takes the next modifier, which must be one of names.
func (c *cursor) one(names ...string) (string, error) {
	if s := c.opt(names...); s != "" {
		return s, nil
	}
	if len(c.mods) == 0 {
		return "", c.b.errorf("lacks one of .%s", strings.Join(names, ", ."))
	}
	return "", c.b.errorf("modifier .%s is not supported here", c.mods[0])
}

// typ takes a type of one of the classes and one of the widths; it is the last
// modifier unless more follow for the caller.
func (c *cursor) typ(classes string, widths ...uint8) (dtype, error) {
	if len(c.mods) == 0 {
		return dtype{}, c.b.errorf("lacks a type")
	}
	t, ok := typeNames[c.mods[0]]
	if !ok {
		return dtype{}, c.b.errorf("modifier .%s is not supported here", c.mods[0])
	}
	if !strings.ContainsRune(classes, rune("busfp"[t.class])) {
		return dtype{}, c.b.errorf("type %s is not supported here", t)
	}
	if t.class != classPred {
		for _, w := range widths {
			if w == t.bits {
				c.mods = c.mods[1:]
				return t, nil
			}
		}
		return dtype{}, c.b.errorf("type %s is not supported here", t)
	}
	c.mods = c.mods[1:]
	return t, nil
}

// end checks that no modifier is left.
func (c *cursor) end() error {
	if len(c.mods) > 0 {
		return c.b.errorf("modifier .%s is not supported here", c.mods[0])
	}
	return nil
}

func alignUp(n, to int) int { return (n + to - 1) &^ (to - 1) }
