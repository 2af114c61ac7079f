//go:build cgo && linux

package engine

/*
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
	int64_t ns, calls;
	int (*also)(void); // called, too
	int64_t result;
} stamp;

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void stamp_fn(void *arg) {
	stamp *s = arg;
	__atomic_store_n(&s->ns, now(), __ATOMIC_RELEASE);
	if (s->also) __atomic_store_n(&s->result, s->also(), __ATOMIC_RELEASE);
	__atomic_add_fetch(&s->calls, 1, __ATOMIC_ACQ_REL);
}
static void *stamp_ptr(void) { return (void *)stamp_fn; }
static int64_t load(int64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static int out(void *f, uint64_t *ns) { return ((int (*)(uint64_t *))f)(ns); }
static int host(void *f, uint64_t stream, void *fn, void *arg) { return ((int (*)(uint64_t, void *, void *))f)(stream, fn, arg); }
*/
import "C"

import "unsafe"

// Stamp is a C function that keeps when it was called last.
type Stamp struct{ c *C.stamp }

// NewStamp returns a stamp, which the caller frees. When called it calls the C
// function also, too, if that is not nil.
func NewStamp(also unsafe.Pointer) Stamp {
	s := Stamp{(*C.stamp)(C.calloc(1, C.sizeof_stamp))}
	*(*unsafe.Pointer)(unsafe.Pointer(&s.c.also)) = also
	return s
}

// Func returns the function, and Arg what it is to be called with.
func (s Stamp) Func() unsafe.Pointer { return C.stamp_ptr() }

// Arg returns the argument of the function.
func (s Stamp) Arg() unsafe.Pointer { return unsafe.Pointer(s.c) }

// Last returns when the function was called last, on CLOCK_MONOTONIC.
func (s Stamp) Last() int64 { return int64(C.load(&s.c.ns)) }

// Calls returns how often it was called.
func (s Stamp) Calls() int64 { return int64(C.load(&s.c.calls)) }

// Result returns what the other function returned last.
func (s Stamp) Result() int64 { return int64(C.load(&s.c.result)) }

// Free gives the memory back.
func (s Stamp) Free() { C.free(unsafe.Pointer(s.c)) }

// Time calls a function that stores a time.
func (e Engine) Time(name string) int64 {
	var ns C.uint64_t
	C.out(e.fn(name), &ns)
	return int64(ns)
}

// Now returns CLOCK_MONOTONIC.
func Now() int64 { return int64(C.now()) }

// LaunchHostFunc is cuLaunchHostFunc.
func (e Engine) LaunchHostFunc(stream uint64, s Stamp) error {
	return code(C.host(e.fn("cuLaunchHostFunc"), C.uint64_t(stream), s.Func(), s.Arg()))
}

// Symbol returns a function of the library.
func (e Engine) Symbol(name string) unsafe.Pointer { return e.fn(name) }
