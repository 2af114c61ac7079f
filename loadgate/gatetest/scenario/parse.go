package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kvgate/kvgate/memory/kv"
)

// Script is a parsed scenario. It is immutable: it can be run many times, by
// several goroutines.
type Script struct {
	statements []*statement
}

// Len returns the number of statements.
func (s *Script) Len() int { return len(s.statements) }

// statement is one line.
type statement struct {
	line int
	text string
	verb *verb
	args []value
	opts map[string]value
}

func (s *statement) has(opt string) bool { _, ok := s.opts[opt]; return ok }

// value is one argument or option; which fields mean something depends on its
// kind.
type value struct {
	word   string
	blocks []blockRef
	n      int
	f      float64
	d      time.Duration
	bytes  kv.Range
}

// blockRef names a list of blocks, or one of them.
type blockRef struct {
	name string
	at   int // -1: all
}

type kind uint8

const (
	word kind = iota
	count
	number
	duration
	byteRange
	flag
	blockList
	newBlocks
	newHolder
	newPlan
	newTransfer
	aHolder
	holderList
	aPlan
	aTransfer
	aName // of anything that can be waited for
)

// arg describes an argument or an option of a verb.
type arg struct {
	name  string
	kind  kind
	words []string // allowed, for a word
}

// verb describes a statement.
type verb struct {
	name string
	help string
	args []arg
	opts []arg
	run  func(*run, *statement) (string, error)
}

func (v *verb) usage() string {
	var b strings.Builder
	b.WriteString(v.name)
	for _, a := range v.args {
		b.WriteString(" " + a.String())
	}
	for _, a := range v.opts {
		if a.kind == flag {
			b.WriteString(" [" + a.name + "]")
		} else {
			b.WriteString(" [" + a.name + "=" + a.value() + "]")
		}
	}
	return b.String()
}

func (a arg) String() string { return "<" + a.name + ">" }

func (a arg) value() string {
	switch {
	case len(a.words) > 0:
		return strings.Join(a.words, "|")
	case a.kind == byteRange:
		return "0..512"
	case a.kind == duration:
		return "100us"
	}
	return "<" + a.name + ">"
}

// ParseError says where a script is wrong.
type ParseError struct {
	Line int
	Text string
	Why  string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("scenario: line %d: %q: %s", e.Line, e.Text, e.Why)
}

// Parse reads a script. The error is a *[ParseError].
func Parse(text string) (*Script, error) {
	s := &Script{}
	names := map[string]kind{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		st := &statement{line: i + 1, text: line, opts: map[string]value{}}
		if err := st.parse(names); err != nil {
			return nil, &ParseError{i + 1, line, err.Error()}
		}
		if st.verb.name == "gate" && len(s.statements) > 0 {
			return nil, &ParseError{i + 1, line, "gate is the first statement or none"}
		}
		s.statements = append(s.statements, st)
	}
	if len(s.statements) == 0 {
		return nil, &ParseError{1, "", "no statements"}
	}
	return s, nil
}

func (st *statement) parse(names map[string]kind) error {
	tokens, err := split(st.text)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(verbs, func(v *verb) bool { return v.name == tokens[0] })
	if i < 0 {
		return fmt.Errorf("no verb %q", tokens[0])
	}
	st.verb = verbs[i]
	tokens = tokens[1:]
	if len(tokens) < len(st.verb.args) {
		return fmt.Errorf("usage: %s", st.verb.usage())
	}
	for k, a := range st.verb.args {
		v, err := a.parse(tokens[k], names)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		st.args = append(st.args, v)
	}
	for _, t := range tokens[len(st.verb.args):] {
		key, text, valued := strings.Cut(t, "=")
		k := slices.IndexFunc(st.verb.opts, func(a arg) bool { return a.name == key })
		if k < 0 || valued == (st.verb.opts[k].kind == flag) {
			return fmt.Errorf("no option %q; usage: %s", t, st.verb.usage())
		}
		if st.has(key) {
			return fmt.Errorf("option %s given twice", key)
		}
		v, err := st.verb.opts[k].parse(text, names)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		st.opts[key] = v
	}
	return nil
}

