//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"github.com/kvgate/kvgate/cuda"
)

// Flags and names of streams.
const (
	streamNonBlocking = 1
	streamLegacy      = 1
	streamPerThread   = 2
)

type softStream struct {
	c        *softContext
	handle   uint64
	sim      cuda.Stream
	priority int

	// Guarded by c.mu.
	mark     cuda.Event // of the order with the legacy stream; 0: not made yet
	mustWait bool       // for the legacy stream's mark
}

// streamOf returns the stream of a handle; 0 and CU_STREAM_LEGACY are the
// legacy default stream of the thread's context.
func streamOf(h C.CUstream) (*softStream, C.CUresult) {
	switch h {
	case 0, streamLegacy:
		c, r := current()
		if c == nil {
			return nil, r
		}
		s, err := c.legacyStream()
		return s, result(err)
	case streamPerThread:
		return nil, fail(cuda.ErrNotSupported)
	}
	s, ok := lookup[*softStream](uint64(h))
	if !ok {
		return nil, fail(cuda.ErrInvalidHandle)
	}
	return s, 0
}

func (c *softContext) legacyStream() (*softStream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.legacy != nil {
		return c.legacy, nil
	}
	h, err := c.sim.NewStream(cuda.StreamOptions{Name: "legacy default stream"})
	if err != nil {
		return nil, err
	}
	c.legacy = &softStream{c: c, sim: h}
	return c.legacy, nil
}

// submit puts into the stream what add adds; nil adds nothing but the order
// with the legacy stream. That one waits for all work in the blocking streams,
// and they wait for its. Source: CUDA runtime API, "Stream synchronization
// behavior".
func (s *softStream) submit(add func(b *cuda.Batch, h cuda.Stream)) C.CUresult {
	c := s.c
	b := c.batch.Get().(*cuda.Batch)
	defer c.batch.Put(b)
	b.Reset()
	// What is captured has no order with the legacy stream.
	if s.captured() {
		if s.handle == 0 { // the legacy stream has joined, by a wait
			s.spoil()
			return fail(cuda.ErrCaptureImplicit)
		}
		if add == nil {
			return 0
		}
		add(b, s.sim)
		return result(c.sim.Submit(b))
	}
	if s.handle == 0 {
		if r := c.implicit(true); r != 0 {
			return r
		}
	}
	c.mu.Lock()
	ordered := s == c.legacy && len(c.blocking) > 0 || s.mustWait
	if !ordered {
		c.mu.Unlock()
		if add == nil {
			return 0
		}
		add(b, s.sim)
		return result(c.sim.Submit(b))
	}
	defer c.mu.Unlock()
	if err := c.order(b, s, add); err != nil {
		return result(err)
	}
	return result(c.sim.Submit(b))
}

func (c *softContext) order(b *cuda.Batch, s *softStream, add func(b *cuda.Batch, h cuda.Stream)) error {
	if s != c.legacy {
		b.WaitEvent(s.sim, c.legacy.mark)
		s.mustWait = false
		if add != nil {
			add(b, s.sim)
		}
		return nil
	}
	for _, x := range append(c.blockingStreams(), s) {
		if x.mark == 0 {
			var err error
			if x.mark, err = c.sim.NewEvent(); err != nil {
				return err
			}
		}
	}
	for x := range c.blocking {
		b.Record(x.sim, x.mark)
		b.WaitEvent(s.sim, x.mark)
		x.mustWait = true
	}
	if add != nil {
		add(b, s.sim)
	}
	b.Record(s.sim, s.mark)
	return nil
}

func (c *softContext) blockingStreams() (s []*softStream) {
	for x := range c.blocking {
		s = append(s, x)
	}
	return s
}

func doStreamCreate(out *C.CUstream, flags C.uint) C.CUresult {
	return doStreamCreateWithPriority(out, flags, 0)
}

func doStreamCreateWithPriority(out *C.CUstream, flags C.uint, priority C.int) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	if flags > streamNonBlocking {
		return fail(cuda.ErrInvalidValue)
	}
	h, err := c.sim.NewStream(cuda.StreamOptions{Priority: int(priority)})
	if err != nil {
		return result(err)
	}
	clamped, err := c.sim.StreamPriority(h)
	if err != nil {
		return result(err)
	}
	s := &softStream{c: c, sim: h, priority: clamped}
	s.handle = register(s)
	c.mu.Lock()
	c.streams[s] = true
	if flags&streamNonBlocking == 0 {
		c.blocking[s] = true
	}
	c.mu.Unlock()
	*out = C.CUstream(s.handle)
	return 0
}

func doStreamDestroyV2(h C.CUstream) C.CUresult {
	s, ok := lookup[*softStream](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	unregister(uint64(h))
	s.c.mu.Lock()
	delete(s.c.streams, s)
	delete(s.c.blocking, s)
	s.c.forgetCapture(s)
	s.c.mu.Unlock()
	return result(s.c.sim.DestroyStream(s.sim))
}

func doStreamSynchronize(h C.CUstream) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	if r := s.c.safe(); r != 0 {
		return r
	}
	if r := s.submit(nil); r != 0 {
		return r
	}
	return result(s.c.sim.SyncStream(bg, s.sim))
}

func doStreamGetCtx(h C.CUstream, out *C.CUcontext) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	*out = C.CUcontext(s.c.handle)
	return 0
}

func doStreamGetPriority(h C.CUstream, out *C.int) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	*out = C.int(s.priority)
	return 0
}

func doStreamWaitEvent(h C.CUstream, e C.CUevent, flags C.uint) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	x, ok := lookup[*softEvent](uint64(e))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	r = s.waitPeer(x)
	if r == 0 && s.handle == 0 && s.captured() {
		s.spoil()
		return fail(cuda.ErrCaptureImplicit)
	}
	return r
}
