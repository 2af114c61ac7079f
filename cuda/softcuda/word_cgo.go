//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"github.com/kvgate/kvgate/cuda"
)

// Flags of CUstreamWriteValue_flags and CUstreamWaitValue_flags. Of the
// comparisons the simulator has the default one alone, the cyclic one.
const (
	writeNoBarrier = 1
	waitCompare    = 3
	waitFlush      = 1 << 30
)

// All that was written before a word is there with it: the barrier that may be
// left out costs nothing here.
func doStreamWriteValue32V2(h C.CUstream, addr C.CUdeviceptr, v C.uint, flags C.uint) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	if flags&^writeNoBarrier != 0 {
		return fail(cuda.ErrInvalidValue)
	}
	return s.submit(func(b *cuda.Batch, h cuda.Stream) { b.WriteWord(h, cuda.DevicePtr(addr), uint32(v)) })
}

func doStreamWaitValue32V2(h C.CUstream, addr C.CUdeviceptr, v C.uint, flags C.uint) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	switch {
	case flags&^(waitCompare|waitFlush) != 0:
		return fail(cuda.ErrInvalidValue)
	case flags&waitCompare != 0:
		return fail(cuda.ErrNotSupported)
	}
	return s.submit(func(b *cuda.Batch, h cuda.Stream) {
		if flags&waitFlush != 0 {
			b.WaitWordFlush(h, cuda.DevicePtr(addr), uint32(v))
		} else {
			b.WaitWord(h, cuda.DevicePtr(addr), uint32(v))
		}
	})
}
