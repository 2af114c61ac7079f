//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// A wait asks after its event again after a pause, which doubles.
const (
	minPause = 5 * time.Microsecond
	maxPause = 200 * time.Microsecond
)

// takeEvent takes an event for a wait.
func (d *Device) takeEvent(op string) (C.uint64_t, error) {
	d.mu.Lock()
	if n := len(d.spare); n > 0 {
		e := d.spare[n-1]
		d.spare = d.spare[:n-1]
		d.mu.Unlock()
		return e, nil
	}
	d.mu.Unlock()
	var raw C.uint64_t
	if r := C.kvg_new_event(d.c, 0, &raw); r.why != C.KVG_OK {
		return 0, d.fail(op, r, "")
	}
	return raw, nil
}

func (d *Device) giveEvent(e C.uint64_t) {
	d.mu.Lock()
	d.spare = append(d.spare, e)
	d.mu.Unlock()
}

// SyncStream blocks until all work submitted to s has run. It records an event
// and asks after that, so it can be cancelled, and blocks no thread.
func (d *Device) SyncStream(ctx context.Context, s cuda.Stream) error {
	const op = "synchronise stream"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	if _, ok := d.find(C.KVG_STREAM, uint64(s)); !ok {
		return badHandle(op, "stream", uint64(s))
	}
	e, err := d.takeEvent(op)
	if err != nil {
		return err
	}
	defer d.giveEvent(e)
	if r := C.kvg_record(d.c, e, C.uint64_t(s)); r.why != C.KVG_OK {
		return d.fail(op, r, fmt.Sprintf("stream %#x", uint64(s)))
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		r := C.kvg_query(d.c, e)
		if r.why == C.KVG_OK {
			return nil
		}
		if r.why != C.KVG_DRIVER || cuda.Code(r.code) != cuda.ErrNotReady {
			return d.fail(op, r, fmt.Sprintf("stream %#x", uint64(s)))
		}
		if d.closed.Load() {
			return fmt.Errorf("cuda/driver: %s: %w", op, cuda.ErrClosed)
		}
		if err := d.clk.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// eventWaits are the calls that wait for an event.
type eventWaits struct {
	n         int
	destroyed bool // the last of them frees it
}

// holdEvent finds an event and keeps it until releaseEvent.
func (d *Device) holdEvent(handle uint64) (entry, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.handles[C.KVG_EVENT].find(handle)
	if !ok || e.foreign {
		return e, ok
	}
	if d.waits == nil {
		d.waits = map[uint64]*eventWaits{}
	}
	if d.waits[e.raw] == nil {
		d.waits[e.raw] = &eventWaits{}
	}
	d.waits[e.raw].n++
	return e, true
}

func (d *Device) releaseEvent(e entry) {
	if e.foreign {
		return
	}
	d.mu.Lock()
	w := d.waits[e.raw]
	w.n--
	if w.n == 0 {
		delete(d.waits, e.raw)
	}
	free := w.n == 0 && w.destroyed
	d.mu.Unlock()
	if free { // DestroyEvent has returned; what is wrong with the device others find
		C.kvg_free_event(d.c, C.uint64_t(e.raw))
	}
}

// SyncEvent blocks until the newest record of ev has fired. Where the event was
// made with BlockingSync it blocks a thread of the system's, else it spins. In the
// first case, when ctx is done first, a goroutine goes on waiting in its stead,
// and Close waits for that; an event that is destroyed meanwhile is kept as long.
func (d *Device) SyncEvent(ctx context.Context, ev cuda.Event) error {
	const op = "synchronise event"
	if err := d.enter(op); err != nil {
		return err
	}
	e, ok := d.holdEvent(uint64(ev))
	if !ok {
		d.leave()
		return badHandle(op, "event", uint64(ev))
	}
	if e.sleep {
		return d.blocking(ctx, op, func() C.kvg_result {
			defer d.releaseEvent(e)
			return C.kvg_sync_event(d.c, C.uint64_t(e.raw))
		})
	}
	defer d.leave()
	defer d.releaseEvent(e)
	for {
		r := C.kvg_query(d.c, C.uint64_t(e.raw))
		switch {
		case r.why == C.KVG_OK:
			return nil
		case r.why != C.KVG_DRIVER || cuda.Code(r.code) != cuda.ErrNotReady:
			return d.failEvent(op, r, ev, fmt.Sprintf("event %#x", uint64(ev)))
		case d.closed.Load():
			return fmt.Errorf("cuda/driver: %s: %w", op, cuda.ErrClosed)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if dead := d.dead.Load(); dead != nil {
			return dead
		}
		runtime.Gosched()
	}
}

// Sync blocks until all work in the device's context has run, that of others
// included. When ctx is done first, a goroutine goes on waiting in its stead,
// and Close waits for that.
func (d *Device) Sync(ctx context.Context) error {
	const op = "synchronise device"
	if err := d.enter(op); err != nil {
		return err
	}
	return d.blocking(ctx, op, func() C.kvg_result { return C.kvg_sync(d.c) })
}

// blocking makes a call that blocks on a goroutine of its own, and then leaves
// the device.
func (d *Device) blocking(ctx context.Context, op string, call func() C.kvg_result) error {
	var done atomic.Bool
	var err error
	d.clk.Go(op, func() {
		defer d.leave()
		if r := call(); r.why != C.KVG_OK {
			err = d.fail(op, r, "")
		}
		done.Store(true)
		d.clk.Notify()
	})
	if werr := d.clk.WaitUntil(ctx, clock.Func("the end of: "+op, done.Load), clock.Never); werr != nil {
		return werr
	}
	return err
}
