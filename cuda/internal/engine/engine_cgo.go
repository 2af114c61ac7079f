//go:build cgo && linux

// Package engine is CUDA code of somebody else's, for tests: it calls the
// driver's interface directly, on whatever thread it is called.
package engine

/*
#include <stdint.h>
#include <stdlib.h>

static int call0(void *f) { return ((int (*)(void))f)(); }
static int call1(void *f, uint64_t a) { return ((int (*)(uint64_t))f)(a); }
static int call2(void *f, uint64_t a, uint64_t b) { return ((int (*)(uint64_t, uint64_t))f)(a, b); }
static int out1(void *f, uint64_t *out) { return ((int (*)(uint64_t *))f)(out); }
static int out2(void *f, uint64_t *out, uint64_t a) { return ((int (*)(uint64_t *, uint64_t))f)(out, a); }
static int out3(void *f, uint64_t *out, uint64_t a, uint64_t b) { return ((int (*)(uint64_t *, uint64_t, uint64_t))f)(out, a, b); }
static int in_out(void *f, uint64_t a, uint64_t *out) { return ((int (*)(uint64_t, uint64_t *))f)(a, out); }
static int proc_address(void *f, const char *name, void **fn, int version) {
	int status = 0; // says why there is none; the result does, too
	return ((int (*)(const char *, void **, int, uint64_t, int *))f)(name, fn, version, 0, &status);
}
static int mode(void *f, int *m) { return ((int (*)(int *))f)(m); }
*/
import "C"

import (
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// Library gives functions by name.
type Library interface {
	Symbol(name string) (unsafe.Pointer, error)
}

// Engine calls the functions of a library.
type Engine struct{ Lib Library }

func (e Engine) fn(name string) unsafe.Pointer {
	p, err := e.Lib.Symbol(name)
	if err != nil {
		panic(err)
	}
	return p
}

func code(r C.int) error {
	if r == 0 {
		return nil
	}
	return cuda.Code(r)
}

// Init is cuInit.
func (e Engine) Init() error { return code(C.call1(e.fn("cuInit"), 0)) }

// DriverVersion is cuDriverGetVersion.
func (e Engine) DriverVersion() (int, error) {
	var v C.int
	err := code(C.mode(e.fn("cuDriverGetVersion"), &v))
	return int(v), err
}

// ProcAddress is cuGetProcAddress_v2, without flags: the function of that name,
// which has no version suffix, as it was in a version of CUDA.
func (e Engine) ProcAddress(name string, version int) (fn unsafe.Pointer, err error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	err = code(C.proc_address(e.fn("cuGetProcAddress_v2"), n, &fn, C.int(version)))
	return fn, err
}

// NewContext makes a context, which is current afterwards.
func (e Engine) NewContext(device int) (uint64, error) {
	var c C.uint64_t
	err := code(C.out3(e.fn("cuCtxCreate_v2"), &c, 0, C.uint64_t(device)))
	return uint64(c), err
}

// DestroyContext destroys a context.
func (e Engine) DestroyContext(c uint64) error {
	return code(C.call1(e.fn("cuCtxDestroy_v2"), C.uint64_t(c)))
}

// Current returns the thread's current context.
func (e Engine) Current() (uint64, error) {
	var c C.uint64_t
	err := code(C.out1(e.fn("cuCtxGetCurrent"), &c))
	return uint64(c), err
}

// SetCurrent makes a context the thread's; 0 makes none.
func (e Engine) SetCurrent(c uint64) error {
	return code(C.call1(e.fn("cuCtxSetCurrent"), C.uint64_t(c)))
}

// NewStream makes a stream of the current context.
func (e Engine) NewStream(flags uint32) (uint64, error) {
	var s C.uint64_t
	err := code(C.out2(e.fn("cuStreamCreate"), &s, C.uint64_t(flags)))
	return uint64(s), err
}

// NewEvent makes an event of the current context.
func (e Engine) NewEvent() (uint64, error) {
	var x C.uint64_t
	err := code(C.out2(e.fn("cuEventCreate"), &x, 0))
	return uint64(x), err
}

// Record records an event.
func (e Engine) Record(event, stream uint64) error {
	return code(C.call2(e.fn("cuEventRecord"), C.uint64_t(event), C.uint64_t(stream)))
}

// Query asks after an event.
func (e Engine) Query(event uint64) error {
	return code(C.call1(e.fn("cuEventQuery"), C.uint64_t(event)))
}

// Synchronize is cuCtxSynchronize.
func (e Engine) Synchronize() error { return code(C.call0(e.fn("cuCtxSynchronize"))) }

// BeginCapture begins a capture.
func (e Engine) BeginCapture(stream uint64, mode int) error {
	return code(C.call2(e.fn("cuStreamBeginCapture_v2"), C.uint64_t(stream), C.uint64_t(mode)))
}

// EndCapture ends a capture.
func (e Engine) EndCapture(stream uint64) error {
	var graph C.uint64_t
	return code(C.in_out(e.fn("cuStreamEndCapture"), C.uint64_t(stream), &graph))
}

// ExchangeMode sets the thread's capture mode and returns the one before.
func (e Engine) ExchangeMode(m int) (int, error) {
	v := C.int(m)
	err := code(C.mode(e.fn("cuThreadExchangeStreamCaptureMode"), &v))
	return int(v), err
}
