//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/clock"
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
	if r := C.kvg_new_event(d.c, &raw); r.why != C.KVG_OK {
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

// Sync blocks until all work in the device's context has run, that of others
// included. When ctx is done first, a goroutine goes on waiting in its stead,
// and Close waits for that.
func (d *Device) Sync(ctx context.Context) error {
	const op = "synchronise device"
	if err := d.enter(op); err != nil {
		return err
	}
	var done atomic.Bool
	var err error
	d.clk.Go("synchronise device", func() {
		defer d.leave()
		if r := C.kvg_sync(d.c); r.why != C.KVG_OK {
			err = d.fail(op, r, "")
		}
		done.Store(true)
		d.clk.Notify()
	})
	if werr := d.clk.WaitUntil(ctx, clock.Func("the end of all work", done.Load), clock.Never); werr != nil {
		return werr
	}
	return err
}
