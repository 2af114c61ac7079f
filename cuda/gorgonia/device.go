//go:build gorgonia

package gorgonia

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

// Device is the cuda interface over gorgonia.org/cu. It implements
// [cuda.Device].
type Device struct {
	dev  cu.Device
	ctx  cu.CUContext
	clk  clock.Clock
	info cuda.Info

	pageable bool // the device reaches pageable memory by itself

	copying sync.Mutex // held for a Read or Write
	copies  cu.Stream

	mu        sync.Mutex
	last      uint64
	streams   map[cuda.Stream]cu.Stream
	events    map[cuda.Event]cu.Event
	modules   map[cuda.Module]*module
	functions map[cuda.Function]*function
	memory    map[cuda.DevicePtr]bool

	calls  sync.WaitGroup
	closed atomic.Bool
	dead   atomic.Pointer[cuda.Error]
}

type module struct {
	mod   cu.Module
	ptx   *ptx.Module
	known map[string]cuda.Function
}

type function struct {
	fn     cu.Function
	params []ptx.Param
}

var _ cuda.Device = (*Device)(nil)

// Wrap returns the interface over a context, which the caller keeps alive and
// which Close leaves alone. It finds out about the device.
func Wrap(dev cu.Device, ctx cu.CUContext) (*Device, error) {
	d := &Device{dev: dev, ctx: ctx, clk: clock.Wall(), last: devices.Add(1) << 32,
		streams: map[cuda.Stream]cu.Stream{}, events: map[cuda.Event]cu.Event{}, modules: map[cuda.Module]*module{},
		functions: map[cuda.Function]*function{}, memory: map[cuda.DevicePtr]bool{}}
	return d, d.within("wrap context", d.inquire)
}

func (d *Device) inquire() (err error) {
	attribute := func(a cu.DeviceAttribute) int {
		v, e := d.dev.Attribute(a)
		err = errors.Join(err, e)
		return v
	}
	name, e1 := d.dev.Name()
	total, e2 := d.dev.TotalMem()
	var e3 error
	d.copies, e3 = cu.MakeStream(cu.NonBlocking)
	d.info = cuda.Info{
		Backend: "gorgonia", Name: name, Driver: cu.Version(), Memory: uint64(total),
		Capability: [2]int{attribute(cu.ComputeCapabilityMajor), attribute(cu.ComputeCapabilityMinor)},
		// The clock is in kHz and memory moves twice a cycle; the bus is in bits.
		Bandwidth:  uint64(attribute(cu.MemoryClockRate)) * 1000 * 2 * uint64(attribute(cu.GlobalMemoryBusWidth)) / 8,
		SMs:        attribute(cu.MultiprocessorCount),
		MaxGrid:    [3]uint32{uint32(attribute(cu.MaxGridDimX)), uint32(attribute(cu.MaxGridDimY)), uint32(attribute(cu.MaxGridDimZ))},
		MaxBlock:   [3]uint32{uint32(attribute(cu.MaxBlockDimX)), uint32(attribute(cu.MaxBlockDimY)), uint32(attribute(cu.MaxBlockDimZ))},
		MaxThreads: attribute(cu.MaxThreadsPerBlock),

		SharedMemory: uint32(attribute(cu.MaxSharedMemoryPerBlock)), SharedOptIn: uint32(attribute(sharedOptIn)),
		FlushesWrites: attribute(canFlushRemoteWrites) != 0,
	}
	d.info.ConcurrentManaged = attribute(cu.ConcurrentManagedAccess) != 0
	d.pageable = attribute(cu.PageableMemoryAccess) != 0
	least, greatest, e4 := cu.StreamPriorityRange()
	d.info.Priorities = [2]int{least, greatest}
	return errors.Join(err, e1, e2, e3, e4)
}

