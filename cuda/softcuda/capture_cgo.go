//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import "github.com/kvgate/kvgate/cuda"

// Capture modes of CUstreamCaptureMode.
const (
	captureGlobal  = 0
	captureRelaxed = 2
)

// The simulator captures nothing: a capture can begin and end here, so that
// its rules for other threads hold, but work put into the stream meanwhile is
// refused.

// safe is asked first by calls that may not be made while someone captures in
// global mode, unless the thread's own mode is relaxed. Source: driver API,
// cuThreadExchangeStreamCaptureMode.
func (c *softContext) safe() C.CUresult {
	if machine.captures.Load() == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.capture > 0 && C.kvg_soft_capture_mode() == captureGlobal {
		return fail(cuda.ErrStreamCapturing)
	}
	return 0
}

func doThreadExchangeStreamCaptureMode(mode *C.int) C.CUresult {
	if *mode < captureGlobal || *mode > captureRelaxed {
		return fail(cuda.ErrInvalidValue)
	}
	*mode = C.kvg_soft_exchange_capture_mode(*mode)
	return 0
}

func doStreamBeginCaptureV2(h C.CUstream, mode C.int) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s == s.c.legacy || s.capturing {
		return fail(cuda.ErrIllegalState)
	}
	s.capturing, s.captureMode = true, int(mode)
	if mode == captureGlobal {
		s.c.capture++
		machine.captures.Add(1)
	}
	return 0
}

func doStreamEndCapture(h C.CUstream, graph *C.CUgraph) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if !s.capturing {
		return fail(cuda.ErrIllegalState)
	}
	s.capturing = false
	if s.captureMode == captureGlobal {
		s.c.capture--
		machine.captures.Add(-1)
	}
	*graph = 0
	return fail(cuda.ErrCaptureInvalid)
}

func doStreamIsCapturing(h C.CUstream, status *C.int) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	*status = 0
	if s.capturing {
		*status = 1
	}
	return 0
}

func doGraphLaunch(C.CUgraphExec, C.CUstream) C.CUresult { return fail(cuda.ErrNotSupported) }
