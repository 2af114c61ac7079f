//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import "github.com/kvgate/kvgate/cuda"

// Capture modes of CUstreamCaptureMode.
const (
	captureGlobal      = 0
	captureThreadLocal = 1
	captureRelaxed     = 2
)

// softCapture is a capture under way. The simulator has the nodes; the rules
// for threads are here.
type softCapture struct {
	mode   int
	thread uint64 // that began it
}

// safe is asked first by calls that are potentially unsafe while someone
// captures: the thread's mode says whether they are forbidden, and one that is
// spoils the captures that forbid it. Source: driver API,
// cuThreadExchangeStreamCaptureMode. Captures of other contexts do not count.
func (c *softContext) safe() C.CUresult {
	if machine.captures.Load() == 0 {
		return 0
	}
	mode, thread := C.kvg_soft_capture_mode(), uint64(C.kvg_soft_thread())
	if mode == captureRelaxed {
		return 0
	}
	c.mu.Lock()
	var broken []*softStream
	for s, k := range c.captures {
		mine := k.thread == thread && k.mode != captureRelaxed
		if mine || mode == captureGlobal && k.mode == captureGlobal {
			broken = append(broken, s)
		}
	}
	c.mu.Unlock()
	if len(broken) == 0 {
		return 0
	}
	for _, s := range broken {
		s.spoil()
	}
	return fail(cuda.ErrStreamCapturing)
}

// spoil spoils the capture of s, if there is one: by synchronising it, which
// does nothing else then.
func (s *softStream) spoil() {
	if s.status() == cuda.CaptureActive {
		_ = s.c.sim.SyncStream(bg, s.sim)
	}
}

func (s *softStream) status() cuda.CaptureStatus {
	st, err := s.c.sim.CaptureStatus(s.sim)
	if err != nil {
		return cuda.CaptureNone // a dead device captures nothing
	}
	return st
}

// captured reports whether s is captured. It asks the simulator only where
// someone captures at all.
func (s *softStream) captured() bool {
	return machine.captures.Load() > 0 && s.status() != cuda.CaptureNone
}

// implicit is asked by calls that use the legacy stream: while a stream that
// has an order with it is captured it can not be used, and an attempt spoils
// that capture. Source: driver API, cuStreamIsCapturing.
func (c *softContext) implicit(spoil bool) C.CUresult {
	if machine.captures.Load() == 0 {
		return 0
	}
	c.mu.Lock()
	blocking := c.blockingStreams()
	c.mu.Unlock()
	r := C.CUresult(0)
	for _, s := range blocking {
		if s.captured() {
			r = fail(cuda.ErrCaptureImplicit)
			if spoil {
				s.spoil()
			}
		}
	}
	return r
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
	if mode < captureGlobal || mode > captureRelaxed {
		return fail(cuda.ErrInvalidValue)
	}
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.handle == 0 {
		return fail(cuda.ErrStreamCapturing)
	}
	machine.captures.Add(1)
	if err := c.sim.BeginCapture(s.sim, cuda.CaptureMode(mode)); err != nil {
		machine.captures.Add(-1)
		return result(err)
	}
	c.captures[s] = softCapture{int(mode), uint64(C.kvg_soft_thread())}
	return 0
}

func doStreamEndCapture(h C.CUstream, graph *C.CUgraph) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	*graph = 0
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	k, begun := c.captures[s]
	if begun && k.mode != captureRelaxed && k.thread != uint64(C.kvg_soft_thread()) {
		return fail(cuda.ErrCaptureThread)
	}
	g, err := c.sim.EndCapture(s.sim)
	if begun {
		c.forgetCapture(s)
	}
	if err != nil {
		return result(err)
	}
	*graph = C.CUgraph(register(&softGraph{c, g}))
	return 0
}

// forgetCapture is called with c.mu held.
func (c *softContext) forgetCapture(s *softStream) {
	if _, ok := c.captures[s]; ok {
		delete(c.captures, s)
		machine.captures.Add(-1)
	}
}

func doStreamIsCapturing(h C.CUstream, status *C.int) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	*status = 0
	if machine.captures.Load() == 0 {
		return 0
	}
	if s.handle == 0 {
		return s.c.implicit(false)
	}
	*status = C.int(s.status())
	return 0
}
