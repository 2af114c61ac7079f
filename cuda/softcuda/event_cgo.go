//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"github.com/kvgate/kvgate/cuda"
)

type softEvent struct {
	c   *softContext
	sim cuda.Event
}

func (c *softContext) fired(e cuda.Event) (bool, error) {
	m := [1]cuda.Mark{{Event: e}}
	err := c.sim.Poll(m[:])
	return m[0].State == cuda.MarkFired, err
}

const eventBlockingSync = 1

// Flags: blocking synchronisation, no timing, between processes.
func doEventCreate(out *C.CUevent, flags C.uint) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	if flags > 7 {
		return fail(cuda.ErrInvalidValue)
	}
	e, err := c.sim.NewEventWithOptions(cuda.EventOptions{BlockingSync: flags&eventBlockingSync != 0})
	if err != nil {
		return result(err)
	}
	*out = C.CUevent(register(&softEvent{c, e}))
	return 0
}

func doEventDestroyV2(h C.CUevent) C.CUresult {
	e, ok := lookup[*softEvent](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	unregister(uint64(h))
	return result(e.c.sim.DestroyEvent(e.sim))
}

func doEventRecord(h C.CUevent, stream C.CUstream) C.CUresult {
	e, ok := lookup[*softEvent](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	s, r := streamOf(stream)
	if s == nil {
		return r
	}
	if s.c != e.c {
		return fail(cuda.ErrInvalidHandle)
	}
	return s.submit(func(b *cuda.Batch, h cuda.Stream) { b.Record(h, e.sim) })
}

func doEventQuery(h C.CUevent) C.CUresult {
	e, ok := lookup[*softEvent](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	if r := e.c.safe(); r != 0 {
		return r
	}
	fired, err := e.c.fired(e.sim)
	if err == nil && !fired {
		return fail(cuda.ErrNotReady)
	}
	return result(err)
}

func doEventSynchronize(h C.CUevent) C.CUresult {
	e, ok := lookup[*softEvent](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	if r := e.c.safe(); r != 0 {
		return r
	}
	return result(e.c.sim.SyncEvent(bg, e.sim))
}
