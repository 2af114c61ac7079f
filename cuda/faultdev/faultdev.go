// Package faultdev makes a device fail where a test wants it to. It wraps any
// back end, so the code under test runs as it is.
package faultdev

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// Call is one thing that is about to be done.
type Call struct {
	// Method is the name of a method of [cuda.Device] or an optional interface.
	Method string
	// Command is the one that Submit has reached, at Index of its batch; nil
	// for other methods. It must not be changed.
	Command *cuda.Command
	Index   int
	// Op is the command's, OpNone for other methods.
	Op cuda.Op
	// Stream is where the command goes.
	Stream cuda.Stream
	// Count says how many of this Method and Op there have been, this one
	// included.
	Count int
}

// Wrap returns d with faults: fail is asked before each call, and for Submit
// before each command, and its error is returned instead of making the call.
// The commands before a failing one get in, and the error of Submit is the
// *[cuda.SubmitError] that says so. After a sticky error the device that Wrap
// returned is dead: calls return that error, though the one below lives on and
// does not wake those that already wait in it.
//
// fail is asked by one goroutine at a time and must not use the device. Info,
// Clock, SignalCount and Close never fail. The result implements [cuda.Watcher] and
// [cuda.RDMADevice] if d does, and other optional interfaces always: what d lacks
// is [cuda.ErrNotSupported].
func Wrap(d cuda.Device, fail func(Call) error) cuda.Device {
	f := &device{d: d, fail: fail, counts: map[key]int{}}
	w, watches := d.(cuda.Watcher)
	r, rdma := d.(cuda.RDMADevice)
	switch {
	case watches && rdma:
		return struct {
			*device
			watcher
			nic
		}{f, watcher{f, w}, nic{f, r}}
	case watches:
		return struct {
			*device
			watcher
		}{f, watcher{f, w}}
	case rdma:
		return struct {
			*device
			nic
		}{f, nic{f, r}}
	}
	return f
}

type key struct {
	method string
	op     cuda.Op
}

type device struct {
	d      cuda.Device
	fail   func(Call) error
	deaths atomic.Uint64

	mu     sync.Mutex // never held across a call of d
	counts map[key]int
	dead   error
}

type watcher struct {
	f *device
	w cuda.Watcher
}

// Activity implements [cuda.Watcher].
func (w watcher) Activity() uint64 { return w.w.Activity() + w.f.deaths.Load() }

// nic implements [cuda.RDMADevice].
type nic struct {
	f *device
	r cuda.RDMADevice
}

func (n nic) RDMA() cuda.RDMA { return n.r.RDMA() }

func (n nic) PrepareRDMA(p cuda.DevicePtr, size uint64) (cuda.MemorySync, error) {
	if err := n.f.method("PrepareRDMA"); err != nil {
		return 0, err
	}
	return n.r.PrepareRDMA(p, size)
}

func (n nic) FlushRDMA() error {
	if err := n.f.method("FlushRDMA"); err != nil {
		return err
	}
	return n.r.FlushRDMA()
}

func (f *device) ask(c Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead != nil {
		return f.dead
	}
	k := key{c.Method, c.Op}
	f.counts[k]++
	c.Count = f.counts[k]
	err := f.fail(c)
	if cuda.Sticky(err) {
		f.dead = err
		f.deaths.Add(1)
	}
	return err
}

func (f *device) method(name string) error {
	err := f.ask(Call{Method: name})
	if cuda.Sticky(err) {
		f.d.Clock().Notify()
	}
	return err
}

func (f *device) Submit(b *cuda.Batch) error {
	var commands []cuda.Command
	if b != nil {
		commands = b.Commands()
	}
	if len(commands) == 0 {
		if err := f.method("Submit"); err != nil {
			return err
		}
		return f.d.Submit(b)
	}
	for i := range commands {
		c := &commands[i]
		call := Call{Method: "Submit", Op: c.Op, Index: i, Command: c}
		if int(c.Stream) < len(b.Streams()) {
			call.Stream = b.Streams()[c.Stream]
		}
		err := f.ask(call)
		if err == nil {
			continue
		}
		before := b.Part(0, i)
		if i > 0 {
			if err := f.d.Submit(&before); err != nil {
				return err // an earlier one failed by itself
			}
		}
		if cuda.Sticky(err) {
			f.d.Clock().Notify()
		}
		e := &cuda.SubmitError{Index: i, Op: c.Op, Done: make([]int, len(b.Streams())), Err: err}
		for _, c := range commands[:i] {
			e.Done[c.Stream]++
		}
		return e
	}
	return f.d.Submit(b)
}