// within runs f on a thread whose current context is the device's, and puts
// back what was current.
func (d *Device) within(op string, f func() error) error {
	d.calls.Add(1)
	defer d.calls.Done()
	if d.closed.Load() {
		return fmt.Errorf("cuda/gorgonia: %s: %w", op, cuda.ErrClosed)
	}
	if e := d.dead.Load(); e != nil {
		return e
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.PushCurrentCtx(d.ctx); err != nil {
		return d.fail(op, err)
	}
	err := f()
	if _, e := cu.PopCurrentCtx(); err == nil {
		err = e
	}
	return d.fail(op, err)
}

// result returns the code in an error of gorgonia.org/cu's, whose type is not
// exported but is an int.
func result(err error) (cuda.Code, bool) {
	for err != nil && reflect.ValueOf(err).Kind() != reflect.Int {
		err = errors.Unwrap(err)
	}
	if err == nil {
		return 0, false
	}
	return cuda.Code(reflect.ValueOf(err).Int()), true
}

// fail makes an error of this module's of one of gorgonia.org/cu's.
func (d *Device) fail(op string, err error) error {
	code, ok := result(err)
	if !ok {
		return err
	}
	e := &cuda.Error{Code: code, Op: op}
	if e.Code.Sticky() {
		d.dead.CompareAndSwap(nil, e)
		return d.dead.Load()
	}
	return e
}

func refuse(c cuda.Code, op, format string, args ...any) error {
	return &cuda.Error{Code: c, Op: op, Detail: fmt.Sprintf(format, args...)}
}

// devices counts devices: each has handles of its own, from its number << 32 on.
var devices atomic.Uint64

func (d *Device) handle() uint64 {
	d.last++
	return d.last
}

// Info describes the device. gorgonia.org/cu can not tell a simulated one.
func (d *Device) Info() cuda.Info { return d.info }

// Clock returns the wall clock.
func (d *Device) Clock() clock.Clock { return d.clk }

// Alloc returns device memory.
func (d *Device) Alloc(size uint64, o cuda.AllocOptions) (p cuda.DevicePtr, err error) {
	const op = "allocate"
	err = d.within(op, func() error {
		if o.CostScale > 1 {
			return refuse(cuda.ErrInvalidValue, op, "cost scale of %d for %q: only simulated memory has one", o.CostScale, o.Name)
		}
		raw, err := cu.MemAlloc(int64(size))
		if err != nil {
			return err
		}
		p = Pointer(raw)
		d.mu.Lock()
		d.memory[p] = true
		d.mu.Unlock()
		return nil
	})
	return p, err
}

// Free frees device memory after the work that was submitted before it.
func (d *Device) Free(p cuda.DevicePtr) error {
	const op = "free"
	return d.within(op, func() error {
		d.mu.Lock()
		ok := d.memory[p]
		delete(d.memory, p)
		d.mu.Unlock()
		if !ok {
			return refuse(cuda.ErrInvalidValue, op, "%#x is no allocation of this device", uint64(p))
		}
		return cu.MemFree(cu.DevicePtr(p))
	})
}

// AllocPinned fails: gorgonia.org/cu has no pinned memory.
func (d *Device) AllocPinned(size uint64, o cuda.AllocOptions) (cuda.PinnedBuffer, error) {
	const op = "allocate pinned memory"
	return cuda.PinnedBuffer{}, d.within(op, func() error {
		if size == 0 {
			return refuse(cuda.ErrInvalidValue, op, "0 bytes for %q", o.Name)
		}
		return refuse(cuda.ErrNotSupported, op, "gorgonia.org/cu has no cuMemHostAlloc")
	})
}

// FreePinned refuses every buffer: there are none.
func (d *Device) FreePinned(b cuda.PinnedBuffer) error {
	return refuse(cuda.ErrInvalidValue, "free pinned memory", "%#x is no pinned memory of this device", uint64(b.Device))
}

// AllocRange returns the allocation that p lies in.
func (d *Device) AllocRange(p cuda.DevicePtr) (base cuda.DevicePtr, size uint64, err error) {
	err = d.within("find allocation", func() error {
		n, b, err := cu.DevicePtr(p).AddressRange()
		base, size = Pointer(b), uint64(n)
		return err
	})
	return base, size, err
}

// inside checks that n bytes at p lie in one allocation.
func inside(op string, p cuda.DevicePtr, n uint64) error {
	size, base, err := cu.DevicePtr(p).AddressRange()
	if off := uint64(p) - uint64(base); err != nil || off > uint64(size) || n > uint64(size)-off {
		return refuse(cuda.ErrInvalidValue, op, "%d bytes at %#x are not inside one allocation", n, uint64(p))
	}
	return nil
}

// Read copies from memory to dst, on a stream of its own.
func (d *Device) Read(dst []byte, src cuda.DevicePtr) error {
	const op = "read"
	return d.move(op, len(dst), src, func(n int64) error {
		return cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(dst)), cu.DevicePtr(src), n, d.copies)
	})
}

// Write copies src to memory, on a stream of its own.
func (d *Device) Write(dst cuda.DevicePtr, src []byte) error {
	const op = "write"
	return d.move(op, len(src), dst, func(n int64) error {
		return cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(unsafe.SliceData(src)), n, d.copies)
	})
}

// move waits for the copy, which may read or write Go memory until then.
func (d *Device) move(op string, n int, at cuda.DevicePtr, start func(n int64) error) error {
	return d.within(op, func() error {
		if n == 0 {
			return nil
		}
		if err := inside(op, at, uint64(n)); err != nil {
			return err
		}
		d.copying.Lock()
		defer d.copying.Unlock()
		if err := start(int64(n)); err != nil {
			return err
		}
		return d.copies.Synchronize()
	})
}

