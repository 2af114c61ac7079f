package ptx

// body reads a kernel's { }, scopes within scopes.
func (p *parser) body(e *entry) {
	p.expect("{")
	sc, depth := e.top, 1
	for p.err == nil && depth > 0 {
		switch {
		case p.tok.kind == tokEOF:
			p.fail("kernel %s has no end", e.name)
		case p.accept("}"):
			sc, depth = sc.up, depth-1
		case p.accept("{"):
			if depth++; depth > maxScopes {
				p.fail("more than %d scopes in each other", maxScopes)
				return
			}
			sc = newScope(sc)
		case p.tok.kind == tokDot:
			p.local(e, sc)
		case p.tok.kind == tokIdent || p.is("@"):
			p.statement(e, sc)
		case p.accept(";"):
		default:
			p.fail("%s where a statement belongs", p.tok)
		}
	}
}

// local reads a directive inside a body.
func (p *parser) local(e *entry, sc *scope) {
	d := p.tok.text
	switch d {
	case "reg":
		p.advance()
		p.registers(sc)
	case "shared":
		p.advance()
		e.vars = append(e.vars, p.variable(spaceShared, false, sc)...)
	case "local":
		p.advance()
		e.vars = append(e.vars, p.variable(spaceLocal, false, sc)...)
	case "param":
		p.advance()
		e.vars = append(e.vars, p.variable(spaceParam, false, sc)...)
	case "global", "const":
		p.advance()
		p.moduleVariable(d, false, sc)
	case "pragma":
		p.advance()
		p.pragma()
	case "loc":
		p.loc()
	case "file":
		p.file()
	default:
		p.fail(".%s is not supported in a kernel", d)
	}
}

