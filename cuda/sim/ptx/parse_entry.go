package ptx

func (p *parser) entry() {
	e := &entry{line: p.tok.line, top: newScope(p.out.global)}
	p.advance()
	e.name = p.ident("a kernel name")
	if p.known[e.name] && p.err == nil {
		p.fail("kernel %s defined twice", e.name)
	}
	p.known[e.name] = true
	if p.accept("(") && !p.accept(")") {
		for p.err == nil {
			p.parameter(e)
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	p.tuning(e)
	if p.is(";") {
		p.fail("kernel %s without a body", e.name)
		return
	}
	p.body(e)
	p.out.entries = append(p.out.entries, e)
}

// parameter reads ".param .u64 .ptr .global .align 16 name" or
// ".param .align 4 .b8 name[260]".
func (p *parser) parameter(e *entry) {
	if p.tok.kind != tokDot || p.tok.text != "param" {
		p.fail("%s where .param belongs", p.tok)
		return
	}
	p.advance()
	align, typ, size := p.alignType()
	p.pointer()
	v := &variable{space: spaceParam, typ: typ, align: align, size: size, param: len(e.params)}
	v.name = p.ident("a parameter name")
	p.array(v, maxParamBytes)
	if v.size == 0 && p.err == nil {
		p.fail("parameter %s without a size", v.name)
	}
	if e.top.vars[v.name] != nil && p.err == nil {
		p.fail("parameter %s declared twice", v.name)
	}
	e.top.vars[v.name] = v
	e.params = append(e.params, v)
}

// tuning reads the performance directives between a kernel's head and body.
func (p *parser) tuning(e *entry) {
	for p.err == nil && p.tok.kind == tokDot {
		d := p.tok.text
		p.advance()
		switch d {
		case "maxntid", "reqntid":
			dim := [3]uint64{1, 1, 1}
			for i := range dim {
				if dim[i] = p.integer("a number of threads"); dim[i] == 0 || dim[i] > MaxThreads {
					p.fail(".%s of %d", d, dim[i])
				}
				if !p.accept(",") {
					break
				}
			}
			e.maxThreads = int(min(dim[0]*dim[1]*dim[2], MaxThreads))
			if d == "reqntid" {
				e.reqThreads = [3]uint32{uint32(dim[0]), uint32(dim[1]), uint32(dim[2])}
			}
		case "minnctapersm", "maxnctapersm", "maxnreg", "abi_preserve", "abi_preserve_control":
			p.integer("a number")
		case "noreturn":
		case "reqnctapercluster", "explicitcluster", "blocksareclusters", "maxclusterrank":
			p.cluster(d)
		case "pragma":
			p.pragma()
		default:
			p.fail(".%s is not supported here", d)
		}
	}
}

// cluster takes clusters of one thread block, which is what there is without any.
func (p *parser) cluster(d string) {
	n := uint64(1)
	for p.err == nil && p.tok.kind == tokInt {
		n = max(n, p.integer("a number"))
		if !p.accept(",") {
			break
		}
	}
	if d == "reqnctapercluster" && n > 1 {
		p.fail("clusters of %d thread blocks are not supported", n)
	}
}

// functionEntry reads a function or its declaration:
// ".func (.param .b32 r) f (.param .b64 a) { }".
func (p *parser) functionEntry() {
	e := &entry{line: p.tok.line, top: newScope(p.out.global), function: true}
	p.advance()
	p.attribute()
	p.signature(e, true)
	p.tuning(e)
	old := p.out.function[e.name]
	if p.accept(";") {
		e.declared = true
		if old != nil {
			return
		}
	} else {
		p.body(e)
	}
	switch {
	case p.err != nil:
		return
	case old == nil:
		if len(p.out.functions) == maxFunctions {
			p.fail("more than %d functions", maxFunctions)
			return
		}
		e.index = len(p.out.functions)
		p.out.functions = append(p.out.functions, e)
		p.out.function[e.name] = e
	case old.declared:
		index := old.index
		*old = *e
		old.index = index
	default:
		p.fail("function %s defined twice", e.name)
	}
}

// signature reads "(returns) name (parameters)" of a function or a prototype.
func (p *parser) signature(e *entry, named bool) {
	if p.accept("(") {
		p.formals(e, &e.rets)
	}
	e.name = p.ident("a function's name")
	if p.accept("(") {
		p.formals(e, &e.params)
	}
}

// formals reads the parameters or results of a function up to the ")".
func (p *parser) formals(e *entry, list *[]*variable) {
	if p.accept(")") {
		return
	}
	for p.err == nil {
		p.formal(e, list)
		if len(*list) > maxFormals {
			p.fail("more than %d parameters", maxFormals)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
}

func (p *parser) formal(e *entry, list *[]*variable) {
	kind := p.tok.text
	if p.tok.kind != tokDot || kind != "param" && kind != "reg" {
		p.fail("%s where .param belongs", p.tok)
		return
	}
	p.advance()
	align, typ, size := p.alignType()
	p.pointer()
	v := &variable{space: spaceParam, typ: typ, align: align, size: size, frame: true, reg: kind == "reg", line: p.tok.line}
	v.name = p.ident("a parameter's name")
	p.array(v, maxParamBytes)
	if v.size == 0 && p.err == nil {
		p.fail("parameter %s without a size", v.name)
	}
	*list = append(*list, v)
	if v.name == "_" {
		return
	}
	if e.top.vars[v.name] != nil && p.err == nil {
		p.fail("parameter %s declared twice", v.name)
	}
	if v.reg {
		e.top.regs[v.name] = typ
	} else {
		e.top.vars[v.name] = v
	}
}

func (p *parser) pragma() {
	for p.err == nil && p.tok.kind == tokStr {
		p.advance()
		p.accept(",")
	}
	p.expect(";")
}

// pointer reads ".ptr .global .align 16", which says what a parameter points to.
func (p *parser) pointer() {
	if p.tok.kind == tokDot && p.tok.text == "ptr" {
		p.advance()
		for p.err == nil && p.tok.kind == tokDot {
			switch p.tok.text {
			case "global", "shared", "const", "local":
				p.advance()
			case "align":
				p.advance()
				p.integer("an alignment")
			default:
				p.fail(".%s behind .ptr", p.tok.text)
			}
		}
	}
}
