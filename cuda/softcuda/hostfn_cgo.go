//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// forbidden is asked first by every call: a host function may make none. On
// hardware it would be told so, or hang.
func forbidden() C.CUresult {
	if machine.hostFns.Load() > 0 && C.kvg_soft_in_host_fn() != 0 {
		return fail(cuda.ErrNotPermitted)
	}
	return 0
}

// hostFns are the C functions that a context's streams have still to call.
type hostFns struct {
	mu     sync.Mutex
	caller cuda.HostFunc // calls them; made when first used
	next   uint64
	calls  map[uint64]hostFn // by the argument of the caller
}

type hostFn struct {
	fn    C.CUhostFn
	arg   unsafe.Pointer
	stays bool // a node of a graph: it is called with each launch
}

// A host function runs in stream order, on a thread of the simulator's, and
// not at all after an error.
func doLaunchHostFunc(h C.CUstream, fn C.CUhostFn, arg unsafe.Pointer) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	if fn == nil {
		return fail(cuda.ErrInvalidValue)
	}
	caller, id, err := s.c.addHostFn(hostFn{fn, arg, s.captured()})
	if err != nil {
		return result(err)
	}
	if r = s.submit(func(b *cuda.Batch, h cuda.Stream) { b.Signal(h, caller, id) }); r != 0 {
		s.c.hostFns.drop(id)
	}
	return r
}

func (c *softContext) addHostFn(f hostFn) (caller cuda.HostFunc, id uint64, err error) {
	h := &c.hostFns
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.caller == 0 {
		if h.caller, err = c.sim.NewHostFunc("of a client", h.call); err != nil {
			return 0, 0, err
		}
		h.calls = map[uint64]hostFn{}
	}
	h.next++
	h.calls[h.next] = f
	return h.caller, h.next, nil
}

func (h *hostFns) drop(id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.calls, id)
}

// take returns a function that is to be called.
func (h *hostFns) take(id uint64) hostFn {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.calls[id]
	if !f.stays {
		delete(h.calls, id)
	}
	return f
}

func (h *hostFns) call(id uint64) {
	f := h.take(id)
	machine.hostFns.Add(1)
	C.kvg_soft_call_host_fn(C.uint64_t(uintptr(unsafe.Pointer(f.fn))), C.uint64_t(uintptr(f.arg)))
	machine.hostFns.Add(-1)
}
