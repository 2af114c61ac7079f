package abi

import (
	"bytes"
	"fmt"
	"go/format"
	"sort"
	"strings"
)

// Header is the first line of each generated file.
const Header = "Code generated from internal/abi/driver.abi by internal/abi/internal/mkabi. DO NOT EDIT."

// Generate returns the generated files, by path relative to the module's root.
// noop are the functions that the no-op library has by hand: see package clib.
func Generate(noop map[string]bool) (map[string][]byte, error) {
	all := Symbols()
	exports, err := softExports(all)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"cuda/driver/abi_gen.h":                   []byte(driverHeader(all)),
		"cuda/driver/SYMBOLS.md":                  []byte(table(all)),
		"cuda/softcuda/abi_gen.h":                 []byte(guarded("")),
		"cuda/softcuda/exports_gen.go":            exports,
		"cuda/softcuda/symbols_gen.c":             []byte(softSymbols(all)),
		"cuda/softcuda/canonical/canonical_gen.c": []byte(canonical(all)),
		"internal/abi/clib/src/noop_gen.c":        []byte(library(all, noop, "CUDA_SUCCESS", 0)),
		"internal/abi/clib/src/stub_gen.c":        []byte(library(all, nil, "CUDA_ERROR_STUB_LIBRARY", 34)),
	}, nil
}

func guarded(body string) string {
	return "// " + Header + "\n\n#ifndef KVG_ABI_GEN_H\n#define KVG_ABI_GEN_H\n\n" + types + body + "\n#endif\n"
}

func driverHeader(all []Symbol) string {
	var b strings.Builder
	b.WriteString("\n// The functions of a driver; one that it lacks is NULL. The order is that of\n// the list.\ntypedef struct {\n")
	n := 0
	for _, s := range all {
		if s.InDriver() {
			fmt.Fprintf(&b, "\tCUresult (*%s)(%s);\n", s.Name, s.Prototype())
			n++
		}
	}
	fmt.Fprintf(&b, "} kvg_table;\n\nenum { KVG_SLOTS = %d };\n", n)
	return guarded(b.String())
}

func softExports(all []Symbol) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\n//go:build cgo && linux\n\npackage softcuda\n\n/*\n#include \"abi_gen.h\"\n*/\nimport \"C\"\n\nimport \"unsafe\"\n", Header)
	for _, s := range all {
		if s.Need == Refused {
			continue
		}
		var params, args []string
		for _, p := range s.Params {
			t, err := goType(p.Type)
			if err != nil {
				return nil, fmt.Errorf("abi: %s: %w", s.Name, err)
			}
			name := "p_" + p.Name
			params = append(params, name+" "+t)
			args = append(args, name)
		}
		fmt.Fprintf(&b, "\n//export kvg_soft_%s\nfunc kvg_soft_%s(%s) C.CUresult {\n\tif r := forbidden(); r != 0 {\n\t\treturn r\n\t}\n\treturn %s(%s)\n}\n",
			s.Name, s.Name, strings.Join(params, ", "), handler(s.Name), strings.Join(args, ", "))
	}
	return format.Source(b.Bytes())
}

// handler returns the Go function that serves a symbol.
func handler(name string) string {
	name = strings.Replace(strings.TrimPrefix(name, "cu"), "_v", "V", 1)
	return "do" + strings.ToUpper(name[:1]) + name[1:]
}

var goTypes = map[string]string{
	"int": "C.int", "unsigned int": "C.uint", "unsigned char": "C.uchar", "unsigned short": "C.ushort",
	"size_t": "C.size_t", "uint64_t": "C.uint64_t", "float": "C.float", "char": "C.char",
}

func goType(c string) (string, error) {
	base := strings.TrimPrefix(strings.TrimRight(c, "*"), "const ")
	stars := strings.Count(c, "*")
	if base == "void" && stars > 0 {
		return strings.Repeat("*", stars-1) + "unsafe.Pointer", nil
	}
	t, ok := goTypes[base]
	if !ok {
		if !strings.HasPrefix(base, "CU") {
			return "", fmt.Errorf("no Go type for %q", c)
		}
		t = "C." + base
	}
	return strings.Repeat("*", stars) + t, nil
}

func softSymbols(all []Symbol) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n\n//go:build cgo && linux\n\n#include <string.h>\n#include \"abi_gen.h\"\n#include \"soft.h\"\n\n", Header)
	for _, s := range all {
		if s.Need == Refused {
			fmt.Fprintf(&b, "CUresult kvg_soft_%s(void) { return 801; }\n", s.Name)
		} else {
			fmt.Fprintf(&b, "extern CUresult kvg_soft_%s(%s);\n", s.Name, s.Prototype())
		}
	}
	b.WriteString("\nstatic const struct {\n\tconst char *name;\n\tvoid *fn;\n} kvg_soft_symbols[] = {\n")
	for _, s := range all {
		fmt.Fprintf(&b, "\t{\"%s\", (void *)kvg_soft_%s},\n", s.Name, s.Name)
	}
	b.WriteString("};\n\nvoid *kvg_soft_symbol(const char *name) {\n" +
		"\tfor (size_t i = 0; i < sizeof kvg_soft_symbols / sizeof *kvg_soft_symbols; i++)\n" +
		"\t\tif (!strcmp(kvg_soft_symbols[i].name, name)) return kvg_soft_symbols[i].fn;\n\treturn NULL;\n}\n")
	return b.String()
}

func canonical(all []Symbol) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n\n//go:build cgo && linux\n\n%s\n", Header, types)
	for _, s := range all {
		proto := s.Prototype()
		fmt.Fprintf(&b, "\nextern CUresult kvg_soft_%s(%s);\nCUresult %s(%s) { return kvg_soft_%s(%s); }\n",
			s.Name, proto, s.Name, proto, s.Name, names(s))
	}
	return b.String()
}

func names(s Symbol) string {
	var n []string
	for _, p := range s.Params {
		n = append(n, p.Name)
	}
	return strings.Join(n, ", ")
}

// library returns a C library whose functions all return one result, but for
// those that it has by hand. A function whose name is defined as a macro with
// KVG_WITHOUT_ before it is left out.
func library(all []Symbol, byHand map[string]bool, code string, result int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n// Each function returns %s, but for those in noop.h.\n\n%s", Header, code, types)
	if byHand != nil {
		b.WriteString("\n#include \"noop.h\"\n")
	}
	for _, s := range all {
		body := fmt.Sprintf("return %d;", result)
		switch {
		case s.Since == 0 && byHand == nil:
			continue
		case byHand[s.Name]:
			body = fmt.Sprintf("return noop_%s(%s);", s.Name, names(s))
		case s.Name == "kvgateSimulated":
			body = "*simulated = 1; return 0;"
		}
		fmt.Fprintf(&b, "\n#ifndef KVG_WITHOUT_%s\nCUresult %s(%s) { %s }\n#endif\n", s.Name, s.Name, s.Prototype(), body)
	}
	return b.String()
}

func table(all []Symbol) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- %s -->\n\n# Driver symbols\n\nWhat of libcuda.so.1 this package calls. Without a required symbol a device does not\n"+
		"open; without an optional one, what needs it fails with `cuda.ErrNotSupported` and the\nsymbol's name. "+
		"`Since` is the CUDA version that brought the name.\n\n| symbol | need | since |\n| --- | --- | --- |\n", Header)
	rows := append([]Symbol(nil), all...)
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Need < rows[j].Need })
	for _, s := range rows {
		if s.InDriver() && s.Since > 0 {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, s.Need, CUDA(s.Since))
		}
	}
	return b.String()
}
