//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

// hostFnTime is how long a stream is held by a host function: a measurement
// of velox (issue 6096) has it run after about 100 us.
const hostFnTime = 100 * time.Microsecond

// forbidden is asked first by every call: a host function may make none. On
// hardware it would be told so, or hang.
func forbidden() C.CUresult {
	if machine.hostFns.Load() > 0 && C.kvg_soft_in_host_fn() != 0 {
		return fail(cuda.ErrNotPermitted)
	}
	return 0
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
	caller, err := s.c.hostCaller()
	if err != nil {
		return result(err)
	}
	one := cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}
	return s.submit(func(b *cuda.Batch, h cuda.Stream) {
		a := b.Launch(h, caller, one, 16)
		binary.LittleEndian.PutUint64(a, uint64(uintptr(unsafe.Pointer(fn))))
		binary.LittleEndian.PutUint64(a[8:], uint64(uintptr(arg)))
	})
}

func (c *softContext) hostCaller() (cuda.Function, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hostFn != 0 {
		return c.hostFn, nil
	}
	var err error
	c.hostFn, err = c.sim.NewModel("host function", func(k *sim.ModelLaunch) error {
		k.Time, k.Chunks = hostFnTime, 2
		k.Step = func(_ *sim.Memory, i int) error {
			if i == 1 {
				machine.hostFns.Add(1)
				C.kvg_soft_call_host_fn(C.uint64_t(binary.LittleEndian.Uint64(k.Args)), C.uint64_t(binary.LittleEndian.Uint64(k.Args[8:])))
				machine.hostFns.Add(-1)
			}
			return nil
		}
		return nil
	})
	return c.hostFn, err
}