func (f *device) Info() cuda.Info    { return f.d.Info() }
func (f *device) Clock() clock.Clock { return f.d.Clock() }
func (f *device) Close() error       { return f.d.Close() }

func (f *device) Alloc(size uint64, o cuda.AllocOptions) (cuda.DevicePtr, error) {
	if err := f.method("Alloc"); err != nil {
		return 0, err
	}
	return f.d.Alloc(size, o)
}

func (f *device) Free(p cuda.DevicePtr) error {
	if err := f.method("Free"); err != nil {
		return err
	}
	return f.d.Free(p)
}

func (f *device) AllocPinned(size uint64, o cuda.AllocOptions) (cuda.PinnedBuffer, error) {
	if err := f.method("AllocPinned"); err != nil {
		return cuda.PinnedBuffer{}, err
	}
	return f.d.AllocPinned(size, o)
}

func (f *device) FreePinned(b cuda.PinnedBuffer) error {
	if err := f.method("FreePinned"); err != nil {
		return err
	}
	return f.d.FreePinned(b)
}

func (f *device) AllocRange(p cuda.DevicePtr) (cuda.DevicePtr, uint64, error) {
	if err := f.method("AllocRange"); err != nil {
		return 0, 0, err
	}
	return f.d.AllocRange(p)
}

func (f *device) Read(dst []byte, src cuda.DevicePtr) error {
	if err := f.method("Read"); err != nil {
		return err
	}
	return f.d.Read(dst, src)
}

func (f *device) Write(dst cuda.DevicePtr, src []byte) error {
	if err := f.method("Write"); err != nil {
		return err
	}
	return f.d.Write(dst, src)
}

func (f *device) LoadModule(image []byte) (cuda.Module, error) {
	if err := f.method("LoadModule"); err != nil {
		return 0, err
	}
	return f.d.LoadModule(image)
}

func (f *device) UnloadModule(m cuda.Module) error {
	if err := f.method("UnloadModule"); err != nil {
		return err
	}
	return f.d.UnloadModule(m)
}

func (f *device) Function(m cuda.Module, name string) (cuda.Function, error) {
	if err := f.method("Function"); err != nil {
		return 0, err
	}
	return f.d.Function(m, name)
}

func (f *device) NewStream(o cuda.StreamOptions) (cuda.Stream, error) {
	if err := f.method("NewStream"); err != nil {
		return 0, err
	}
	return f.d.NewStream(o)
}

func (f *device) DestroyStream(s cuda.Stream) error {
	if err := f.method("DestroyStream"); err != nil {
		return err
	}
	return f.d.DestroyStream(s)
}

func (f *device) NewEvent() (cuda.Event, error) {
	if err := f.method("NewEvent"); err != nil {
		return 0, err
	}
	return f.d.NewEvent()
}

func (f *device) DestroyEvent(e cuda.Event) error {
	if err := f.method("DestroyEvent"); err != nil {
		return err
	}
	return f.d.DestroyEvent(e)
}

func (f *device) Poll(marks []cuda.Mark) error {
	if err := f.method("Poll"); err != nil {
		return err
	}
	return f.d.Poll(marks)
}

func (f *device) SyncStream(ctx context.Context, s cuda.Stream) error {
	if err := f.method("SyncStream"); err != nil {
		return err
	}
	return f.d.SyncStream(ctx, s)
}

func (f *device) Sync(ctx context.Context) error {
	if err := f.method("Sync"); err != nil {
		return err
	}
	return f.d.Sync(ctx)
}
