package ptx

import "fmt"

// Limits of one kernel, so that hostile text stays in proportion.
const (
	maxSlots = 16384 // registers, constants, special registers
	maxCode  = 1 << 17
)

// builder lowers one kernel with the functions that it calls: a straight pass that
// turns each instruction into ops over slots, then flow.go cuts the ops of each
// function into blocks and puts joins in.
type builder struct {
	k      *Kernel
	t      *tree
	code   []inst
	labels map[labelKey]int32 // to the index of the op behind
	fixups []fixup

	regSlots   map[regKey]int32
	predSlots  map[regKey]int32
	constSlots map[uint64]int32
	paramSlots map[paramSlot]int32 // slot 0 in the key
	specials   map[special]int32
	images     map[uint64]int32 // slots of addresses of module variables, by place
	places     map[*variable]uint64

	externs     map[int64]int32 // slots of addresses in dynamic shared memory, by offset
	externAlign int

	fn    *body // being lowered
	fns   []*body
	byFn  map[*entry]*body
	taken bool // there is an indirect call

	in  *instr
	idx int32
}

// body is a kernel or a function that is being lowered.
type body struct {
	e      *entry
	from   int   // its ops start here
	base   int32 // the slot with where its frame begins
	frame  int   // bytes of it
	calls  []*body
	regs   []int32 // its registers
	preds  []int32
	placed bool // its parameters have places
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
	e := &SyntaxError{Line: b.fn.e.line, Msg: fmt.Sprintf(format, args...)}
	if b.in != nil {
		e.Line, e.Instr = b.in.line, b.in.text()
		e.Source = b.t.source(b.in.src)
	}
	return e
}

// source is a place as errors name it: "a.cu:12", or "".
func (t *tree) source(p place) string {
	if name := t.files[p.file]; name != "" && p.line != 0 {
		return fmt.Sprintf("%s:%d", name, p.line)
	}
	return ""
}

func lower(t *tree, e *entry) (*Kernel, error) {
	b := &builder{
		k: &Kernel{name: e.name, maxThreads: MaxThreads, reqThreads: e.reqThreads, slots: 1, preds: 1},
		t: t, labels: map[labelKey]int32{}, regSlots: map[regKey]int32{}, predSlots: map[regKey]int32{},
		constSlots: map[uint64]int32{}, paramSlots: map[paramSlot]int32{}, specials: map[special]int32{},
		places: map[*variable]uint64{}, externs: map[int64]int32{}, images: map[uint64]int32{}, byFn: map[*entry]*body{},
	}
	if e.maxThreads != 0 {
		b.k.maxThreads = e.maxThreads
	}
	b.fn = b.bodyOf(e)
	b.fn.base = b.constant(0)
	if err := b.layoutParams(); err != nil {
		return nil, err
	}
	for i := 0; i < len(b.fns); i++ { // it grows as calls are found
		b.fn = b.fns[i]
		if err := b.lowerBody(); err != nil {
			return nil, err
		}
	}
	b.fn = b.fns[0]
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
	if err := b.finishCalls(); err != nil {
		return nil, err
	}
	propagate(b.code, b.k.slots, b.k.fixedSlots)
	b.joinBodies()
	return b.k, nil
}

// bodyOf returns the body of a function, which will be lowered.
func (b *builder) bodyOf(e *entry) *body {
	f := b.byFn[e]
	if f == nil {
		f = &body{e: e}
		b.byFn[e] = f
		b.fns = append(b.fns, f)
	}
	return f
}

// lowerBody lowers the instructions of b.fn.
func (b *builder) lowerBody() error {
	e := b.fn.e
	b.fn.from = len(b.code)
	if e.function {
		if err := b.prologue(); err != nil {
			return err
		}
	}
	for _, v := range e.vars {
		if _, err := b.address(v); err != nil {
			return err
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
		b.k.sources = append(b.k.sources, b.t.source(in.src))
		if err := lowerings[in.name](b, &cursor{b: b, mods: in.mods}); err != nil {
			return err
		}
		if b.k.slots > maxSlots || b.k.preds > maxSlots || len(b.code) > maxCode {
			return b.errorf("kernel %s is too large", b.k.name)
		}
	}
	b.in = nil
	b.idx = int32(len(b.k.text))
	b.k.text = append(b.k.text, "end of "+e.name)
	b.k.sources = append(b.k.sources, "")
	line := int32(e.line)
	if n := len(e.body); n > 0 {
		line = int32(e.body[n-1].line)
	}
	from := len(b.code)
	if e.function {
		if err := b.epilogue(); err != nil {
			return err
		}
	} else {
		b.inst(opExit)
	}
	for i := range b.code[from:] {
		b.code[from+i].line = line
	}
	return nil
}

// joinBodies puts joins into the code of each body and the bodies behind each other.
func (b *builder) joinBodies() {
	starts := make([]int32, len(b.fns))
	for i, f := range b.fns {
		end := len(b.code)
		if i+1 < len(b.fns) {
			end = b.fns[i+1].from
		}
		starts[i] = int32(len(b.k.code))
		part := append([]inst(nil), b.code[f.from:end]...)
		for j := range part {
			if part[j].op == opBra {
				part[j].target -= int32(f.from)
			}
		}
		for _, n := range withJoins(part) {
			if n.op == opBra {
				n.target += starts[i]
			}
			if n.join >= 0 {
				n.join += starts[i]
			}
			b.k.code = append(b.k.code, n)
		}
	}
	for i := range b.k.calls {
		if c := &b.k.calls[i]; c.callee != nil {
			c.to.start = starts[c.to.body]
		}
	}
	for i := range b.k.pointers {
		p := &b.k.pointers[i]
		p.to.start = starts[p.to.body]
	}
}

// inst appends an op that carries the current instruction's line, without guard.
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
	if b.in != nil && b.in.guard != "" {
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

// width fills in the fields that depend on a type's width.
func (n *inst) width(t dtype) {
	n.mask, n.sh = mask(t.bits), 64-t.bits
}

func alignUp(n, to int) int { return (n + to - 1) &^ (to - 1) }
