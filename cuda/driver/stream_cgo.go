//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda"
)

// CUDA's names for its default streams: CU_STREAM_LEGACY and
// CU_STREAM_PER_THREAD.
const (
	rawLegacy    RawStream = 1
	rawPerThread RawStream = 2
)

const streamNonBlocking = 1 // CU_STREAM_NON_BLOCKING

// NewStream returns a stream.
func (d *Device) NewStream(o cuda.StreamOptions) (cuda.Stream, error) {
	const op = "make stream"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	priority := max(d.info.Priorities[1], min(o.Priority, d.info.Priorities[0]))
	if o.HighPriority {
		priority = d.info.Priorities[1]
	}
	flags := C.uint(streamNonBlocking)
	if o.Blocking {
		flags = 0
	}
	var raw C.uint64_t
	if r := C.kvg_new_stream(d.c, flags, C.int(priority), &raw); r.why != C.KVG_OK {
		return 0, d.fail(op, r, o.Name)
	}
	h, err := d.add(C.KVG_STREAM, uint64(raw), false, 0)
	if err != nil {
		C.kvg_free_stream(d.c, raw)
		return 0, err
	}
	return cuda.Stream(h), nil
}

// AdoptStream takes a stream of the device's context that someone else made
// and keeps owning. What it returns is for [cuda.Device] and for stream.Adopt;
// destroying that leaves the stream alone. Before each use it is checked that
// the stream is not capturing.
//
// The legacy default stream (0 or CU_STREAM_LEGACY) is that of the device's
// context: see [cuda.Device.LegacyStream]. The per-thread one
// (CU_STREAM_PER_THREAD) is refused: it is another for each thread that a
// goroutine meets. A stream of another context is [cuda.ErrInvalidContext].
// Anything that is no stream at all may crash the driver.
func (d *Device) AdoptStream(s RawStream) (cuda.Stream, error) {
	const op = "adopt stream"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	switch s {
	case 0, rawLegacy:
		h, err := d.add(C.KVG_STREAM, uint64(rawLegacy), true, 0)
		return cuda.Stream(h), err
	case rawPerThread:
		return 0, &cuda.Error{Code: cuda.ErrInvalidHandle, Op: op, Detail: "the per-thread default stream"}
	}
	var context C.uint64_t
	if r := C.kvg_stream_context(d.c, C.uint64_t(s), &context); r.why != C.KVG_OK {
		return 0, d.fail(op, r, fmt.Sprintf("%#x", uint64(s)))
	}
	if Context(context) != d.context {
		return 0, &cuda.Error{Code: cuda.ErrInvalidContext, Op: op,
			Detail: fmt.Sprintf("stream %#x is of context %#x, the device's is %#x", uint64(s), uint64(context), uint64(d.context))}
	}
	h, err := d.add(C.KVG_STREAM, uint64(s), true, 0)
	return cuda.Stream(h), err
}

// LegacyStream adopts the legacy default stream of the device's context.
func (d *Device) LegacyStream() (cuda.Stream, error) { return d.AdoptStream(rawLegacy) }

// StreamPriority returns the priority of a stream.
func (d *Device) StreamPriority(s cuda.Stream) (int, error) {
	const op = "priority of stream"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	e, ok := d.find(C.KVG_STREAM, uint64(s))
	if !ok {
		return 0, badHandle(op, "stream", uint64(s))
	}
	var priority C.int
	if r := C.kvg_stream_priority(d.c, C.uint64_t(e.raw), &priority); r.why != C.KVG_OK {
		return 0, d.fail(op, r, "cuStreamGetPriority")
	}
	return int(priority), nil
}

// DestroyStream makes the handle invalid. Work in the stream still runs.
func (d *Device) DestroyStream(s cuda.Stream) error {
	const op = "destroy stream"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	return d.end(op, C.KVG_STREAM, "stream", uint64(s), "", func(raw C.uint64_t) C.kvg_result {
		return C.kvg_free_stream(d.c, raw)
	})
}

// NewEvent returns an event without timing, which has not been recorded.
func (d *Device) NewEvent() (cuda.Event, error) { return d.NewEventWithOptions(cuda.EventOptions{}) }

// NewEventWithOptions returns an event without timing, which has not been
// recorded.
func (d *Device) NewEventWithOptions(o cuda.EventOptions) (cuda.Event, error) {
	const op = "make event"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	sleep := C.int(0)
	if o.BlockingSync {
		sleep = 1
	}
	var raw C.uint64_t
	if r := C.kvg_new_event(d.c, sleep, &raw); r.why != C.KVG_OK {
		return 0, d.fail(op, r, "")
	}
	h, err := d.add(C.KVG_EVENT, uint64(raw), false, 0)
	if err != nil {
		C.kvg_free_event(d.c, raw)
		return 0, err
	}
	d.mu.Lock()
	d.handles[C.KVG_EVENT].entries[index(uint64(h))].sleep = o.BlockingSync
	d.mu.Unlock()
	return cuda.Event(h), nil
}

// AdoptEvent takes an event that someone else made and keeps owning, to be
// waited for or asked after. Anything that is no event may crash the driver.
func (d *Device) AdoptEvent(e RawEvent) (cuda.Event, error) {
	const op = "adopt event"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	if e == 0 {
		return 0, badHandle(op, "event", 0)
	}
	h, err := d.add(C.KVG_EVENT, uint64(e), true, 0)
	return cuda.Event(h), err
}

// DestroyEvent makes the handle invalid. Records and waits that are in streams
// keep their meaning, and [Device.SyncEvent] ends as it would have.
func (d *Device) DestroyEvent(ev cuda.Event) error {
	const op = "destroy event"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	d.mu.Lock()
	e, ok := d.takeLocked(C.KVG_EVENT, uint64(ev))
	w := d.waits[e.raw]
	held := ok && !e.foreign && w != nil
	if held {
		w.destroyed = true
	}
	d.mu.Unlock()
	if !ok {
		return badHandle(op, "event", uint64(ev))
	}
	if e.foreign || held {
		return nil
	}
	if r := C.kvg_free_event(d.c, C.uint64_t(e.raw)); r.why != C.KVG_OK {
		return d.fail(op, r, "")
	}
	return nil
}
