// Package nvrtc compiles CUDA C++ to PTX at run time, where NVIDIA's compiler
// library NVRTC is installed. It opens the library when asked to, so a program that
// imports the package runs without it, and built without cgo: [Open] then says why
// there is no compiler.
package nvrtc

import (
	"errors"
	"fmt"
)

// ErrNoCompiler: NVRTC is not there, or can not be used. The wrapping error says why.
var ErrNoCompiler = errors.New("no usable NVRTC")

// Code is a result of NVRTC (nvrtcResult). Each code is an error of its own, so
// errors.Is(err, nvrtc.ErrCompilation) holds for an error of [Library.Compile].
type Code int32

// The results of which a caller may want to know. Numbers and names are those of
// NVRTC's documentation, section "Error Handling".
const (
	Success            Code = 0
	ErrOutOfMemory     Code = 1
	ErrProgramCreation Code = 2
	ErrInvalidInput    Code = 3
	ErrInvalidProgram  Code = 4
	ErrInvalidOption   Code = 5 // an option that this release does not know
	ErrCompilation     Code = 6 // the source is at fault: see [Error.Log]
	ErrBuiltin         Code = 7 // the library lacks its part libnvrtc-builtins
	ErrInternal        Code = 11
)

var codeNames = map[Code]string{
	Success: "NVRTC_SUCCESS", ErrOutOfMemory: "NVRTC_ERROR_OUT_OF_MEMORY",
	ErrProgramCreation: "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", ErrInvalidInput: "NVRTC_ERROR_INVALID_INPUT",
	ErrInvalidProgram: "NVRTC_ERROR_INVALID_PROGRAM", ErrInvalidOption: "NVRTC_ERROR_INVALID_OPTION",
	ErrCompilation: "NVRTC_ERROR_COMPILATION", ErrBuiltin: "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
	ErrInternal: "NVRTC_ERROR_INTERNAL_ERROR",
}

// String returns NVRTC's name of the code, or its number where it has no name here.
func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("NVRTC_ERROR(%d)", int32(c))
}

// Error makes each code a sentinel for errors.Is.
func (c Code) Error() string { return c.String() }

// Error is a failed call of NVRTC.
type Error struct {
	Code Code
	Op   string // the function of NVRTC
	Name string // of the program; "" where there is none
	Log  string // what the compiler wrote, as it wrote it; may be empty
}

func (e *Error) Error() string {
	s := "nvrtc: "
	if e.Name != "" {
		s += e.Name + ": "
	}
	s += e.Op + ": " + e.Code.String()
	if e.Log != "" {
		s += "\n" + e.Log
	}
	return s
}

// Unwrap returns the code, so that errors.Is matches it.
func (e *Error) Unwrap() error { return e.Code }

// Program is what is compiled.
type Program struct {
	Name    string // for messages, such as "zero_blocks.cu"
	Text    string
	Headers map[string]string // by the name that the text includes them by
	Options []string          // as NVRTC takes them, such as "--gpu-architecture=compute_90"
}

// Output is what a compilation gives.
type Output struct {
	PTX []byte // without the closing zero byte
	Log string // warnings; "" where there are none
}

// names are where NVRTC is looked for when [Open] is given no path: on the loader's
// path, newest first, and where CUDA's own installer puts it.
var names = []string{
	"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so",
	"/usr/local/cuda/lib64/libnvrtc.so",
}
