package ptx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRefused: what is not known is an error that names it and its line.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"frobnicate.u32 %r1, %r2;":                   "refused:8: frobnicate.u32: unknown instruction",
		"call foo, ();":                              "refused:8: call: unknown function foo",
		"add.u128 %r1, %r2, %r3;":                    "add.u128: modifier .u128 is not supported here",
		"add.b32 %r1, %r2, %r3;":                     "add.b32: type .b32 is not supported here",
		"add.sat.u32 %r1, %r2, %r3;":                 "type .u32 is not supported here",
		"add.u32.u32 %r1, %r2, %r3;":                 "modifier .u32 is not supported here",
		"add %r1, %r2, %r3;":                         "add: lacks a type",
		"add.u32 %r1, %r2;":                          "2 operands instead of 3",
		"add.u32 %r1, %r2, %r3, %r4;":                "4 operands instead of 3",
		"add.u32 %d1, %r2, %r3;":                     "register %d1 is .b64, not .u32",
		"add.u64 %d1, %r2, %d3;":                     "register %r2 is .b32, not .u64",
		"add.u32 %r1, %f1, %r3;":                     "register %f1 is .f32, not .u32",
		"add.f32 %f1, %f2, %r3;":                     "",
		"add.f32 %f1, %f2, %s1;":                     "register %s1 is .s32, not .f32",
		"add.u32 %r1, %r99, %r3;":                    "unknown register %r99",
		"add.u32 %r1, %r07, %r3;":                    "unknown register %r07",
		"add.u32 %r1, %p1, %r3;":                     "register %p1 is .pred, not .u32",
		"add.u32 %r1, %r2, 4294967296;":              "constant 4294967296 does not fit .u32",
		"mov.u16 %h1, -40000;":                       "constant -40000 does not fit .u16",
		"add.u32 5, %r2, %r3;":                       "operand is not a register",
		"mov.u32 %r1, 0f3F800000;":                   "floating-point constant where .u32 belongs",
		"mov.f32 %f1, 1;":                            "integer constant where .f32 belongs",
		"mov.u32 %r1, %warpsize;":                    "unknown register %warpsize",
		"mov.u64 %d1, %tid.x;":                       "special register is .u32, not .u64",
		"mov.u16 %h1, box;":                          "address of box where .u16 belongs",
		"mov.b64 {%r1, %r2, %r3}, %d1;":              "vector of 3 in .b64",
		"mov.b64 {%r1, %h2}, %d1;":                   "register %h2 is .b16, not .b32",
		"mov.b64 %d1, {%r1, 1, 2, 3, 4};":            "vector of 5 in .b64",
		"@%r1 bra A; A:":                             "register %r1 is .b32, not .pred",
		"@%p9 mov.u32 %r1, 1;":                       "unknown register %p9",
		"bra NOWHERE;":                               "bra: unknown label NOWHERE",
		"bra 7;":                                     "operand is not a label",
		"A: A: ret;":                                 "label A defined twice",
		"brx.idx %r1, NONE;":                         "unknown list of targets",
		"setp.lt.b32 %p1, %r1, %r2;":                 "type .b32 is not supported here",
		"setp.lo.s32 %p1, %r1, %r2;":                 "type .s32 is not supported here",
		"setp.zz.s32 %p1, %r1, %r2;":                 "modifier .zz is not supported here",
		"setp.lt.s32 %r1, %r1, %r2;":                 "register %r1 is .b32, not .pred",
		"setp.lt.and.s32 %p1, %r1, %r2;":             "3 operands instead of 4",
		"selp.b32 %r1, %r2, %r3, %r4;":               "register %r4 is .b32, not .pred",
		"cvt.u32.f32 %r1, %f1;":                      "float to integer without integer rounding",
		"cvt.f32.u32 %f1, %r1;":                      "integer to float without a rounding",
		"cvt.f16.f32 %h1, %f1;":                      "narrowing without a rounding",
		"cvt.u32.u64 %h1, %d1;":                      "register %h1 is .b16, not .u32",
		"cvt.u64.u32 %d1, %h1;":                      "register %h1 is .b16, not .u32",
		"cvt.rn.u32.u64 %r1, %d1;":                   "modifier .rn is not supported here",
		"ld.global.u32 %r1, %d1;":                    "operand is not an address",
		"ld.global.u32 %r1, [%r2];":                  "a global address is 64 bits",
		"ld.global.u64 %r1, [%d2];":                  "register %r1 is .b32, not .u64",
		"ld.shared.v4.u64 {%d1,%d2,%d3,%d4}, [%d5];": "vector of 32 bytes; the most is 16",
		"ld.global.v2.u32 {%r1, %r2, %r3}, [%d5];":   "vector of 3 elements instead of 2",
		"ld.global.v2.u32 %r1, [%d5];":               "operand is no vector of 2 elements",
		"ld.global.u32 {%r1, %r2}, [%d5];":           "vector of 2 elements instead of 1",
		"st.const.u32 [%d5], %r1;":                   "modifier .const is not supported here",
		"ld.shared.u32 %r1, [p];":                    "p lies in .param",
		"ld.global.u32 %r1, [box];":                  "box lies in .shared",
		"ld.global.u32 %r1, [%d1+99999999999];":      "offset 99999999999",
		"ld.u32 %r1, [0];":                           "absolute generic address",
		"ld.global.u32 %r1, [%d1-4];":                `"-" where "]" belongs`,
		"st.param.u32 [p], %r1;":                     "store to a parameter",
		"st.global.u32 [%d1], %h1;":                  "register %h1 is .b16, not .u32",
		"atom.global.foo.u32 %r1, [%d1], 1;":         "modifier .foo is not supported here",
		"atom.local.add.u32 %r1, [%d1], 1;":          "modifier .local is not supported here",
		"red.global.exch.b32 [%d1], 1;":              "modifier .exch is not supported here",
		"shfl.up.b32 %r1, %r2, 1, 0;":                "modifier .up is not supported here",
		"vote.ballot.b32 %r1, %p1;":                  "modifier .ballot is not supported here",
		"bar.arrive 0;":                              "1 operands instead of 2",
		"lop3.b32 %r1, %r2, %r3, %r4, 256;":          "the table is no number from 0 to 255",
		"mov.u32 %r1, 0x;":                           `malformed constant "0x"`,
		"mov.u32 %r1, 99999999999999999999;":         "malformed constant",
		"mov.f32 %f1, 0f3F80;":                       `malformed constant "0f3F80"`,
		"mov.u32 %r1, ?;":                            `"?" where an operand belongs`,
		"mov.u32 %r1 %r2;":                           `"%r2" where ";" belongs`,
		".reg .bf16 %b;":                             "where a register type belongs",
		".reg .b32 %r<4>;":                           "registers %r declared twice",
		".shared .b8 big[300000];":                   "big is larger than 232448 bytes",
		".global .b8 g[4] = {1,2,3,4,5};":            "too many values for g",
		".reg .b32 %q<99999999999999>;":              "registers %q<99999999999999>: the most is 4294967295",
		".reg .b32 %q<4294967295>;":                  "",
		"ld.global.v2.b32 {%r1, %r1}, [%d1];":        "", // as ptxas 12.9 takes it
		"ld.global.v2.b32 {_, %r1}, [%d1];":          "",
		"ld.global.v2.b32 {_, _}, [%d1];":            "a vector without a register",
		".shared .align 3 .b8 x[4];":                 "alignment 3",
		".shared .b8 x[];":                           "x without a size",
		"/* never":                                   "comment without end",
		`.pragma "never`:                             "string without end",
		"{ mov.u32 %r1, 1;":                          "has no end",
		"neg.u32 %r1, %r2;":                          "type .u32 is not supported here",
		"mul.u32 %r1, %r2, %r3;":                     "modifier .u32 is not supported here",
		"mul.wide.u64 %d1, %d2, %d3;":                "type .u64 is not supported here",
		"fma.f32 %f1, %f2, %f3, %f1;":                "lacks a rounding",
	} {
		src := ".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p) {\n" +
			".reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<8>; .reg .s32 %s<2>;\n" +
			".shared .b32 box[4];\n.pragma \"nounroll\";\n" + text + "\nret;\n}\n"
		m, err := Parse("refused", []byte(src))
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.Nil(t, m, text)
		require.ErrorContains(t, err, want, text)
		var s *SyntaxError
		require.ErrorAs(t, err, &s, text)
		require.GreaterOrEqual(t, s.Line, 8, text)
	}
}

