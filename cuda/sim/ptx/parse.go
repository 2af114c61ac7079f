package ptx

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Limits that keep the cost of hostile text in proportion.
const (
	maxSource     = 8 << 20
	maxScopes     = 64
	maxParamBytes = 4352 // section "Kernel Function Parameters", with room for what the driver adds
	maxShared     = 227 << 10
	maxLocal      = 512 << 10
	maxRange      = 1<<32 - 1 // registers declared as one range; above, ptxas 12.9 speaks of an overflow
)

// parser is recursive descent with one token of lookahead. The first error
// stops it: it is kept in err, and from then on every token is the end.
type parser struct {
	lex lexer
	tok token
	err error
	out tree
	// shared and its kind declared outside of kernels
	global *scope
}

func parseTree(src []byte) (*tree, error) {
	if len(src) > maxSource {
		return nil, &SyntaxError{Msg: fmt.Sprintf("text of %d bytes; the limit is %d", len(src), maxSource)}
	}
	for len(src) > 0 && src[len(src)-1] == 0 { // NVRTC ends its text so
		src = src[:len(src)-1]
	}
	p := &parser{lex: lexer{src: src, line: 1}, global: newScope(nil)}
	p.advance()
	p.module()
	if p.err != nil {
		return nil, p.err
	}
	return &p.out, nil
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &SyntaxError{Line: p.tok.line, Msg: fmt.Sprintf(format, args...)}
	}
	p.tok = token{line: p.tok.line}
}

func (p *parser) advance() {
	if p.err != nil {
		return
	}
	p.tok = p.lex.next()
	if p.lex.err != nil {
		p.err = p.lex.err
		p.tok = token{line: p.tok.line}
	}
}

func (p *parser) is(punct string) bool { return p.tok.kind == tokPunct && p.tok.text == punct }