// registers reads ".b32 %r<10>, %a, %b;".
func (p *parser) registers(sc *scope) {
	typ, ok := typeNames[p.tok.text]
	if p.tok.kind != tokDot || !ok || !typ.declarable() {
		p.fail("%s where a register type belongs", p.tok)
		return
	}
	p.advance()
	for p.err == nil {
		name := p.ident("a register name")
		if p.accept("<") {
			n := p.integer("a count")
			if n > maxRange {
				p.fail("registers %s<%d>: the most is %d", name, n, maxRange)
			}
			p.expect(">")
			if _, twice := sc.ranges[name]; twice && p.err == nil {
				p.fail("registers %s declared twice", name)
			}
			sc.ranges[name] = regRange{typ, n}
		} else {
			if _, twice := sc.regs[name]; twice && p.err == nil {
				p.fail("register %s declared twice", name)
			}
			sc.regs[name] = typ
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
}

// statement reads a label, or an instruction with its guard and operands.
func (p *parser) statement(e *entry, sc *scope) {
	in := instr{line: p.tok.line, scope: sc, src: p.src}
	if p.accept("@") {
		in.not = p.accept("!")
		in.guard = p.ident("a predicate")
	}
	in.name = p.ident("an instruction")
	if in.guard == "" && p.accept(":") {
		if p.tok.kind == tokDot {
			switch p.tok.text {
			case "branchtargets", "calltargets":
				p.targets(in.name, sc)
				return
			case "callprototype":
				p.prototype(in.name, sc)
				return
			}
		}
		if sc.labels[in.name] && p.err == nil {
			p.fail("label %s defined twice", in.name)
		}
		sc.labels[in.name] = true
		in.label, in.name = in.name, ""
		e.body = append(e.body, in)
		return
	}
	for p.err == nil && p.tok.kind == tokDot {
		in.mods = append(in.mods, p.tok.text)
		p.advance()
	}
	if p.err == nil && lowerings[in.name] == nil {
		p.err = &SyntaxError{Line: in.line, Instr: in.text(), Msg: "unknown instruction"}
		return
	}
	for p.err == nil && !p.is(";") {
		in.args = append(in.args, p.arg(true))
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	e.body = append(e.body, in)
}

// prototype reads the signature of what an indirect call calls.
func (p *parser) prototype(name string, sc *scope) {
	e := &entry{line: p.tok.line, top: newScope(nil), function: true, name: name}
	p.advance()
	p.signature(e, false)
	for p.err == nil && p.tok.kind == tokDot && p.tok.text == "noreturn" {
		p.advance()
	}
	p.expect(";")
	if _, twice := sc.protos[name]; twice && p.err == nil {
		p.fail("label %s defined twice", name)
	}
	sc.protos[name] = e
}

// targets reads the list that a brx.idx or a call chooses from.
func (p *parser) targets(name string, sc *scope) {
	p.advance()
	var list []string
	for p.err == nil {
		list = append(list, p.ident("a label"))
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	if _, twice := sc.lists[name]; twice && p.err == nil {
		p.fail("label %s defined twice", name)
	}
	sc.lists[name] = list
}

// arg reads one operand.
func (p *parser) arg(vectors bool) arg {
	switch {
	case p.accept("["):
		a := arg{kind: argAddr}
		if p.tok.kind == tokIdent {
			a.name = p.name()
			if p.accept("+") {
				a.off = p.offset(false)
			}
		} else {
			minus := p.accept("-")
			a.off = p.offset(minus)
		}
		p.expect("]")
		return a
	case vectors && p.accept("("):
		a := arg{kind: argList}
		for p.err == nil && !p.is(")") {
			a.vec = append(a.vec, p.arg(false))
			if len(a.vec) > maxFormals {
				p.fail("more than %d arguments", maxFormals)
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
		return a
	case vectors && p.accept("{"):
		a := arg{kind: argVec}
		for p.err == nil {
			a.vec = append(a.vec, p.arg(false))
			if len(a.vec) > 8 {
				p.fail("vector of more than eight elements")
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect("}")
		return a
	case p.accept("!"):
		return arg{kind: argName, not: true, name: p.ident("a predicate")}
	case p.is("-") || p.is("+") || p.tok.kind == tokInt:
		minus := p.accept("-")
		if !minus {
			p.accept("+")
		}
		if p.tok.kind == tokReal || p.tok.kind == tokF32 || p.tok.kind == tokF64 {
			a := p.floatArg()
			if minus {
				a.negate()
			}
			return a
		}
		v := p.integer("a number")
		if minus {
			v = -v
		}
		return arg{kind: argInt, num: v}
	case p.tok.kind == tokF32 || p.tok.kind == tokF64 || p.tok.kind == tokReal:
		return p.floatArg()
	case p.tok.kind == tokIdent:
		a := arg{kind: argName, name: p.name()}
		if a.name == "_" {
			a.kind = argSink
		}
		if p.accept("+") {
			a.off = p.offset(false)
		}
		if a.name == "WARP_SZ" {
			return arg{kind: argInt, num: warpSize}
		}
		if vectors && p.accept("|") {
			q := p.arg(false)
			a.pair = &q
		}
		return a
	}
	p.fail("%s where an operand belongs", p.tok)
	return arg{}
}

func (p *parser) floatArg() arg {
	a := arg{kind: argFloat, num: p.tok.num}
	switch p.tok.kind {
	case tokF32:
		a.bits = 32
	case tokF64:
		a.bits = 64
	}
	p.advance()
	return a
}

// name reads an identifier with the .x of a special register.
func (p *parser) name() string {
	s := p.ident("a name")
	if len(s) > 0 && s[0] == '%' && p.tok.kind == tokDot && p.tok.glue {
		s += "." + p.tok.text
		p.advance()
	}
	return s
}

func (p *parser) offset(minus bool) int64 {
	if p.accept("-") {
		minus = !minus
	}
	v := int64(p.integer("an offset"))
	if minus {
		v = -v
	}
	return v
}

// negate changes the sign of a floating-point constant.
func (a *arg) negate() {
	if a.bits == 32 {
		a.num ^= 1 << 31
	} else {
		a.num ^= 1 << 63
	}
}
