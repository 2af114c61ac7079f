//go:build cgo && linux

package driver

/*
#include "graph.h"
#include "hostmemory.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/abi"
)

// Device is a GPU. It implements [cuda.Device].
type Device struct {
	c        *C.kvg_device
	address  C.uintptr_t // of c
	number   uint64      // in handles
	lib      Library
	clk      clock.Clock
	adopted  bool
	context  Context
	device   C.int
	info     cuda.Info
	missing  []abi.Symbol
	staging  staging
	rdma     cuda.RDMA
	pageable bool                    // the device reaches pageable memory by itself
	watching atomic.Bool             // Watch was called
	watched  atomic.Pointer[Watched] // once it has begun

	calls  atomic.Int64 // under way
	closed atomic.Bool
	gone   atomic.Bool // closed, and nothing is under way any more
	dead   atomic.Pointer[cuda.Error]

	mu      sync.Mutex // never held across a crossing
	handles [C.KVG_KINDS]handles
	modules map[cuda.Module]map[string]cuda.Function
	memory  map[cuda.DevicePtr]string // names by address
	pinned  map[cuda.DevicePtr]cuda.PinnedBuffer
	managed map[cuda.DevicePtr]cuda.ManagedBuffer
	// registered is the part of pinned that is somebody else's memory.
	registered map[cuda.DevicePtr]bool
	opened     map[cuda.DevicePtr]int // of other processes, and how often
	spare      []C.uint64_t           // events for waits
	waits      map[uint64]*eventWaits // by the driver's handle of an event
}

var _ cuda.Device = (*Device)(nil)

// Info describes the device as its driver does.
func (d *Device) Info() cuda.Info { return d.info }

// Clock returns the clock of [Options].
func (d *Device) Clock() clock.Clock { return d.clk }

// Library returns the path of the library that was loaded.
func (d *Device) Library() string { return d.lib.Path() }

// Context returns the context that the device works in.
func (d *Device) Context() Context { return d.context }

// enter begins a call, which keeps Close waiting until leave.
func (d *Device) enter(op string) error {
	d.calls.Add(1)
	if d.closed.Load() {
		d.leave()
		return fmt.Errorf("cuda/driver: %s: %w", op, cuda.ErrClosed)
	}
	if e := d.dead.Load(); e != nil {
		d.leave()
		return e
	}
	return nil
}

func (d *Device) leave() {
	if d.calls.Add(-1) == 0 && d.closed.Load() {
		d.clk.Notify()
	}
}

// fail makes an error of a result, and remembers a sticky one: from then on it
// is what every call returns.
func (d *Device) fail(op string, r C.kvg_result, detail string) error {
	e := &cuda.Error{Code: cuda.Code(r.code), Op: op, Detail: detail}
	if x := reasons[r.why]; x.code != cuda.Success {
		e.Code = x.code
		e.Detail = x.text
		if detail != "" {
			e.Detail = detail + ": " + x.text
		}
	}
	if r.why == C.KVG_MISSING {
		e.Detail += " (" + d.lib.Path() + ")"
	}
	if r.why == C.KVG_CONTEXT {
		e.Detail = "make context current: " + e.Detail
	}
	if e.Code.Sticky() {
		d.die(e)
		return d.dead.Load()
	}
	return e
}

// lacking is fail for a call that needs symbols which the driver may lack: where
// that is why it failed, the error names those that are missing.
func (d *Device) lacking(op string, r C.kvg_result, detail string, symbols ...string) error {
	if r.why == C.KVG_MISSING {
		detail = strings.Join(d.lacks(symbols), ", ")
	}
	return d.fail(op, r, detail)
}

// lacks returns those of the symbols that the driver does not have.
func (d *Device) lacks(symbols []string) (missing []string) {
	for _, m := range d.missing {
		if slices.Contains(symbols, m.Name) {
			missing = append(missing, m.Name)
		}
	}
	return missing
}

// needs fails where the driver lacks any of the symbols.
func (d *Device) needs(op string, symbols ...string) error {
	if len(d.lacks(symbols)) == 0 {
		return nil
	}
	return d.lacking(op, C.kvg_result{why: C.KVG_MISSING}, "", symbols...)
}

// die makes e what every call returns, unless the device is dead already.
func (d *Device) die(e *cuda.Error) {
	d.dead.CompareAndSwap(nil, e)
	if w := d.watched.Load(); w != nil {
		w.touch()
	}
	d.clk.Notify()
}

// reasons say why a call was refused on this side of the driver.
var reasons = map[C.int32_t]struct {
	code cuda.Code
	text string
}{
	C.KVG_MISSING:          {cuda.ErrNotSupported, "the driver lacks the symbol"},
	C.KVG_BAD_STREAM_INDEX: {cuda.ErrInvalidValue, "no such stream in the batch"},
	C.KVG_BAD_STREAM:       {cuda.ErrInvalidHandle, "no such stream"},
	C.KVG_BAD_EVENT:        {cuda.ErrInvalidHandle, "no such event"},
	C.KVG_BAD_FUNCTION:     {cuda.ErrInvalidHandle, "no such function"},
	C.KVG_BAD_ARGS:         {cuda.ErrInvalidValue, "size of the arguments is not that of the kernel's parameters"},
	C.KVG_BAD_ARENA:        {cuda.ErrInvalidValue, "arguments outside of the arena, or more than a kernel takes"},
	C.KVG_BAD_OP:           {cuda.ErrInvalidValue, "no such command"},
	C.KVG_BAD_SOURCE:       {cuda.ErrInvalidValue, "not all of the source is memory of the driver's"},
	C.KVG_BAD_DESTINATION:  {cuda.ErrInvalidValue, "not all of the destination is memory of the driver's"},
	C.KVG_BAD_VALUE:        {cuda.ErrInvalidValue, "value does not fit"},
	C.KVG_BAD_ELEMENT:      {cuda.ErrInvalidValue, "no such element size"},
	C.KVG_CAPTURING:        {cuda.ErrStreamCapturing, "a stream is capturing"},
	C.KVG_BAD_GRAPH:        {cuda.ErrInvalidHandle, "no such executable graph"},
	C.KVG_MISALIGNED:       {cuda.ErrInvalidValue, "address is not aligned to the element"},
	C.KVG_BAD_WORD:         {cuda.ErrInvalidValue, "no aligned word of pinned memory"},
	C.KVG_NOT_PAGEABLE:     {cuda.ErrInvalidValue, "the host's side is memory that the driver knows: it is not pageable"},
	C.KVG_EMPTY_MARK:       {cuda.ErrInvalidValue, "the mark asks for nothing"},
	C.KVG_BAD_MEMORY:       {cuda.ErrInvalidValue, "not all of it is memory of the driver's"},
	C.KVG_BAD_HOST_FN:      {cuda.ErrInvalidHandle, "no such host function"},
	C.KVG_BAD_WORD_FLAGS:   {cuda.ErrInvalidValue, "no such flags of a word"},
	C.KVG_NO_FLUSH:         {cuda.ErrNotSupported, "the device does not flush writes from outside"},
}

// Close waits for calls and for the work in the device's own streams, destroys
// what is left, and gives back the primary context. An adopted context is left
// as it is, but for what this device has made in it. A second Close does
// nothing.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return d.clk.WaitUntil(context.Background(), clock.Func("the end of another Close", d.gone.Load), clock.Never)
	}
	d.clk.Notify()
	quiet := clock.Func("the end of calls that are under way", func() bool { return d.calls.Load() == 0 })
	if err := d.clk.WaitUntil(context.Background(), quiet, clock.Never); err != nil {
		return err
	}
	err := d.destroy()
	C.kvg_delete(d.c)
	d.gone.Store(true)
	d.clk.Notify()
	return err
}

// destroy ends all that the device has made. In a dead context everything went
// with it.
func (d *Device) destroy() error {
	var errs []error
	check := func(op string, r C.kvg_result) {
		if r.why != C.KVG_OK {
			errs = append(errs, d.fail(op, r, "close device"))
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead.Load() == nil {
		for _, raw := range d.handles[C.KVG_STREAM].own() {
			C.kvg_abandon_capture(d.c, raw)
		}
		for _, raw := range d.handles[C.KVG_STREAM].own() {
			check("synchronise stream", C.kvg_sync_stream(d.c, raw))
		}
	}
	if w := d.watched.Load(); w != nil {
		check("stop watching", w.stop())
	}
	if d.dead.Load() == nil {
		for _, raw := range d.handles[C.KVG_GRAPH_EXEC].own() {
			check("destroy executable graph", C.kvg_free_exec(d.c, raw))
		}
		for _, raw := range d.handles[C.KVG_GRAPH].own() {
			check("destroy graph", C.kvg_free_graph(d.c, raw))
		}
		for _, raw := range d.handles[C.KVG_STREAM].own() {
			check("destroy stream", C.kvg_free_stream(d.c, raw))
		}
		for _, raw := range append(d.handles[C.KVG_EVENT].own(), d.spare...) {
			check("destroy event", C.kvg_free_event(d.c, raw))
		}
		d.closeOpened(check)
		for _, g := range d.handles[C.KVG_HOST_FN].own() {
			C.kvg_signal_drop(signalOf(g))
		}
		for p := range d.memory {
			check("free", C.kvg_free(d.c, C.uint64_t(p)))
		}
		for p, b := range d.pinned {
			if d.registered[p] {
				check("unregister host memory", C.kvg_unregister(d.c, hostPointer(b)))
			} else {
				check("free pinned memory", C.kvg_free_pinned(d.c, hostPointer(b)))
			}
		}
		for p := range d.managed {
			check("free managed memory", C.kvg_free(d.c, C.uint64_t(p)))
		}
		for _, raw := range d.handles[C.KVG_MODULE].own() {
			check("unload module", C.kvg_unload(d.c, raw))
		}
		check("free staging memory", d.freeStaging())
	}
	if !d.adopted {
		if code := cuda.Code(C.kvg_release(&d.c.t, d.device)); code != cuda.Success && d.dead.Load() == nil {
			errs = append(errs, &cuda.Error{Code: code, Op: "release primary context"})
		}
	}
	if d.dead.Load() != nil {
		return nil // that is known by now
	}
	return errors.Join(errs...)
}