func (p *parser) accept(punct string) bool {
	if p.is(punct) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(punct string) {
	if !p.accept(punct) {
		p.fail("%s where %q belongs", p.tok, punct)
	}
}

func (p *parser) ident(what string) string {
	s := p.tok.text
	if p.tok.kind != tokIdent {
		p.fail("%s where %s belongs", p.tok, what)
		return ""
	}
	p.advance()
	return s
}

func (p *parser) integer(what string) uint64 {
	v := p.tok.num
	if p.tok.kind != tokInt {
		p.fail("%s where %s belongs", p.tok, what)
		return 0
	}
	p.advance()
	return v
}

func (p *parser) module() {
	for p.err == nil && p.tok.kind != tokEOF {
		if p.tok.kind != tokDot {
			p.fail("%s outside of a kernel", p.tok)
			return
		}
		d := p.tok.text
		if p.out.version == "" && d != "version" {
			p.fail(".%s before .version", d)
			return
		}
		switch d {
		case "version":
			p.version()
		case "target":
			p.target()
		case "address_size":
			p.advance()
			if n := p.integer("an address size"); p.err == nil && n != 64 {
				p.fail("address size %d; only 64 is supported", n)
			}
			p.out.addressSize = 64
		case "file":
			p.advance()
			for p.err == nil && (p.tok.kind == tokInt || p.tok.kind == tokStr || p.is(",")) {
				p.advance()
			}
		case "visible", "weak", "extern", "entry", "shared":
			p.declaration()
		default:
			p.fail(".%s is not supported", d)
		}
	}
	if p.err == nil && p.out.version == "" {
		p.fail("no .version")
	}
	if p.err == nil && p.out.addressSize == 0 {
		p.fail("no .address_size 64: without it PTX has 32-bit addresses")
	}
}

// version reads ".version 7.8": the lexer sees an integer and a modifier.
func (p *parser) version() {
	if p.out.version != "" {
		p.fail(".version given twice")
		return
	}
	p.advance()
	major := p.integer("a version")
	if p.tok.kind != tokDot || !digit(p.tok.text[0]) {
		p.fail("%s where a version belongs", p.tok)
		return
	}
	minor := p.tok.text
	p.advance()
	if major < 6 || major > 8 {
		p.fail("PTX ISA %d.%s; 6.0 to 8.x are supported", major, minor)
		return
	}
	p.out.version = fmt.Sprintf("%d.%s", major, minor)
}

// targets are the architectures that .target takes, targetOptions what may
// follow them. Source: PTX ISA 8.8, section ".target"; ptxas 12.9 refuses any
// other from sm_20 on.
var (
	targets = strings.Fields(`sm_20 sm_21 sm_30 sm_32 sm_35 sm_37 sm_50 sm_52 sm_53 sm_60 sm_61 sm_62
		sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_101 sm_101a sm_101f
		sm_103 sm_103a sm_103f sm_120 sm_120a sm_120f sm_121 sm_121a sm_121f`)
	targetOptions = strings.Fields("texmode_unified texmode_independent debug map_f64_to_f32")
)

// target reads ".target sm_70, debug". Of several architectures the first
// counts.
func (p *parser) target() {
	p.advance()
	for first := true; p.err == nil; first = false {
		name := p.tok
		s := p.ident("a target")
		switch known := slices.Contains(targets, s); {
		case p.err != nil:
		case !known && (first || !slices.Contains(targetOptions, s)):
			p.tok = name
			p.fail("target %s is not supported", s)
		case first:
			p.out.target = s
		}
		if !p.accept(",") {
			return
		}
	}
}

func (p *parser) declaration() {
	extern := false
	for p.tok.kind == tokDot && (p.tok.text == "visible" || p.tok.text == "weak" || p.tok.text == "extern") {
		extern = extern || p.tok.text == "extern"
		p.advance()
	}
	switch {
	case p.tok.kind == tokDot && p.tok.text == "entry" && !extern:
		p.entry()
	case p.tok.kind == tokDot && p.tok.text == "shared":
		p.advance()
		p.variable(spaceShared, extern, p.global)
	default:
		p.fail("%s is not supported here", p.tok)
	}
}

// variable reads ".align 8 .b8 name[64], name2;" after the state space.
// It returns what it declared in in.
func (p *parser) variable(sp space, extern bool, in *scope) (declared []*variable) {
	align, typ := p.alignType()
	for p.err == nil {
		v := &variable{space: sp, typ: typ, align: align, extern: extern, size: uint64(typ.size())}
		v.name = p.ident("a name")
		limit := uint64(maxShared)
		if sp == spaceLocal {
			limit = maxLocal
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
			p.fail("initial values are not supported")
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	return declared
}

// alignType reads ".align 8 .b8", the alignment being optional and the type's
// size without it.
func (p *parser) alignType() (uint64, dtype) {
	align := uint64(0)
	if p.tok.kind == tokDot && p.tok.text == "align" {
		p.advance()
		align = p.integer("an alignment")
		if bits.OnesCount64(align) != 1 || align > 1024 {
			p.fail("alignment %d", align)
		}
	}
	typ, ok := typeNames[p.tok.text]
	if p.tok.kind != tokDot || !ok || typ.class == classPred {
		p.fail("%s where a type belongs", p.tok)
		return 1, dtype{classBits, 8}
	}
	p.advance()
	return max(align, uint64(typ.size())), typ
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
		p.expect("]")
	}
}

func (p *parser) entry() {
	e := &entry{line: p.tok.line, top: newScope(p.global)}
	p.advance()
	e.name = p.ident("a kernel name")
	for _, other := range p.out.entries {
		if other.name == e.name && p.err == nil {
			p.fail("kernel %s defined twice", e.name)
		}
	}
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
	align, typ := p.alignType()
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
	v := &variable{space: spaceParam, typ: typ, align: align, size: uint64(typ.size()), param: len(e.params)}
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
		case "minnctapersm", "maxnctapersm", "maxnreg":
			p.integer("a number")
		case "pragma":
			p.pragma()
		default:
			p.fail(".%s is not supported here", d)
		}
	}
}

func (p *parser) pragma() {
	for p.err == nil && p.tok.kind == tokStr {
		p.advance()
		p.accept(",")
	}
	p.expect(";")
}