// split cuts a line at spaces outside of parentheses.
func split(line string) ([]string, error) {
	var tokens []string
	depth, from := 0, 0
	for i, r := range line + " " {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ' ' && depth == 0:
			if i > from {
				tokens = append(tokens, line[from:i])
			}
			from = i + 1
		}
		if depth < 0 || depth > 1 {
			return nil, fmt.Errorf("parentheses do not match")
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("parentheses do not match")
	}
	return tokens, nil
}

func (a arg) parse(text string, names map[string]kind) (v value, err error) {
	v.word = text
	switch a.kind {
	case word:
		if len(a.words) > 0 && !slices.Contains(a.words, text) {
			return v, fmt.Errorf("%q is none of %s", text, strings.Join(a.words, ", "))
		}
	case count:
		if v.n, err = strconv.Atoi(text); err != nil || v.n < 0 || v.n > 1<<20 {
			return v, fmt.Errorf("%q is no count", text)
		}
	case number:
		if v.f, err = strconv.ParseFloat(text, 64); err != nil || !(v.f >= 0) {
			return v, fmt.Errorf("%q is no number", text)
		}
	case duration:
		if v.d, err = time.ParseDuration(text); err != nil || v.d < 0 || v.d > time.Minute {
			return v, fmt.Errorf("%q is no duration", text)
		}
	case byteRange:
		lo, hi, ok := strings.Cut(text, "..")
		from, err1 := strconv.ParseUint(lo, 10, 32)
		to, err2 := strconv.ParseUint(hi, 10, 32)
		if !ok || err1 != nil || err2 != nil || from >= to {
			return v, fmt.Errorf("%q is no range of bytes", text)
		}
		v.bytes = kv.Range{Off: from, Len: to - from}
	case blockList:
		v.blocks, err = parseBlocks(text, names)
	case newBlocks, newHolder, newPlan, newTransfer:
		if !validName(text) {
			return v, fmt.Errorf("%q is no name", text)
		}
		if _, ok := names[text]; ok {
			return v, fmt.Errorf("%s is in use", text)
		}
		names[text] = a.kind
	case aHolder:
		err = known(text, names, newHolder)
	case holderList:
		for _, name := range list(text) {
			if err == nil {
				err = known(name, names, newHolder)
			}
		}
	case aPlan:
		err = known(text, names, newPlan)
	case aTransfer:
		err = known(text, names, newTransfer)
	case aName:
		if text != "device" {
			err = known(text, names, newPlan, newTransfer)
		}
	}
	return v, err
}

func validName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && s != "none" && s != "device"
}

func known(name string, names map[string]kind, want ...kind) error {
	k, ok := names[name]
	if !ok {
		return fmt.Errorf("%q is not known here", name)
	}
	if !slices.Contains(want, k) {
		return fmt.Errorf("%q is something else", name)
	}
	return nil
}

// list returns the elements of (A B), A, or none.
func list(text string) []string {
	if text == "none" {
		return nil
	}
	return strings.Fields(strings.Trim(text, "()"))
}

func parseBlocks(text string, names map[string]kind) ([]blockRef, error) {
	refs := []blockRef{}
	for _, t := range list(text) {
		name, index, one := strings.Cut(t, ".")
		ref := blockRef{name, -1}
		if one {
			n, err := strconv.ParseUint(index, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("%q is no block", t)
			}
			ref.at = int(n)
		}
		if err := known(name, names, newBlocks); err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// help describes all statements, one a line.
func help() string {
	var b strings.Builder
	for _, v := range verbs {
		fmt.Fprintf(&b, "%s\n\t%s\n", v.usage(), v.help)
	}
	return b.String()
}
