//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// Watched is a device that tells of movement without a crossing. It implements
// [cuda.Watcher]; everything else is the device's.
type Watched struct {
	*Device
	wake    *C.kvg_wake
	counter *uint64           // C's
	fell    *uint32           // C's: a word went backwards, 1 + which
	words   cuda.PinnedBuffer // of WakeWord
	told    *os.File          // readable when something moved
	ended   atomic.Bool       // the goroutine that reads it
	gone    atomic.Uint64     // the last activity, once the device is closed
}

var (
	_ cuda.Device  = (*Watched)(nil)
	_ cuda.Watcher = (*Watched)(nil)
)

// Watch starts telling of marks that are recorded from now on, and returns the
// device with [cuda.Watcher]. It can be called once; Close ends it. A source
// that the driver lacks is [cuda.ErrNotSupported].
//
// Threads of the driver move the counter that [Watched.Activity] returns, and
// wake those who wait on the device's clock. A mark behind which the source
// could not be put counts as movement at once: ask again after a while, as
// package event does.
func (d *Device) Watch(source Wake) (*Watched, error) {
	const op = "watch"
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.leave()
	if source < WakeHelper || source > WakeWord {
		return nil, &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: source.String()}
	}
	w := &Watched{Device: d}
	if !d.watching.CompareAndSwap(false, true) {
		return nil, &cuda.Error{Code: cuda.ErrIllegalState, Op: op, Detail: "the device is watched already"}
	}
	if err := w.start(source); err != nil {
		d.watching.Store(false)
		return nil, err
	}
	d.watched.Store(w)
	if d.dead.Load() != nil { // whoever found it so may have seen no watcher
		w.touch()
	}
	return w, nil
}

func (w *Watched) start(source Wake) error {
	const op = "watch"
	d := w.Device
	if source == WakeWord {
		var err error
		if w.words, err = d.AllocPinned(4*C.KVG_WORDS, cuda.AllocOptions{Name: "words of marks"}); err != nil {
			return err
		}
	}
	r := C.kvg_watch(d.c, C.int(source), (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(w.words.Host))), C.uint64_t(w.words.Device))
	if r.why != C.KVG_OK {
		symbol := map[Wake]string{WakeHostFunc: "cuLaunchHostFunc", WakeWord: "cuStreamWriteValue32_v2"}[source]
		err := d.fail(op, r, symbol)
		if source == WakeWord {
			err = errors.Join(err, d.FreePinned(w.words))
		}
		return err
	}
	w.wake = d.c.wake
	w.counter = (*uint64)(unsafe.Pointer(C.kvg_wake_counter(w.wake)))
	w.fell = (*uint32)(unsafe.Pointer(C.kvg_wake_backwards(w.wake)))
	fd, err := unix.FcntlInt(uintptr(C.kvg_wake_fd(w.wake)), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		C.kvg_unwatch(d.c)
		return fmt.Errorf("cuda/driver: watch: %w", err)
	}
	w.told = os.NewFile(uintptr(fd), "marks")
	d.clk.Go("wake", w.read)
	return nil
}

// read wakes the waiters of the clock whenever something moved.
func (w *Watched) read() {
	var count [8]byte
	for {
		if _, err := w.told.Read(count[:]); err != nil {
			break // closed
		}
		w.clk.Notify()
	}
	w.ended.Store(true)
	w.clk.Notify()
}

// Activity changes when a mark may have fired, and when the device is found
// dead.
func (w *Watched) Activity() uint64 {
	w.calls.Add(1) // the counter is there until all calls are over
	defer w.leave()
	if w.closed.Load() {
		return w.gone.Add(1)
	}
	return atomic.LoadUint64(w.counter)
}

// Poll is [Device.Poll]. With [WakeWord] it fails with [cuda.ErrIllegalState] from
// when a word was seen to fall: then somebody else writes into its memory, and
// nobody knows into what besides.
func (w *Watched) Poll(marks []cuda.Mark) error {
	if err := w.Device.Poll(marks); err != nil {
		return err
	}
	if err := w.enter("poll"); err != nil { // C's memory is there until all calls are over
		return err
	}
	defer w.leave()
	if n := atomic.LoadUint32(w.fell); n != 0 {
		return &cuda.Error{Code: cuda.ErrIllegalState, Op: "poll",
			Detail: fmt.Sprintf("the word of stream %d in the memory of marks went backwards", n-1)}
	}
	return nil
}

// Hook starts a thread of the system's that calls fn(arg), a C function, each
// time that something moved: a wake-up that does not depend on Go's scheduler,
// which may take tens of milliseconds where every P is busy. Several movements
// may be one call. fn must not block, nor call CUDA, nor Go. There is one hook
// at most; Close ends it.
func (w *Watched) Hook(fn, arg unsafe.Pointer) error {
	const op = "hook"
	if err := w.enter(op); err != nil {
		return err
	}
	defer w.leave()
	if fn == nil {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: "no function"}
	}
	if C.kvg_wake_hook(w.wake, fn, arg) == 0 {
		return &cuda.Error{Code: cuda.ErrIllegalState, Op: op, Detail: "there is one already, or no thread can be had"}
	}
	return nil
}

func (w *Watched) touch() {
	if !w.closed.Load() {
		C.kvg_wake_touch(w.wake)
	}
}

// stop ends the threads and the goroutine. It is called when the streams are
// empty.
func (w *Watched) stop() C.kvg_result {
	r := C.kvg_unwatch(w.c)
	_ = w.told.Close()
	_ = w.clk.WaitUntil(context.Background(), clock.Func("the end of the waker", w.ended.Load), clock.Never)
	return r
}