// NewStream returns a stream.
func (d *Device) NewStream(o cuda.StreamOptions) (h cuda.Stream, err error) {
	err = d.within("make stream", func() error {
		priority := max(d.info.Priorities[1], min(o.Priority, d.info.Priorities[0]))
		if o.HighPriority {
			priority = d.info.Priorities[1]
		}
		flags := cu.NonBlocking
		if o.Blocking {
			flags = cu.DefaultStream
		}
		s, err := cu.MakeStreamWithPriority(priority, flags)
		if err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		h = cuda.Stream(d.handle())
		d.streams[h] = s
		return nil
	})
	return h, err
}

// take takes a handle out of its map.
func take[K comparable, V any](d *Device, m map[K]V, h K) (V, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := m[h]
	delete(m, h)
	return v, ok
}

func get[K comparable, V any](d *Device, m map[K]V, h K) (V, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := m[h]
	return v, ok
}

func badHandle(op, what string, h uint64) error {
	return refuse(cuda.ErrInvalidHandle, op, "%s %#x", what, h)
}

// DestroyStream makes the handle invalid. Work in the stream still runs.
func (d *Device) DestroyStream(h cuda.Stream) error {
	const op = "destroy stream"
	return d.within(op, func() error {
		s, ok := take(d, d.streams, h)
		if !ok {
			return badHandle(op, "stream", uint64(h))
		}
		if s == cu.NoStream {
			return nil
		}
		return s.Destroy()
	})
}

// NewEvent returns an event without timing.
func (d *Device) NewEvent() (cuda.Event, error) { return d.NewEventWithOptions(cuda.EventOptions{}) }

// NewEventWithOptions returns an event without timing.
func (d *Device) NewEventWithOptions(o cuda.EventOptions) (h cuda.Event, err error) {
	err = d.within("make event", func() error {
		flags := cu.DisableTiming
		if o.BlockingSync {
			flags |= cu.BlockingSyncEvent
		}
		e, err := cu.MakeEvent(flags)
		if err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		h = cuda.Event(d.handle())
		d.events[h] = e
		return nil
	})
	return h, err
}

// DestroyEvent makes the handle invalid.
func (d *Device) DestroyEvent(h cuda.Event) error {
	const op = "destroy event"
	return d.within(op, func() error {
		e, ok := take(d, d.events, h)
		if !ok {
			return badHandle(op, "event", uint64(h))
		}
		return cu.DestroyEvent(&e)
	})
}

// SyncStream blocks until all work submitted to h has run.
func (d *Device) SyncStream(ctx context.Context, h cuda.Stream) error {
	const op = "synchronise stream"
	e, err := d.NewEvent()
	if err != nil {
		return err
	}
	defer func() { _ = d.DestroyEvent(e) }() // the wait's own error matters
	if err := d.within(op, func() error {
		s, ok := get(d, d.streams, h)
		if !ok {
			return badHandle(op, "stream", uint64(h))
		}
		x, _ := get(d, d.events, e)
		return x.Record(s)
	}); err != nil {
		return err
	}
	return d.poll(ctx, e)
}

// poll waits for an event in such a way that the wait can be cancelled.
func (d *Device) poll(ctx context.Context, e cuda.Event) error {
	for pause := 5 * time.Microsecond; ; pause = min(2*pause, 200*time.Microsecond) {
		m := [1]cuda.Mark{{Event: e}}
		if err := d.Poll(m[:]); err != nil || m[0].State == cuda.MarkFired {
			return err
		}
		if err := d.clk.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Sync blocks until all work in the context has run. It can not be cancelled.
func (d *Device) Sync(context.Context) error {
	return d.within("synchronise device", cu.Synchronize)
}

// Close waits for the work in the device's streams and destroys what is left of
// what it made.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.calls.Wait()
	if d.dead.Load() != nil {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.PushCurrentCtx(d.ctx); err != nil {
		return d.fail("close device", err)
	}
	var errs []error
	check := func(err error) { errs = append(errs, d.fail("close device", err)) }
	for _, s := range d.streams {
		check(s.Synchronize())
		if s != cu.NoStream {
			check(s.Destroy())
		}
	}
	check(d.copies.Destroy())
	for _, e := range d.events {
		check(cu.DestroyEvent(&e))
	}
	for p := range d.memory {
		check(cu.MemFree(cu.DevicePtr(p)))
	}
	for _, m := range d.modules {
		check(m.mod.Unload())
	}
	_, err := cu.PopCurrentCtx()
	check(err)
	if d.dead.Load() != nil {
		return nil // found out by closing it: everything has gone with the context
	}
	return errors.Join(errs...)
}
