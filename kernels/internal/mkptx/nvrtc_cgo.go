//go:build cgo && unix

package main

/*
#include <stddef.h>
#include <stdlib.h>

// The part of NVRTC's C API that mkptx uses (docs.nvidia.com/cuda/nvrtc). A
// status of 0 is success; the functions are called through their addresses.
typedef void *program;

static int kvg_version(void *f, int *major, int *minor) {
	return ((int (*)(int *, int *))f)(major, minor);
}
static const char *kvg_error(void *f, int status) {
	return ((const char *(*)(int))f)(status);
}
static int kvg_create(void *f, program *p, const char *src, const char *name, int n,
		const char **headers, const char **names) {
	return ((int (*)(program *, const char *, const char *, int, const char *const *, const char *const *))f)
		(p, src, name, n, headers, names);
}
static int kvg_compile(void *f, program p, int n, const char **options) {
	return ((int (*)(program, int, const char *const *))f)(p, n, options);
}
static int kvg_size(void *f, program p, size_t *n) {
	return ((int (*)(program, size_t *))f)(p, n);
}
static int kvg_text(void *f, program p, char *out) {
	return ((int (*)(program, char *))f)(p, out);
}
static int kvg_destroy(void *f, program *p) {
	return ((int (*)(program *))f)(p);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/kvgate/kvgate/internal/dl"
)

// compiler is an open NVRTC of the pinned release.
type compiler struct {
	lib *dl.Library
	fn  map[string]unsafe.Pointer
}

var functions = []string{"nvrtcVersion", "nvrtcGetErrorString", "nvrtcCreateProgram", "nvrtcCompileProgram",
	"nvrtcGetPTXSize", "nvrtcGetPTX", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "nvrtcDestroyProgram"}

func openCompiler(path string) (*compiler, error) {
	if path == "" {
		return nil, errors.New("no -nvrtc given: ./build.sh deps fetches the wheel that has it")
	}
	lib, err := dl.Open(path)
	if err != nil {
		return nil, err
	}
	c := &compiler{lib: lib, fn: map[string]unsafe.Pointer{}}
	for _, name := range functions {
		if c.fn[name], err = lib.Symbol(name); err != nil {
			c.close()
			return nil, err
		}
	}
	var major, minor C.int
	if err := c.check("nvrtcVersion", C.kvg_version(c.fn["nvrtcVersion"], &major, &minor)); err != nil {
		c.close()
		return nil, err
	}
	if got := fmt.Sprintf("%d.%d", major, minor); got != release {
		c.close()
		return nil, fmt.Errorf("%s is NVRTC %s; the committed PTX is made with %s", lib.Path(), got, release)
	}
	return c, nil
}

func (c *compiler) close() { c.lib.Close() }

func (c *compiler) check(name string, status C.int) error {
	if status == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", name, C.GoString(C.kvg_error(c.fn["nvrtcGetErrorString"], status)))
}

// compile returns the PTX of a source. The error holds the compiler's log;
// warnings are errors too.
func (c *compiler) compile(src source, headers []source, options []string) ([]byte, error) {
	var names, texts []string
	for _, h := range headers {
		names, texts = append(names, h.name), append(texts, h.text)
	}
	cNames, cTexts, cOptions := cStrings(names), cStrings(texts), cStrings(options)
	defer freeStrings(cNames)
	defer freeStrings(cTexts)
	defer freeStrings(cOptions)
	cSrc := cStrings([]string{src.text, src.name})
	defer freeStrings(cSrc)

	var p C.program
	if err := c.check("nvrtcCreateProgram", C.kvg_create(c.fn["nvrtcCreateProgram"], &p, cSrc[0], cSrc[1],
		C.int(len(headers)), first(cTexts), first(cNames))); err != nil {
		return nil, err
	}
	defer C.kvg_destroy(c.fn["nvrtcDestroyProgram"], &p)
	failed := c.check("nvrtcCompileProgram",
		C.kvg_compile(c.fn["nvrtcCompileProgram"], p, C.int(len(options)), first(cOptions)))
	log, err := c.text("nvrtcGetProgramLog", p)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	switch log := strings.TrimSpace(string(log)); {
	case failed != nil:
		return nil, fmt.Errorf("%w\n%s", failed, log)
	case log != "":
		return nil, fmt.Errorf("the compiler warns:\n%s", log)
	}
	return c.text("nvrtcGetPTX", p)
}

// text reads one of the texts of a program, without its closing zero byte.
func (c *compiler) text(name string, p C.program) ([]byte, error) {
	var n C.size_t
	if err := c.check(name+"Size", C.kvg_size(c.fn[name+"Size"], p, &n)); err != nil || n == 0 {
		return nil, err
	}
	b := make([]byte, n)
	if err := c.check(name, C.kvg_text(c.fn[name], p, (*C.char)(unsafe.Pointer(&b[0])))); err != nil {
		return nil, err
	}
	return b[:n-1], nil
}

// cStrings returns C copies of s in an array that C may read: the array itself
// is C memory, for it holds pointers.
func cStrings(s []string) []*C.char {
	if len(s) == 0 {
		return nil
	}
	p := (**C.char)(C.calloc(C.size_t(len(s)), C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	a := unsafe.Slice(p, len(s))
	for i := range s {
		a[i] = C.CString(s[i])
	}
	return a
}

func freeStrings(a []*C.char) {
	for _, p := range a {
		C.free(unsafe.Pointer(p))
	}
	if len(a) > 0 {
		C.free(unsafe.Pointer(&a[0]))
	}
}

func first(a []*C.char) **C.char {
	if len(a) == 0 {
		return nil
	}
	return &a[0]
}