func TestRefusedModules(t *testing.T) {
	const head = ".version 7.8\n.target sm_70\n.address_size 64\n"
	for text, want := range map[string]string{
		"":                               "no .version",
		".target sm_70":                  ".target before .version",
		".version 7":                     "where a version belongs",
		".version 7.8\n.target sm_70":    "no .address_size 64",
		".version 7.8\n.address_size 32": "address size 32; only 64 is supported",
		".version 7.8\n.target sm_999999999999999999999\n": "modules:2: target sm_999999999999999999999 is not supported",
		".version 7.8\n.target sm_70,\nsm_7\n":             "modules:3: target sm_7 is not supported",
		".version 7.8\n.target debug\n":                    "target debug is not supported",
		".version 7.8\n.target sm_70x\n":                   "target sm_70x is not supported",
		".version 7.8\n.target compute_70\n":               "target compute_70 is not supported",
		head + ".global .u32 x[];":                         "x without a size",
		head + ".global .u64 x = y;":                       "address of unknown y",
		head + ".const .u32 x = 1.5;":                      "floating-point value of .u32",
		head + ".global .u32 x; .global .u32 x;":           "x declared twice",
		head + ".global .u8 x = 256;":                      "256 does not fit .u8",
		head + ".global .texref x;":                        "where a type belongs",
		head + ".tex .u32 x;":                              ".tex is not supported",
		head + ".func f() { ret; } .func f() { ret; }":     "function f defined twice",
		head + ".extern .func malloc(.param .b64 a); .entry k() { .reg .b64 %d; call malloc, (%d); }": "function malloc is not defined in this module",
		head + ".extern .global .u32 x; .entry k() { .reg .b64 %d; mov.u64 %d, x; }":                  "x is not defined in this module",
		head + ".section .debug { .b8 1":                             "section without end",
		head + ".loc 1 2 3, foo":                                     `"foo" in .loc`,
		head + "add.u32 a, b, c;":                                    `"add" outside of a kernel`,
		head + ".entry k();":                                         "kernel k without a body",
		head + ".entry k() { ret; } .entry k() { ret; }":             "kernel k defined twice",
		head + ".entry k(.param .u32 a, .param .u32 a) { ret; }":     "parameter a declared twice",
		head + ".entry k(.param .b8 a[9999]) { ret; }":               "a is larger than 4352 bytes",
		head + ".entry k(.param .b8 a[4000], .param .b8 b[4000]) {}": "kernel k: parameters of more than 4352 bytes",
		head + ".entry k() .maxntid 2000 { ret; }":                   ".maxntid of 2000",
		head + ".entry k() .foo { ret; }":                            ".foo is not supported here",
		head + ".entry k() { .shared .b8 a[200000]; .shared .b8 b[200000]; .reg .b64 %d; mov.u64 %d, a; mov.u64 %d, b; }": "more than 232448 bytes of shared memory",
		head + ".entry k() " + strings.Repeat("{", 100):                                                                   "more than 64 scopes in each other",
		head + "\x00\xff": "outside of a kernel",
	} {
		m, err := Parse("modules", []byte(text))
		require.Nil(t, m, text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestTargets(t *testing.T) {
	for _, name := range []string{"sm_20", "sm_52", "sm_70", "sm_75", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100f", "sm_103a", "sm_120",
		"sm_121a", "sm_70, texmode_independent", "sm_80, sm_70"} {
		m, err := Parse("targets", []byte(".version 8.8\n.target "+name+"\n.address_size 64\n"))
		require.NoError(t, err, name)
		first, _, _ := strings.Cut(name, ",")
		require.Equal(t, first, m.Target)
	}
}

func TestModule(t *testing.T) {
	m, err := Parse("module", []byte(".version 7.8\n.target sm_70, debug\n.address_size 64\n.file 1 \"a.cu\"\n"+
		".visible .entry a(.param .u64 .ptr .global .align 16 p, .param .align 4 .b8 q[10], .param .u64 r) .minnctapersm 2 { .loc 1 2 3 ret; }\n"+
		".weak .entry b { }\x00\x00"))
	require.NoError(t, err)
	require.Equal(t, "7.8", m.Version)
	require.Equal(t, "sm_70", m.Target)
	require.Equal(t, 64, m.AddressSize)
	require.Len(t, m.Kernels(), 2)
	a, ok := m.Kernel("a")
	require.True(t, ok)
	require.Equal(t, "a", a.Name())
	require.Equal(t, []Param{{"p", ".u64", 8, 8, 0}, {"q", ".b8", 10, 4, 8}, {"r", ".u64", 8, 8, 24}}, a.Params())
	require.Equal(t, 32, a.ParamBytes())
	_, ok = m.Kernel("c")
	require.False(t, ok)
}

// FuzzParse: any text is a module or an error, never both, and a kernel that
// loads runs to its end or to an error. Never a panic.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(f, err)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(src)
	}
	cases, err := filepath.Glob("testdata/cases/*-noline--sm_90.ptx")
	require.NoError(f, err)
	others, err := filepath.Glob("testdata/cases/*--*-1[234]*--sm_[78]0.ptx")
	require.NoError(f, err)
	for _, file := range append(cases, others...) {
		src, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(src)
	}
	for i, c := range opCases {
		f.Add([]byte(opModule(c.text, c.widths, i%2 == 0)))
	}
	f.Add([]byte(flowHead + "A: bar.sync 0; @%p1 bra A; bra B; B: @%p2 exit; bra A; }"))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := Parse("fuzz", src)
		if (m == nil) == (err == nil) {
			t.Fatalf("module %v, error %v", m, err)
		}
		if err != nil {
			_ = err.Error()
			return
		}
		for _, k := range m.Kernels() {
			runFuzzed(t, k)
		}
	})
}

// runFuzzed starts a kernel with parameters that are no sense or a good address.
func runFuzzed(t *testing.T, k *Kernel) {
	mem := testMemory{{Base: base, Data: make([]byte, 1<<16)}}
	p := make([]byte, k.ParamBytes())
	copy(p, params(uint64(base), uint64(base+4096), uint32(9)))
	r, err := k.Start(mem, Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{40, 1, 1}, Params: p, StepLimit: 2000, Image: base + 8192})
	if (r == nil) == (err == nil) {
		t.Fatalf("run %v, error %v", r, err)
	}
	if err != nil {
		return
	}
	if _, err := r.Step(2); err != nil {
		if s := fmt.Sprint(err); strings.Contains(s, ErrBadInstruction.Error()) {
			t.Fatal(s)
		}
	}
}
