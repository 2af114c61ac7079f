package ptx

import (
	"fmt"
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
	maxImage      = 64 << 20 // of a module's variables; const memory alone has 64 KiB
	maxFiles      = 4096
	maxFunctions  = 4096
	maxFormals    = 1024
	maxRange      = 1<<32 - 1 // registers declared as one range; above, ptxas 12.9 speaks of an overflow
)

// parser is recursive descent with one token of lookahead. The first error
// stops it: it is kept in err, and from then on every token is the end.
type parser struct {
	lex lexer
	tok token
	err error
	out tree
	src place // of the statements that follow

	known map[string]bool // kernels
}

func parseTree(src []byte) (*tree, error) {
	if len(src) > maxSource {
		return nil, &SyntaxError{Msg: fmt.Sprintf("text of %d bytes; the limit is %d", len(src), maxSource)}
	}
	for len(src) > 0 && src[len(src)-1] == 0 { // NVRTC ends its text so
		src = src[:len(src)-1]
	}
	p := &parser{lex: lexer{src: src, line: 1}, known: map[string]bool{}}
	p.out = tree{files: map[uint32]string{}, function: map[string]*entry{}, global: newScope(nil)}
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
			p.file()
		case "section":
			p.section()
		case "loc":
			p.loc()
		case "pragma":
			p.advance()
			p.pragma()
		case "visible", "weak", "extern", "common", "entry", "func", "shared", "global", "const":
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

// version reads ".version 7.8". Any is taken: what is new in it is refused where it
// is used.
func (p *parser) version() {
	if p.out.version != "" {
		p.fail(".version given twice")
		return
	}
	p.advance()
	major, minor, ok := strings.Cut(p.tok.text, ".")
	for _, c := range []byte(major + minor) {
		ok = ok && digit(c)
	}
	if p.tok.kind != tokReal || !ok || minor == "" {
		p.fail("%s where a version belongs", p.tok)
		return
	}
	p.out.version = p.tok.text
	p.advance()
}

// file reads ".file 1 "a.cu"" and the time and size that may follow.
func (p *parser) file() {
	p.advance()
	n := p.integer("a number")
	if p.err == nil && p.tok.kind != tokStr {
		p.fail("%s where a file's name belongs", p.tok)
	}
	if len(p.out.files) < maxFiles {
		p.out.files[uint32(n)] = p.tok.text
	}
	p.advance()
	for p.accept(",") {
		p.integer("a number")
	}
}

// section skips ".section .debug_info { ... }", which debuggers read.
func (p *parser) section() {
	p.advance()
	if p.tok.kind != tokDot && p.tok.kind != tokIdent {
		p.fail("%s where a section's name belongs", p.tok)
	}
	p.advance()
	p.expect("{")
	for p.err == nil && !p.is("}") {
		if p.tok.kind == tokEOF {
			p.fail("section without end")
			return
		}
		p.advance()
	}
	p.expect("}")
}

// loc reads ".loc 1 72 3, function_name $L, inlined_at 1 75 3".
func (p *parser) loc() {
	p.advance()
	file, line := p.integer("a file's number"), p.integer("a line")
	p.src = place{uint32(file), uint32(line)}
	p.integer("a column")
	for p.accept(",") {
		switch what := p.ident("function_name or inlined_at"); what {
		case "function_name":
			p.ident("a label")
			if p.accept("+") {
				p.integer("an offset")
			}
		case "inlined_at":
			for range 3 {
				p.integer("a place")
			}
		default:
			p.fail("%q in .loc", what)
		}
	}
}

// targetOptions are what may follow the architecture (section ".target").
var targetOptions = strings.Fields("texmode_unified texmode_independent debug map_f64_to_f32")

// target reads ".target sm_70, debug". Of several architectures the first
// counts; any number is taken, as any version is.
func (p *parser) target() {
	p.advance()
	for first := true; p.err == nil; first = false {
		name := p.tok
		s := p.ident("a target")
		digits, isArch := strings.CutPrefix(s, "sm_")
		number := strings.TrimRight(digits, "af")
		known := isArch && len(digits)-len(number) < 2 && len(number) > 1 && len(number) < 5
		for _, c := range []byte(number) {
			known = known && digit(c)
		}
		switch {
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

// declaration reads a kernel, a function, or a variable outside of both.
func (p *parser) declaration() {
	extern := false
	for p.tok.kind == tokDot && (p.tok.text == "visible" || p.tok.text == "weak" || p.tok.text == "extern" || p.tok.text == "common") {
		extern = extern || p.tok.text == "extern"
		p.advance()
	}
	if p.tok.kind != tokDot {
		p.fail("%s is not supported here", p.tok)
		return
	}
	switch d := p.tok.text; {
	case d == "entry" && !extern:
		p.entry()
	case d == "func":
		p.functionEntry()
	case d == "shared":
		p.advance()
		p.variable(spaceShared, extern, p.out.global)
	case d == "global" || d == "const":
		p.advance()
		p.moduleVariable(d, extern, p.out.global)
	default:
		p.fail("%s is not supported here", p.tok)
	}
}
