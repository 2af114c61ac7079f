package ptx

import (
	"fmt"
	"math"
	"strconv"
)

type tokenKind uint8

const (
	tokEOF   tokenKind = iota
	tokIdent           // name, %register, $label, _
	tokDot             // .directive or .modifier, text without the dot
	tokInt             // integer, value in num
	tokF32             // 0f..., bits in num
	tokF64             // 0d..., bits in num
	tokReal            // 1.5e3, bits of a 64-bit float in num
	tokStr             // "...", text without the quotes
	tokPunct           // one character, in text
)

type token struct {
	kind tokenKind
	text string
	num  uint64
	line int
	glue bool // nothing lies between this token and the one before
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "end of text"
	case tokDot:
		return "." + t.text
	case tokStr:
		return strconv.Quote(t.text)
	}
	return strconv.Quote(t.text)
}

// lexer cuts PTX into tokens (section "Syntax"). It never fails on its own: a
// character that belongs nowhere comes out as punctuation, which no rule of the
// parser takes; a malformed number is an error kept in err.
type lexer struct {
	src  []byte
	pos  int
	line int
	err  error
}

func (l *lexer) fail(format string, args ...any) {
	if l.err == nil {
		l.err = &SyntaxError{Line: l.line, Msg: fmt.Sprintf(format, args...)}
	}
}

func identStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '%'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func identPart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || digit(c)
}

// space skips blanks and comments and reports whether there were any.
func (l *lexer) space() bool {
	start := l.pos
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == '\n':
			l.line++
			l.pos++
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			l.pos++
		case c == '/' && l.pos+1 < len(l.src) && l.src[l.pos+1] == '/':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.pos++
			}
		case c == '/' && l.pos+1 < len(l.src) && l.src[l.pos+1] == '*':
			l.pos += 2
			for {
				if l.pos+1 >= len(l.src) {
					l.pos = len(l.src)
					l.fail("comment without end")
					break
				}
				if l.src[l.pos] == '*' && l.src[l.pos+1] == '/' {
					l.pos += 2
					break
				}
				if l.src[l.pos] == '\n' {
					l.line++
				}
				l.pos++
			}
		default:
			return l.pos != start
		}
	}
	return l.pos != start
}

func (l *lexer) next() token {
	glue := !l.space()
	t := token{line: l.line, glue: glue}
	if l.pos >= len(l.src) {
		return t
	}
	start := l.pos
	c := l.src[l.pos]
	switch {
	case identStart(c):
		l.pos++
		l.run(identPart)
		t.kind, t.text = tokIdent, string(l.src[start:l.pos])
	case c == '.' && l.pos+1 < len(l.src) && identPart(l.src[l.pos+1]):
		l.pos++
		l.run(identPart)
		for l.pos+2 < len(l.src) && l.src[l.pos] == ':' && l.src[l.pos+1] == ':' { // .L1::no_allocate
			l.pos += 2
			l.run(identPart)
		}
		t.kind, t.text = tokDot, string(l.src[start+1:l.pos])
	case digit(c):
		l.run(identPart)
		if l.decimal(start) {
			t.text = string(l.src[start:l.pos])
			t.kind, t.num = tokReal, l.real(t.text)
			break
		}
		t.text = string(l.src[start:l.pos])
		t.kind, t.num = l.number(t.text)
	case c == '"':
		l.pos++
		l.run(func(c byte) bool { return c != '"' && c != '\n' })
		t.kind, t.text = tokStr, string(l.src[start+1:l.pos])
		if l.pos < len(l.src) && l.src[l.pos] == '"' {
			l.pos++
		} else {
			l.fail("string without end")
		}
	default:
		l.pos++
		t.kind, t.text = tokPunct, string(l.src[start:l.pos])
	}
	return t
}

func (l *lexer) run(in func(byte) bool) {
	for l.pos < len(l.src) && in(l.src[l.pos]) {
		l.pos++
	}
}

// decimal goes on over the fraction and exponent of a number whose digits begin at
// start, and reports whether there are any.
func (l *lexer) decimal(start int) bool {
	if l.pos+1 < len(l.src) && l.src[l.pos] == '.' && digit(l.src[l.pos+1]) {
		l.pos++
		l.run(identPart)
	} else if i := start; true {
		for i < l.pos && digit(l.src[i]) {
			i++
		}
		if i == l.pos || l.src[i] != 'e' && l.src[i] != 'E' {
			return false
		}
	}
	if e := l.src[l.pos-1]; (e == 'e' || e == 'E') && l.pos+1 < len(l.src) && (l.src[l.pos] == '-' || l.src[l.pos] == '+') && digit(l.src[l.pos+1]) {
		l.pos++
		l.run(identPart)
	}
	return true
}

func (l *lexer) real(s string) uint64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		l.fail("malformed constant %q", s)
	}
	return math.Float64bits(v)
}

// number reads an integer or floating-point constant (section "Constants").
func (l *lexer) number(s string) (tokenKind, uint64) {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'f' || s[1] == 'F' || s[1] == 'd' || s[1] == 'D') {
		kind, digits := tokF32, 8
		if s[1] == 'd' || s[1] == 'D' {
			kind, digits = tokF64, 16
		}
		v, err := strconv.ParseUint(s[2:], 16, 64)
		if err != nil || len(s)-2 != digits {
			l.fail("malformed constant %q", s)
		}
		return kind, v
	}
	d := s
	if n := len(d); n > 1 && (d[n-1] == 'U' || d[n-1] == 'u') {
		d = d[:n-1]
	}
	base := 10
	switch {
	case len(d) > 2 && d[0] == '0' && (d[1] == 'x' || d[1] == 'X'):
		base, d = 16, d[2:]
	case len(d) > 2 && d[0] == '0' && (d[1] == 'b' || d[1] == 'B'):
		base, d = 2, d[2:]
	case len(d) > 1 && d[0] == '0':
		base, d = 8, d[1:]
	}
	v, err := strconv.ParseUint(d, base, 64)
	if err != nil {
		l.fail("malformed constant %q", s)
	}
	return tokInt, v
}
