//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"bytes"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
	"github.com/kvgate/kvgate/internal/abi"
)

type softModule struct {
	c         *softContext
	sim       cuda.Module
	ptx       *ptx.Module
	functions map[string]uint64 // guarded by c.mu
}

type softFunction struct {
	c      *softContext
	sim    cuda.Function
	kernel *ptx.Kernel
	params []ptx.Param
}

// Options of CUjit_option.
const (
	jitErrorLog     = 5
	jitErrorLogSize = 6
)

func doModuleLoadData(out *C.CUmodule, image unsafe.Pointer) C.CUresult {
	return doModuleLoadDataEx(out, image, 0, nil, nil)
}

// An image is PTX; the simulator runs no machine code.
func doModuleLoadDataEx(out *C.CUmodule, image unsafe.Pointer, n C.uint, options *C.int, values *unsafe.Pointer) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	if image == nil {
		return fail(cuda.ErrInvalidValue)
	}
	var log *C.char
	size := uintptr(0)
	for i := range int(n) {
		switch v := unsafe.Slice(values, int(n))[i]; unsafe.Slice(options, int(n))[i] {
		case jitErrorLog:
			log = (*C.char)(v)
		case jitErrorLogSize:
			size = uintptr(v)
		}
	}
	src := []byte(C.GoString((*C.char)(image)))
	if !bytes.Contains(src, []byte(".version")) {
		return fail(cuda.ErrInvalidImage)
	}
	if isa, ok := abi.ImageISA(src); ok && isa.After(abi.NewestISA(int(machine.version.Load()))) {
		return fail(cuda.ErrUnsupportedPTX)
	}
	h, err := c.sim.LoadModule(src)
	if err != nil {
		if log != nil {
			put(log, C.int(size), err.Error())
		}
		return result(err)
	}
	m := &softModule{c: c, sim: h, functions: map[string]uint64{}}
	if m.ptx, err = ptx.Parse("module", src); err != nil {
		return fail(cuda.ErrInvalidPTX)
	}
	*out = C.CUmodule(register(m))
	return 0
}

func doModuleUnload(h C.CUmodule) C.CUresult {
	m, ok := lookup[*softModule](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	unregister(uint64(h))
	m.c.mu.Lock()
	for _, f := range m.functions {
		unregister(f)
	}
	m.c.mu.Unlock()
	return result(m.c.sim.UnloadModule(m.sim))
}

func doModuleGetFunction(out *C.CUfunction, h C.CUmodule, name *C.char) C.CUresult {
	m, ok := lookup[*softModule](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	s := C.GoString(name)
	f, err := m.c.sim.Function(m.sim, s)
	if err != nil {
		return result(err)
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if known, ok := m.functions[s]; ok {
		*out = C.CUfunction(known)
		return 0
	}
	k, _ := m.ptx.Kernel(s)
	m.functions[s] = register(&softFunction{c: m.c, sim: f, kernel: k, params: k.Params()})
	*out = C.CUfunction(m.functions[s])
	return 0
}

func doFuncLoad(h C.CUfunction) C.CUresult {
	if _, ok := lookup[*softFunction](uint64(h)); !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	return 0
}

func doFuncGetAttribute(value *C.int, attribute C.int, h C.CUfunction) C.CUresult {
	f, ok := lookup[*softFunction](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	i, err := f.c.sim.FunctionInfo(f.sim)
	if err != nil {
		return result(err)
	}
	switch attribute { // CU_FUNC_ATTRIBUTE_*
	case 0: // threads of a block
		*value = C.int(i.MaxThreads)
	case 1: // static shared memory
		*value = C.int(i.StaticShared)
	case 2, 3, 7: // constant and local memory, cache mode
		*value = 0
	case funcShared:
		*value = C.int(i.DynamicShared)
	case funcCarveout:
		*value = -1
	case 4:
		*value = C.int(i.Registers)
	case 5, 6: // versions of PTX and of the machine code
		*value = 70
	default:
		return fail(cuda.ErrInvalidValue)
	}
	return 0
}

// Attributes of functions that can be set: the most dynamic shared memory of a
// launch, and how memory is divided between it and the cache, which is a hint.
const (
	funcShared   = 8
	funcCarveout = 9
)

func doFuncSetAttribute(h C.CUfunction, attribute, value C.int) C.CUresult {
	f, ok := lookup[*softFunction](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	switch {
	case attribute == funcCarveout && value >= -1 && value <= 100:
		return 0
	case attribute != funcShared || value < 0:
		return fail(cuda.ErrInvalidValue)
	}
	return result(f.c.sim.AllowShared(f.sim, uint32(value)))
}

func doFuncGetParamInfo(h C.CUfunction, i C.size_t, offset, size *C.size_t) C.CUresult {
	f, ok := lookup[*softFunction](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	if uint64(i) >= uint64(len(f.params)) {
		return fail(cuda.ErrInvalidValue)
	}
	*offset = C.size_t(f.params[i].Offset)
	if size != nil {
		*size = C.size_t(f.params[i].Size)
	}
	return 0
}

// arguments packs those of a launch: params points to a pointer for each
// parameter, extra to a list of keys and values that ends in 0.
func (f *softFunction) arguments(params, extra *unsafe.Pointer) ([]byte, bool) {
	if params != nil {
		args := make([]byte, f.kernel.ParamBytes())
		for i, p := range unsafe.Slice(params, len(f.params)) {
			x := f.params[i]
			copy(args[x.Offset:], unsafe.Slice((*byte)(p), x.Size))
		}
		return args, true
	}
	if extra == nil {
		return nil, f.kernel.ParamBytes() == 0
	}
	const end, pointer, size = 0, 1, 2 // CU_LAUNCH_PARAM_*
	var from *byte
	n := uint64(0)
	for i := 0; ; i += 2 {
		pair := unsafe.Slice((*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(extra), i*8)), 2)
		switch uintptr(pair[0]) {
		case end:
			return unsafe.Slice(from, n), true
		case pointer:
			from = (*byte)(pair[1])
		case size:
			n = *(*uint64)(pair[1])
		default:
			return nil, false
		}
	}
}

func doLaunchKernel(h C.CUfunction, gx, gy, gz, bx, by, bz, shared C.uint, stream C.CUstream, params, extra *unsafe.Pointer) C.CUresult {
	f, ok := lookup[*softFunction](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	s, r := streamOf(stream)
	if s == nil {
		return r
	}
	if s.c != f.c {
		return fail(cuda.ErrInvalidContext)
	}
	if bx > 1024 || by > 1024 || bz > 64 {
		return fail(cuda.ErrInvalidValue)
	}
	args, ok := f.arguments(params, extra)
	if !ok || len(args) > cuda.MaxArgBytes {
		return fail(cuda.ErrInvalidValue)
	}
	g := cuda.Geometry{Grid: [3]uint32{uint32(gx), uint32(gy), uint32(gz)},
		Block: [3]uint16{uint16(bx), uint16(by), uint16(bz)}, Shared: uint32(shared)}
	return s.submit(func(b *cuda.Batch, h cuda.Stream) { copy(b.Launch(h, f.sim, g, len(args)), args) })
}
