// Package clib makes shared libraries that stand in for libcuda.so.1 and need
// no GPU and no simulator: one whose functions succeed and do nothing, to
// measure what is on this side of the driver, and one like the stub library
// that CUDA toolkits bring to link against. Both come from the list of package
// abi. Tests compile them with the system's C compiler.
package clib

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// Kind is which library.
type Kind uint8

const (
	NoOp Kind = iota // every call succeeds at once
	Stub             // every call returns CUDA_ERROR_STUB_LIBRARY
)

var (
	//go:embed src/noop_gen.c
	noop []byte
	//go:embed src/noop.h
	noopByHand []byte
	//go:embed src/timed.h
	timed []byte
	//go:embed src/stub_gen.c
	stub []byte
)

var definition = regexp.MustCompile(`(?m)^static CUresult noop_(cu\w+)\(`)

// ByHand returns the functions that the no-op library does not have by rote.
func ByHand() map[string]bool {
	names := map[string]bool{}
	for _, m := range definition.FindAllSubmatch(noopByHand, -1) {
		names[string(m[1])] = true
	}
	return names
}

// Compiler returns the C compiler: the environment's CC, or gcc.
func Compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

// Build compiles a library into dir and returns its path; its file is called
// libcuda.so.1. It has no name of its own (soname): the loader gives a library
// that is loaded already to whoever asks for its name, and so would take this
// one for the system's for the rest of the process. Each define is a macro for the compiler: KVG_WITHOUT_cuInit
// leaves that function out, KVG_VERSION=11040 sets the no-op driver's version,
// KVG_DEVICES its number of devices, KVG_INIT what its cuInit returns. With
// KVG_DELAY_US its events fire, host functions run and words are written that
// long after they were put into a stream.
func Build(dir string, k Kind, defines ...string) (string, error) {
	return compile(dir, k, nil, defines)
}

// BuildNamed is [Build] for a library to link against, which is called
// libcuda.so.1 by itself, too.
func BuildNamed(dir string, k Kind) (string, error) {
	return compile(dir, k, []string{"-Wl,-soname,libcuda.so.1"}, nil)
}

func compile(dir string, k Kind, flags, defines []string) (string, error) {
	src := map[string][]byte{"lib.c": noop, "noop.h": noopByHand, "timed.h": timed}
	if k == Stub {
		src = map[string][]byte{"lib.c": stub}
	}
	for name, text := range src {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", fmt.Errorf("clib: %w", err)
		}
	}
	out := filepath.Join(dir, "libcuda.so.1")
	args := append([]string{"-shared", "-fPIC", "-O2", "-w", "-o", out, filepath.Join(dir, "lib.c")}, flags...)
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	if msg, err := exec.Command(Compiler(), args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("clib: %s: %w\n%s", Compiler(), err, msg)
	}
	return out, nil
}
