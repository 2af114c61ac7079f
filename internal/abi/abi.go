// Package abi is the one list of CUDA driver symbols, driver.abi. From it come
// the table that cuda/driver fills, the functions that cuda/softcuda serves,
// the C libraries of package clib, and a page of documentation; the command
// internal/mkabi makes them. It also knows which version of PTX a driver takes.
package abi

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// Need says who needs a symbol.
type Need uint8

const (
	Required Need = iota // cuda/driver does not open without it
	Optional             // cuda/driver uses it where it is there
	Client               // only served, by softcuda to other programs
	Refused              // only served, and answers CUDA_ERROR_NOT_SUPPORTED
)

var needs = map[string]Need{"required": Required, "optional": Optional, "client": Client, "refused": Refused}

func (n Need) String() string {
	for s, v := range needs {
		if v == n {
			return s
		}
	}
	return fmt.Sprintf("need %d", uint8(n))
}

// Param is a parameter of a function.
type Param struct {
	Type string // C, without a space before a star: "void**"
	Name string
}

// Symbol is a function of the driver, under its exact name.
type Symbol struct {
	Name   string // with its version suffix, as the library exports it
	Need   Need
	Since  int // the CUDA version that brought it: 12040 is 12.4
	Params []Param
}

// Base returns the name without its version suffix, as cuGetProcAddress takes
// it.
func (s Symbol) Base() string {
	if i := strings.LastIndex(s.Name, "_v"); i > 0 {
		if _, err := strconv.Atoi(s.Name[i+2:]); err == nil {
			return s.Name[:i]
		}
	}
	return s.Name
}

// InDriver reports whether cuda/driver has a slot for the symbol.
func (s Symbol) InDriver() bool { return s.Need == Required || s.Need == Optional }

// Prototype returns the C parameter list.
func (s Symbol) Prototype() string {
	if len(s.Params) == 0 {
		return "void"
	}
	var p []string
	for _, x := range s.Params {
		p = append(p, x.C())
	}
	return strings.Join(p, ", ")
}

// C returns the declaration of the parameter.
func (p Param) C() string {
	if t := strings.TrimRight(p.Type, "*"); t != p.Type {
		return t + " " + p.Type[len(t):] + p.Name
	}
	return p.Type + " " + p.Name
}

//go:embed driver.abi
var list string

//go:embed types.h
var types string

// Symbols returns the list, in its order.
func Symbols() []Symbol {
	s, err := Parse(list)
	if err != nil {
		panic(err) // a test parses it
	}
	return s
}

// Parse reads a list of symbols: see driver.abi for its form.
func Parse(src string) ([]Symbol, error) {
	var out []Symbol
	seen := map[string]bool{}
	for i, line := range strings.Split(src, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		s, err := parseLine(line)
		if err == nil && seen[s.Name] {
			err = fmt.Errorf("%s is there twice", s.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("abi: line %d: %w", i+1, err)
		}
		seen[s.Name] = true
		out = append(out, s)
	}
	return out, nil
}

func parseLine(line string) (Symbol, error) {
	head, params, ok := strings.Cut(line, "(")
	f := strings.Fields(head)
	if !ok || len(f) != 3 || !strings.HasSuffix(params, ")") {
		return Symbol{}, fmt.Errorf("%q is not: need since name(parameters)", line)
	}
	need, ok := needs[f[0]]
	if !ok {
		return Symbol{}, fmt.Errorf("unknown need %q", f[0])
	}
	since, err := strconv.Atoi(f[1])
	if err != nil || since < 0 {
		return Symbol{}, fmt.Errorf("%q is no version", f[1])
	}
	s := Symbol{Name: f[2], Need: need, Since: since}
	params = strings.TrimSuffix(params, ")")
	if strings.TrimSpace(params) == "" {
		return s, nil
	}
	for _, p := range strings.Split(params, ",") {
		p = strings.TrimSpace(p)
		n := strings.LastIndexAny(p, " *") + 1
		t := strings.ReplaceAll(strings.TrimSpace(p[:n]), " *", "*")
		if t == "" || p[n:] == "" {
			return Symbol{}, fmt.Errorf("%s: parameter %q is not: type name", s.Name, p)
		}
		s.Params = append(s.Params, Param{Type: t, Name: p[n:]})
	}
	return s, nil
}
