package ptx

import "math/bits"

// variable reads ".align 8 .b8 name[64], name2;" after the state space.
// It returns what it declared in in.
func (p *parser) variable(sp space, extern bool, in *scope) (declared []*variable) {
	align, typ, size := p.alignType()
	for p.err == nil {
		v := &variable{space: sp, typ: typ, align: align, extern: extern, size: size, line: p.tok.line}
		v.name = p.ident("a name")
		limit := uint64(maxShared)
		switch sp {
		case spaceLocal:
			limit = maxLocal
		case spaceParam:
			limit, v.frame = maxParamBytes, true
		}
		p.array(v, limit)
		if v.extern && v.size != 0 && p.err == nil {
			p.fail("extern %s with a size", v.name)
		}
		if !v.extern && v.size == 0 && p.err == nil {
			p.fail("%s without a size", v.name)
		}
		if in.vars[v.name] != nil && p.err == nil {
			p.fail("%s declared twice", v.name)
		}
		in.vars[v.name] = v
		declared = append(declared, v)
		if p.is("=") {
			p.fail("initial values of %s memory are not supported", sp)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	return declared
}

// moduleVariable reads ".align 4 .u32 a[2] = {1, 2}, b;" behind .global or .const.
func (p *parser) moduleVariable(d string, extern bool, in *scope) {
	p.attribute()
	align, typ, size := p.alignType()
	for p.err == nil {
		v := &variable{space: spaceGlobal, typ: typ, align: align, extern: extern, size: size, line: p.tok.line}
		if d == "const" {
			v.space = spaceConst
		}
		v.name = p.ident("a name")
		p.array(v, maxImage)
		old := in.vars[v.name]
		if old != nil && !old.extern && !extern && p.err == nil {
			p.fail("%s declared twice", v.name)
		}
		if p.accept("=") {
			p.initial(v)
		}
		if !extern && v.size == 0 && p.err == nil {
			p.fail("%s without a size", v.name)
		}
		if old == nil || old.extern {
			in.vars[v.name] = v
		}
		if !extern {
			p.out.globals = append(p.out.globals, v)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
}

// attribute skips ".attribute(.managed)": the memory is where the others are.
func (p *parser) attribute() {
	if p.tok.kind != tokDot || p.tok.text != "attribute" {
		return
	}
	p.advance()
	p.expect("(")
	for p.err == nil && !p.is(")") {
		if p.tok.kind == tokEOF {
			p.fail("attribute without end")
			return
		}
		p.advance()
	}
	p.expect(")")
}

// alignType reads ".align 8 .v2 .b8", alignment and vector being optional, and
// returns the type's size with the vector's length in it. The alignment is the size
// where the text gives none.
func (p *parser) alignType() (align uint64, typ dtype, size uint64) {
	if p.tok.kind == tokDot && p.tok.text == "align" {
		p.advance()
		align = p.integer("an alignment")
		if bits.OnesCount64(align) != 1 || align > 1024 {
			p.fail("alignment %d", align)
		}
	}
	n := uint64(1)
	if p.tok.kind == tokDot && (p.tok.text == "v2" || p.tok.text == "v4") {
		n = uint64(p.tok.text[1] - '0')
		p.advance()
	}
	typ, ok := typeNames[p.tok.text]
	if p.tok.kind != tokDot || !ok || typ.class == classPred || !typ.declarable() {
		p.fail("%s where a type belongs", p.tok)
		return 1, dtype{classBits, 8}, 1
	}
	p.advance()
	size = n * uint64(typ.size())
	return max(align, size), typ, size
}

// array reads "[64]" or "[]" behind a variable's name, if there is one.
func (p *parser) array(v *variable, limit uint64) {
	for p.err == nil && p.accept("[") {
		n := uint64(0)
		if !p.is("]") {
			n = p.integer("a length")
		}
		if v.size != 0 && n > limit/v.size {
			p.fail("%s is larger than %d bytes", v.name, limit)
		}
		v.size *= n
		v.dims = append(v.dims, n)
		p.expect("]")
	}
}
