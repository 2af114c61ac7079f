//go:build cgo && unix

package dl

/*
#cgo linux LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

// The message of dlerror belongs to the thread that failed, so each helper
// makes its call and reads the message within one crossing. The caller frees
// *reason.
static char *kvg_dl_reason(void) {
	const char *m = dlerror();
	return strdup(m ? m : "unknown error");
}

static void *kvg_dl_open(const char *name, char **reason) {
	dlerror();
	void *h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!h) *reason = kvg_dl_reason();
	return h;
}

static void *kvg_dl_symbol(void *h, const char *name, char **reason) {
	dlerror();
	void *p = dlsym(h, name);
	if (!p) *reason = kvg_dl_reason();
	return p;
}

static int kvg_dl_close(void *h, char **reason) {
	dlerror();
	int r = dlclose(h);
	if (r) *reason = kvg_dl_reason();
	return r;
}

static const char *kvg_dl_path(void *h) {
	struct link_map *m = NULL;
	if (dlinfo(h, RTLD_DI_LINKMAP, &m) || !m) return NULL;
	return m->l_name;
}
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Library is a loaded shared library. Its methods are safe for use by several
// goroutines. Whoever opened it closes it; addresses from it are dead then.
type Library struct {
	name, path string

	mu     sync.Mutex
	handle unsafe.Pointer // nil: closed
}

// Open loads the first of the named libraries that can be loaded: a file name
// for the loader's search path, or a path. All symbols are bound at once and
// kept out of the global scope. The error is an *[OpenError].
func Open(names ...string) (*Library, error) {
	reasons := make([]string, 0, len(names))
	kind := ErrNoLibrary
	for _, name := range names {
		h, why := open(name)
		if h == nil {
			reasons = append(reasons, why)
			if !missing(name, why) {
				kind = ErrBadLibrary
			}
			continue
		}
		l := &Library{name: name, handle: h, path: name}
		if p := C.kvg_dl_path(h); p != nil {
			l.path = C.GoString(p)
		}
		return l, nil
	}
	return nil, &OpenError{Names: names, Reasons: reasons, kind: kind}
}

func open(name string) (unsafe.Pointer, string) {
	// dlopen takes the empty name for the program itself.
	if name == "" {
		return nil, "empty name"
	}
	if strings.IndexByte(name, 0) >= 0 {
		return nil, "name has a zero byte"
	}
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	var reason *C.char
	h := C.kvg_dl_open(c, &reason)
	return h, takeReason(reason)
}

func takeReason(r *C.char) string {
	if r == nil {
		return ""
	}
	defer C.free(unsafe.Pointer(r))
	return C.GoString(r)
}

// Name returns which of the names given to Open was loaded.
func (l *Library) Name() string { return l.name }

// Path returns the file that was loaded, as the loader knows it.
func (l *Library) Path() string { return l.path }

// Symbol returns the address of a symbol. It wraps [ErrNoSymbol] when there is
// none, and [ErrClosed] after Close.
func (l *Library) Symbol(name string) (unsafe.Pointer, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return nil, fmt.Errorf("dl: symbol %q in %s: name has a zero byte: %w", name, l.path, ErrNoSymbol)
	}
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handle == nil {
		return nil, fmt.Errorf("dl: symbol %s in %s: %w", name, l.path, ErrClosed)
	}
	var reason *C.char
	p := C.kvg_dl_symbol(l.handle, c, &reason)
	if p == nil {
		return nil, fmt.Errorf("dl: symbol %s in %s: %w (%s)", name, l.path, ErrNoSymbol, takeReason(reason))
	}
	return p, nil
}

// Close gives the library back to the loader, which may unload it. A second
// Close does nothing.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handle == nil {
		return nil
	}
	h := l.handle
	l.handle = nil
	var reason *C.char
	if C.kvg_dl_close(h, &reason) != 0 {
		return fmt.Errorf("dl: close %s: %s", l.path, takeReason(reason))
	}
	return nil
}
