package ptx

import "slices"

// stackBytes is what a kernel's threads have for calls where the text does not say
// how deep they go: of functions that call themselves, or through pointers.
const stackBytes = 16 << 10

// maxCallDepth bounds calls in each other.
const maxCallDepth = 1024

// callSite is a call as it runs. Of a call through a pointer only the caller's side is
// known.
type callSite struct {
	caller, callee *body

	base    int32 // slot of where the caller's frame begins
	frame   int   // bytes of the caller's frame
	in, out []move
	to      target
}

// target is a function as it is called.
type target struct {
	body  int     // of builder.fns
	start int32   // its first op
	base  int32   // slot of where its frame begins
	size  int     // bytes of its frame
	regs  []int32 // kept over the call, because the function may be running
	preds []int32
}

// move is bytes that go from one frame to the other.
type move struct{ from, to, size int }

// pointer is a function whose address a kernel may have.
type pointer struct {
	function        int // its index in the text
	callee          *body
	params, results []int // places in its frame
	to              target
}

// callArgs are the parts of a call: (results), what, (arguments), targets.
type callArgs struct {
	rets, params []arg
	callee       arg
	targets      string
}

func (b *builder) callArgs() (a callArgs, err error) {
	args := b.in.args
	if len(args) > 0 && args[0].kind == argList {
		a.rets, args = args[0].vec, args[1:]
	}
	if len(args) == 0 || args[0].kind != argName {
		return a, b.errorf("lacks a function")
	}
	a.callee, args = args[0], args[1:]
	if len(args) > 0 && args[0].kind == argList {
		a.params, args = args[0].vec, args[1:]
	}
	if len(args) > 0 && args[0].kind == argName {
		a.targets, args = args[0].name, args[1:]
	}
	if len(args) > 0 {
		return a, b.errorf("%d operands are too many", len(b.in.args))
	}
	return a, nil
}

func lowerCall(b *builder, c *cursor) error {
	c.opt("uni")
	if err := c.end(); err != nil {
		return err
	}
	a, err := b.callArgs()
	if err != nil {
		return err
	}
	e := b.t.function[a.callee.name]
	if e == nil {
		if _, _, ok := b.resolve(a.callee.name); ok {
			return b.callPointer(a)
		}
		return b.errorf("unknown function %s", a.callee.name)
	}
	if e.declared {
		return b.system(a, e)
	}
	f := b.bodyOf(e)
	if err := b.placeFormals(f); err != nil {
		return err
	}
	site := callSite{caller: b.fn, callee: f, base: b.fn.base}
	if site.in, err = b.actuals(a.params, e.params, false); err != nil {
		return err
	}
	if site.out, err = b.actuals(a.rets, e.rets, true); err != nil {
		return err
	}
	for i, v := range e.params {
		site.in[i].to = int(b.places[v])
	}
	for i, v := range e.rets {
		site.out[i].to, site.out[i].from = site.out[i].from, int(b.places[v])
	}
	b.fn.calls = append(b.fn.calls, f)
	n, err := b.guarded(opCall)
	if err != nil {
		return err
	}
	n.imm = int64(len(b.k.calls))
	b.k.calls = append(b.k.calls, site)
	return b.results(a.rets, e.rets, site.out)
}

// callPointer lowers a call of a function whose address is in a register. It may be
// any that the prototype fits.
func (b *builder) callPointer(a callArgs) error {
	var proto *entry
	var list []string
	for sc := b.in.scope; sc != nil && proto == nil; sc = sc.up {
		if proto = sc.protos[a.targets]; proto == nil && len(sc.lists[a.targets]) > 0 {
			list = sc.lists[a.targets]
			proto = b.t.function[list[0]]
		}
	}
	if proto == nil {
		return b.errorf("call through a register without a prototype")
	}
	for _, e := range b.t.functions {
		if !e.declared && sameSizes(e.params, proto.params) && sameSizes(e.rets, proto.rets) {
			if err := b.pointTo(e); err != nil {
				return err
			}
		}
	}
	address, err := b.source(a.callee, typeU64)
	if err != nil {
		return err
	}
	site := callSite{caller: b.fn, base: b.fn.base}
	if site.in, err = b.actuals(a.params, proto.params, false); err != nil {
		return err
	}
	if site.out, err = b.actuals(a.rets, proto.rets, true); err != nil {
		return err
	}
	for i := range site.out {
		site.out[i].to = site.out[i].from
	}
	b.taken = true
	n, err := b.guarded(opCallPointer)
	if err != nil {
		return err
	}
	n.a, n.imm = address, int64(len(b.k.calls))
	b.k.calls = append(b.k.calls, site)
	b.inst(opJoin) // where lanes meet that called different functions
	return b.results(a.rets, proto.rets, site.out)
}

func sameSizes(x, y []*variable) bool {
	return slices.EqualFunc(x, y, func(a, b *variable) bool { return a.size == b.size })
}

// pointTo adds a function to those that the kernel may call through a pointer.
func (b *builder) pointTo(e *entry) error {
	for _, p := range b.k.pointers {
		if p.function == e.index {
			return nil
		}
	}
	f := b.bodyOf(e)
	if err := b.placeFormals(f); err != nil {
		return err
	}
	p := pointer{function: e.index, callee: f}
	for _, v := range e.params {
		p.params = append(p.params, int(b.places[v]))
	}
	for _, v := range e.rets {
		p.results = append(p.results, int(b.places[v]))
	}
	b.k.pointers = append(b.k.pointers, p)
	return nil
}

// functionAddress is the address of a function: no memory is there.
func functionAddress(e *entry) uint64 { return windowCode | uint64(e.index+1)<<4 }

// actuals returns the places in the caller's frame of what a call passes or gets. A
// register or constant is put there first; results that go to a register get a
// place.
func (b *builder) actuals(args []arg, formals []*variable, result bool) ([]move, error) {
	if len(args) != len(formals) {
		return nil, b.errorf("%d values where the function has %d", len(args), len(formals))
	}
	var moves []move
	for i, a := range args {
		f := formals[i]
		if v := b.variable(a.name); a.kind == argName && v != nil && v.frame {
			if v.size < f.size {
				return nil, b.errorf("%s has %d bytes, the function's has %d", a.name, v.size, f.size)
			}
			at, err := b.address(v)
			if err != nil {
				return nil, err
			}
			moves = append(moves, move{from: int(at), size: int(f.size)})
			continue
		}
		if f.size != uint64(f.typ.size()) {
			return nil, b.errorf("%s of %d bytes in a register", f.name, f.size)
		}
		tmp := &variable{name: f.name, space: spaceLocal, align: f.align, size: f.size}
		at, err := b.address(tmp)
		if err != nil {
			return nil, err
		}
		if !result {
			s, err := b.source(a, f.typ)
			if err != nil {
				return nil, err
			}
			if err := b.frameAccess(opSt, s, int64(at), f.typ); err != nil {
				return nil, err
			}
		}
		moves = append(moves, move{from: int(at), size: int(f.size)})
	}
	return moves, nil
}

// results loads what a call returned into registers.
func (b *builder) results(args []arg, formals []*variable, out []move) error {
	for i, a := range args {
		if v := b.variable(a.name); v != nil && v.frame {
			continue
		}
		if a.kind == argSink {
			continue
		}
		s, _, err := b.register(a, formals[i].typ, dtype.agrees)
		if err != nil {
			return err
		}
		if err := b.frameAccess(opLd, s, int64(out[i].to), formals[i].typ); err != nil {
			return err
		}
	}
	return nil
}
