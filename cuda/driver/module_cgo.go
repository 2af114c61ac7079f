//go:build cgo && linux

package driver

/*
#include <stdlib.h>
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/abi"
)

// logBytes is the room for what the driver's compiler has to say.
const logBytes = 8 << 10

// LoadModule compiles PTX (or loads a cubin). PTX of a version that the driver
// is too old for is [cuda.ErrUnsupportedPTX], with both versions; what the
// compiler says of other faults is in the error.
func (d *Device) LoadModule(image []byte) (cuda.Module, error) {
	const op = "load module"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	text := C.CBytes(append(append([]byte(nil), image...), 0)) // PTX ends in a zero
	defer C.free(text)
	log := (*C.char)(C.calloc(1, logBytes))
	if log == nil {
		return 0, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op}
	}
	defer C.free(unsafe.Pointer(log))
	var raw C.uint64_t
	if r := C.kvg_load(d.c, (*C.char)(text), &raw, log, logBytes-1); r.why != C.KVG_OK {
		return 0, d.fail(op, r, d.explain(image, cuda.Code(r.code), strings.TrimSpace(C.GoString(log))))
	}
	h, err := d.add(C.KVG_MODULE, uint64(raw), false, -1)
	if err != nil {
		C.kvg_unload(d.c, raw)
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.modules == nil {
		d.modules = map[cuda.Module]map[string]cuda.Function{}
	}
	d.modules[cuda.Module(h)] = map[string]cuda.Function{}
	return cuda.Module(h), nil
}

// explain says why an image was refused.
func (d *Device) explain(image []byte, code cuda.Code, log string) string {
	if code != cuda.ErrUnsupportedPTX && code != cuda.ErrInvalidPTX {
		return log
	}
	isa, ok := abi.ImageISA(image)
	takes := abi.NewestISA(d.info.Driver)
	if !ok || code == cuda.ErrInvalidPTX && !isa.After(takes) {
		return log
	}
	s := fmt.Sprintf("the image is PTX ISA %s", isa)
	if v := abi.Brought(isa); v != 0 {
		s += fmt.Sprintf(" (CUDA %s)", v)
	}
	s += fmt.Sprintf(", the driver supports CUDA %s, which takes ISA %s", abi.CUDA(d.info.Driver), takes)
	if log != "" {
		s += "; " + log
	}
	return s
}

// UnloadModule makes the module's functions invalid.
func (d *Device) UnloadModule(m cuda.Module) error {
	const op = "unload module"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	d.mu.Lock()
	e, ok := d.takeLocked(C.KVG_MODULE, uint64(m))
	for _, f := range d.modules[m] {
		d.takeLocked(C.KVG_FUNCTION, uint64(f))
	}
	delete(d.modules, m)
	d.mu.Unlock()
	if !ok {
		return badHandle(op, "module", uint64(m))
	}
	if r := C.kvg_unload(d.c, C.uint64_t(e.raw)); r.why != C.KVG_OK {
		return d.fail(op, r, "")
	}
	return nil
}

// Function returns a kernel of a module, loaded, and the same handle each time.
func (d *Device) Function(m cuda.Module, name string) (cuda.Function, error) {
	const op = "look up function"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	if strings.IndexByte(name, 0) >= 0 {
		return 0, &cuda.Error{Code: cuda.ErrNotFound, Op: op, Detail: fmt.Sprintf("%q", name)}
	}
	d.mu.Lock()
	e, ok := d.handles[C.KVG_MODULE].find(uint64(m))
	f, known := d.modules[m][name]
	d.mu.Unlock()
	if !ok {
		return 0, badHandle(op, "module", uint64(m))
	}
	if known {
		return f, nil
	}
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	var raw C.uint64_t
	var params C.int32_t
	if r := C.kvg_function(d.c, C.uint64_t(e.raw), c, &raw, &params); r.why != C.KVG_OK {
		return 0, d.fail(op, r, fmt.Sprintf("%q", name))
	}
	h, err := d.add(C.KVG_FUNCTION, uint64(raw), false, int32(params))
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	functions := d.modules[m]
	if f, known := functions[name]; known { // another goroutine was faster
		d.takeLocked(C.KVG_FUNCTION, h)
		return f, nil
	}
	if functions == nil {
		d.takeLocked(C.KVG_FUNCTION, h)
		return 0, badHandle(op, "module", uint64(m))
	}
	functions[name] = cuda.Function(h)
	return cuda.Function(h), nil
}

// AllowShared lets launches of f take more shared memory than they may without.
func (d *Device) AllowShared(f cuda.Function, dynamic uint32) error {
	const op = "allow shared memory"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	e, ok := d.find(C.KVG_FUNCTION, uint64(f))
	if !ok {
		return badHandle(op, "function", uint64(f))
	}
	if dynamic > math.MaxInt32 {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("%d bytes", dynamic)}
	}
	r := C.kvg_allow_shared(d.c, C.uint64_t(e.raw), C.int(dynamic))
	switch {
	case r.why == C.KVG_MISSING:
		return d.fail(op, r, "cuFuncSetAttribute")
	case r.why != C.KVG_OK:
		return d.fail(op, r, fmt.Sprintf("%d bytes for function %#x", dynamic, uint64(f)))
	}
	return nil
}
