//go:build cgo && unix

package nvrtc

/*
#include <stddef.h>
#include <stdlib.h>

// The part of NVRTC's C API that is used here (docs.nvidia.com/cuda/nvrtc). The
// functions are called through their addresses.
typedef void *program;

static int kvg_version(void *f, int *major, int *minor) {
	return ((int (*)(int *, int *))f)(major, minor);
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
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/kvgate/kvgate/internal/dl"
)

// Library is an open NVRTC. It is safe for use by several goroutines.
type Library struct {
	lib          *dl.Library
	fn           map[string]unsafe.Pointer
	major, minor int

	mu     sync.RWMutex // held to read while a program is compiled
	closed bool
}

var functions = []string{"nvrtcVersion", "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetPTXSize",
	"nvrtcGetPTX", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "nvrtcDestroyProgram"}

// Open opens NVRTC: the library at path, or where path is empty the first that is
// found on the loader's path or in CUDA's own folder. The error wraps
// [ErrNoCompiler] and says why there is none.
func Open(path string) (*Library, error) {
	from := names
	if path != "" {
		from = []string{path}
	}
	var reasons []error
	for _, name := range from { // one that opens and can't be used does not end the search
		l, err := open(name)
		if err == nil {
			return l, nil
		}
		reasons = append(reasons, err)
	}
	return nil, fmt.Errorf("nvrtc: %w: %w", ErrNoCompiler, errors.Join(reasons...))
}

func open(name string) (*Library, error) {
	lib, err := dl.Open(name)
	if err != nil {
		return nil, err
	}
	l := &Library{lib: lib, fn: map[string]unsafe.Pointer{}}
	for _, f := range functions {
		if l.fn[f], err = lib.Symbol(f); err != nil {
			return nil, errors.Join(err, lib.Close())
		}
	}
	var major, minor C.int
	if c := C.kvg_version(l.fn["nvrtcVersion"], &major, &minor); c != 0 {
		return nil, errors.Join(&Error{Code: Code(c), Op: "nvrtcVersion"}, lib.Close())
	}
	l.major, l.minor = int(major), int(minor)
	return l, nil
}

// Version returns the release of CUDA that the library is of, such as 11 and 8.
func (l *Library) Version() (major, minor int) { return l.major, l.minor }

// Path returns the file that was loaded.
func (l *Library) Path() string { return l.lib.Path() }

// Close gives the library back, once programs that are being compiled are done. A
// second Close does nothing.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.lib.Close()
}

// Compile makes PTX of a program. The error is an *[Error] with the compiler's log,
// or wraps [ErrNoCompiler] after Close. It does not return before the compiler does.
func (l *Library) Compile(p Program) (*Output, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, fmt.Errorf("nvrtc: %s: %w: closed", p.Name, ErrNoCompiler)
	}
	for _, s := range append([]string{p.Name, p.Text}, p.Options...) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, &Error{Code: ErrInvalidInput, Op: "nvrtcCreateProgram", Name: p.Name, Log: "a text has a zero byte"}
		}
	}
	var headers, texts []string
	for name := range p.Headers {
		headers = append(headers, name)
	}
	slices.Sort(headers)
	for _, name := range headers {
		if strings.IndexByte(name+p.Headers[name], 0) >= 0 {
			return nil, &Error{Code: ErrInvalidInput, Op: "nvrtcCreateProgram", Name: p.Name, Log: "a header has a zero byte"}
		}
		texts = append(texts, p.Headers[name])
	}
	cNames, cTexts, cOptions := cStrings(headers), cStrings(texts), cStrings(p.Options)
	defer freeStrings(cNames)
	defer freeStrings(cTexts)
	defer freeStrings(cOptions)
	src := cStrings([]string{p.Text, p.Name})
	defer freeStrings(src)

	var h C.program
	if c := C.kvg_create(l.fn["nvrtcCreateProgram"], &h, src[0], src[1], C.int(len(headers)), first(cTexts), first(cNames)); c != 0 {
		return nil, &Error{Code: Code(c), Op: "nvrtcCreateProgram", Name: p.Name}
	}
	defer C.kvg_destroy(l.fn["nvrtcDestroyProgram"], &h)
	compiled := Code(C.kvg_compile(l.fn["nvrtcCompileProgram"], h, C.int(len(p.Options)), first(cOptions)))
	log, err := l.text("nvrtcGetProgramLog", h, p.Name)
	if compiled != Success {
		return nil, &Error{Code: compiled, Op: "nvrtcCompileProgram", Name: p.Name, Log: strings.TrimSpace(string(log))}
	}
	if err != nil {
		return nil, err
	}
	ptx, err := l.text("nvrtcGetPTX", h, p.Name)
	if err != nil {
		return nil, err
	}
	return &Output{PTX: ptx, Log: strings.TrimSpace(string(log))}, nil
}

// text reads one of the texts of a program, without its closing zero byte.
func (l *Library) text(op string, h C.program, name string) ([]byte, error) {
	var n C.size_t
	if c := C.kvg_size(l.fn[op+"Size"], h, &n); c != 0 || n == 0 {
		if c == 0 {
			return nil, nil
		}
		return nil, &Error{Code: Code(c), Op: op + "Size", Name: name}
	}
	b := make([]byte, n)
	if c := C.kvg_text(l.fn[op], h, (*C.char)(unsafe.Pointer(&b[0]))); c != 0 {
		return nil, &Error{Code: Code(c), Op: op, Name: name}
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
