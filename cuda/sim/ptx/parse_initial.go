package ptx

import (
	"encoding/binary"
	"math"
)

// initial reads a variable's initial value (section "Initializers"): a scalar, or
// nested lists, of which what is missing is zero. An array without a length gets it
// from the list.
func (p *parser) initial(v *variable) {
	element := uint64(v.typ.size())
	if len(v.dims) > 0 && v.dims[0] == 0 {
		rest := element
		for _, n := range v.dims[1:] {
			rest *= n
		}
		if rest == 0 {
			p.fail("%s without a size", v.name)
			return
		}
		v.dims[0] = uint64(maxImage) / rest
		v.size = 0
		v.dims[0] = p.list(v, 0, 0, element)
		v.size = v.dims[0] * rest
		v.grow(v.size)
		return
	}
	dims := v.dims
	if n := v.size / element; len(dims) == 0 && n > 1 { // a vector
		v.dims = []uint64{n}
	}
	p.values(v, 0, 0, element)
	v.dims = dims
	v.grow(v.size)
}

// grow makes the content at least n bytes long.
func (v *variable) grow(n uint64) {
	if uint64(len(v.data)) < n {
		v.data = append(v.data, make([]byte, n-uint64(len(v.data)))...)
	}
}

// values reads what is at one level of a variable's dimensions.
func (p *parser) values(v *variable, level int, off, element uint64) {
	if level == len(v.dims) {
		braces := 0
		for p.err == nil && p.accept("{") {
			if braces++; braces > maxScopes {
				p.fail("more than %d braces in each other", maxScopes)
			}
		}
		p.value(v, off, element)
		for ; braces > 0; braces-- {
			p.expect("}")
		}
		return
	}
	p.list(v, level, off, element)
}

// list reads "{ ... }" of one dimension and returns how many elements it has.
func (p *parser) list(v *variable, level int, off, element uint64) (n uint64) {
	span := element
	for _, d := range v.dims[level+1:] {
		span *= d
	}
	p.expect("{")
	for p.err == nil && !p.is("}") {
		if n == v.dims[level] {
			p.fail("too many values for %s", v.name)
			return n
		}
		p.values(v, level+1, off+n*span, element)
		n++
		if !p.accept(",") {
			break
		}
	}
	p.expect("}")
	return n
}

// value reads a number or an address.
func (p *parser) value(v *variable, off, element uint64) {
	v.grow(off + element)
	at := v.data[off : off+element]
	put := func(x uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], x)
		copy(at, b[:])
	}
	minus := p.accept("-")
	switch {
	case p.tok.kind == tokIdent && !minus:
		p.address(v, off, int(element), 0)
	case p.tok.kind == tokInt:
		x := p.integer("a number")
		if !minus && p.is("(") { // 0xff00(name): some bits of an address
			shift := uint(0)
			for x != 0 && x&0xff == 0 {
				x, shift = x>>8, shift+8
			}
			if x != mask(uint8(8*element)) {
				p.fail("mask of an address that is not as wide as the element")
				return
			}
			p.advance()
			p.address(v, off, int(element), shift)
			p.expect(")")
			return
		}
		if minus {
			x = -x
		}
		if v.typ.class == classFloat {
			p.fail("integer as the value of %s", v.typ)
			return
		}
		if s := int64(x); x > mask(v.typ.bits) && (!minus || s < -1<<(v.typ.bits-1)) {
			p.fail("%d does not fit %s", s, v.typ)
			return
		}
		put(x)
	case p.tok.kind == tokF32 || p.tok.kind == tokF64 || p.tok.kind == tokReal:
		x := p.tok.num
		wide := p.tok.kind != tokF32
		switch {
		case v.typ.bits == 32 && p.tok.kind == tokReal:
			x, wide = uint64(math.Float32bits(float32(math.Float64frombits(x)))), false
		case p.tok.kind == tokReal && v.typ.class == classF16:
			x, wide = encode(math.Float64frombits(x), fmtF16, roundNearest, false), false
		}
		if integer := v.typ.class == classUint || v.typ.class == classInt; integer || wide != (v.typ.bits == 64) || v.typ.bits < 16 {
			p.fail("floating-point value of %s", v.typ)
			return
		}
		if minus {
			x ^= 1 << (v.typ.bits - 1)
		}
		p.advance()
		put(x)
	default:
		p.fail("%s where a value belongs", p.tok)
	}
}

// address reads "name", "name+8" or "generic(name)+8". In the generic space .global
// and .const variables have the same address as in their own here.
func (p *parser) address(v *variable, off uint64, size int, shift uint) {
	r := reloc{off: off, size: size, shift: shift, line: p.tok.line}
	r.name = p.ident("a name")
	if r.name == "generic" && p.accept("(") {
		r.name = p.ident("a name")
		p.expect(")")
	}
	if p.accept("+") {
		r.addend = p.offset(false)
	} else if p.accept("-") {
		r.addend = p.offset(true)
	}
	if shift == 0 && size != 8 && size != 1 && size != 4 {
		p.fail("address in %s", v.typ)
	}
	v.relocs = append(v.relocs, r)
}
