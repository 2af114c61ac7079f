//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// stagingBytes is how much Read and Write move at a time: large enough for the
// copy to outweigh what starting it costs.
const stagingBytes = 1 << 20

// staging is what Read and Write copy through. The collector may move or free
// Go memory, and a copy from memory that is not pinned may still be under way
// when the call returns.
type staging struct {
	mu     sync.Mutex // held for a chunk
	stream uint64     // raw, non-blocking
	host   []byte
	device uint64
}

func (d *Device) makeStaging() error {
	var stream, device C.uint64_t
	var host unsafe.Pointer
	if r := C.kvg_new_stream(d.c, streamNonBlocking, C.int(d.info.Priorities[0]), &stream); r.why != C.KVG_OK {
		return d.fail("make copy stream", r, "")
	}
	d.staging.stream = uint64(stream)
	d.c.copies = stream
	if r := C.kvg_alloc_pinned(d.c, stagingBytes, &host, &device); r.why != C.KVG_OK {
		return d.fail("allocate staging memory", r, "")
	}
	d.staging.host = unsafe.Slice((*byte)(host), stagingBytes)
	d.staging.device = uint64(device)
	return nil
}

func (d *Device) freeStaging() C.kvg_result {
	r := C.kvg_free_stream(d.c, C.uint64_t(d.staging.stream))
	if x := C.kvg_free_pinned(d.c, unsafe.Pointer(unsafe.SliceData(d.staging.host))); r.why == C.KVG_OK {
		r = x
	}
	return r
}

func hostPointer(b cuda.PinnedBuffer) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b.Host)) }

// Alloc returns device memory.
func (d *Device) Alloc(size uint64, o cuda.AllocOptions) (cuda.DevicePtr, error) {
	const op = "allocate"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	if err := checkAlloc(op, size, o); err != nil {
		return 0, err
	}
	var p C.uint64_t
	if r := C.kvg_alloc(d.c, C.uint64_t(size), &p); r.why != C.KVG_OK {
		return 0, d.fail(op, r, fmt.Sprintf("%d bytes for %q", size, o.Name))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.memory == nil {
		d.memory = map[cuda.DevicePtr]string{}
	}
	d.memory[cuda.DevicePtr(p)] = o.Name
	return cuda.DevicePtr(p), nil
}

func checkAlloc(op string, size uint64, o cuda.AllocOptions) error {
	switch {
	case size == 0:
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("0 bytes for %q", o.Name)}
	case o.CostScale > 1:
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("cost scale of %d for %q: only simulated memory has one", o.CostScale, o.Name)}
	}
	return nil
}

// Free frees device memory after the work that was submitted before it. It
// blocks the calling thread meanwhile.
func (d *Device) Free(p cuda.DevicePtr) error {
	const op = "free"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	d.mu.Lock()
	name, ok := d.memory[p]
	delete(d.memory, p) // so that a second Free beside this one is refused
	d.mu.Unlock()
	if !ok {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("%#x is no allocation of this device", uint64(p))}
	}
	if r := C.kvg_free(d.c, C.uint64_t(p)); r.why != C.KVG_OK {
		return d.fail(op, r, fmt.Sprintf("%q at %#x", name, uint64(p)))
	}
	return nil
}

// AllocPinned returns page-locked host memory that is mapped into the device.
func (d *Device) AllocPinned(size uint64, o cuda.AllocOptions) (cuda.PinnedBuffer, error) {
	const op = "allocate pinned memory"
	if err := d.enter(op); err != nil {
		return cuda.PinnedBuffer{}, err
	}
	defer d.leave()
	if err := checkAlloc(op, size, o); err != nil {
		return cuda.PinnedBuffer{}, err
	}
	var p C.uint64_t
	var host unsafe.Pointer
	if r := C.kvg_alloc_pinned(d.c, C.uint64_t(size), &host, &p); r.why != C.KVG_OK {
		return cuda.PinnedBuffer{}, d.fail(op, r, fmt.Sprintf("%d bytes for %q", size, o.Name))
	}
	b := cuda.PinnedBuffer{Host: unsafe.Slice((*byte)(host), size), Device: cuda.DevicePtr(p)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if C.kvg_pinned_add(d.c, p, C.uint64_t(size)) == 0 {
		C.kvg_free_pinned(d.c, host)
		return cuda.PinnedBuffer{}, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op}
	}
	if d.pinned == nil {
		d.pinned = map[cuda.DevicePtr]cuda.PinnedBuffer{}
	}
	d.pinned[b.Device] = b
	return b, nil
}

// FreePinned frees pinned memory.
func (d *Device) FreePinned(b cuda.PinnedBuffer) error {
	const op = "free pinned memory"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	d.mu.Lock()
	own, ok := d.pinned[b.Device]
	if ok = ok && !d.registered[b.Device]; ok {
		delete(d.pinned, b.Device)
		C.kvg_pinned_remove(d.c, C.uint64_t(b.Device))
	}
	d.mu.Unlock()
	if !ok {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("%#x is no pinned memory of this device", uint64(b.Device))}
	}
	if r := C.kvg_free_pinned(d.c, hostPointer(own)); r.why != C.KVG_OK {
		return d.fail(op, r, fmt.Sprintf("%#x", uint64(b.Device)))
	}
	return nil
}

// AllocRange returns the allocation that p lies in, whoever made it, or
// [cuda.ErrNotFound].
func (d *Device) AllocRange(p cuda.DevicePtr) (cuda.DevicePtr, uint64, error) {
	const op = "find allocation"
	if err := d.enter(op); err != nil {
		return 0, 0, err
	}
	defer d.leave()
	var base, size C.uint64_t
	r := C.kvg_range_of(d.c, C.uint64_t(p), &base, &size)
	switch {
	case r.why == C.KVG_DRIVER && cuda.Code(r.code) == cuda.ErrInvalidValue: // what drivers say of address 0
		r.code = C.int32_t(cuda.ErrNotFound)
	case r.why == C.KVG_OK:
		return cuda.DevicePtr(base), uint64(size), nil
	}
	return 0, 0, d.fail(op, r, fmt.Sprintf("%#x", uint64(p)))
}

// Read copies from memory to dst, through pinned memory and a stream of its
// own.
func (d *Device) Read(dst []byte, src cuda.DevicePtr) error {
	const op = "read"
	return d.move(op, len(dst), src, func(off, n int) C.kvg_result {
		r := C.kvg_copy(d.c, C.uint64_t(d.staging.device), C.uint64_t(src)+C.uint64_t(off), C.uint64_t(n), 0)
		if r.why == C.KVG_OK {
			copy(dst[off:off+n], d.staging.host)
		}
		return r
	})
}

// Write copies src to memory, in the way of [Device.Read].
func (d *Device) Write(dst cuda.DevicePtr, src []byte) error {
	const op = "write"
	return d.move(op, len(src), dst, func(off, n int) C.kvg_result {
		copy(d.staging.host, src[off:off+n])
		return C.kvg_copy(d.c, C.uint64_t(dst)+C.uint64_t(off), C.uint64_t(d.staging.device), C.uint64_t(n), 1)
	})
}

func (d *Device) move(op string, size int, at cuda.DevicePtr, chunk func(off, n int) C.kvg_result) error {
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	for off := 0; off < size; off += stagingBytes {
		n := min(size-off, stagingBytes)
		d.staging.mu.Lock()
		r := chunk(off, n)
		d.staging.mu.Unlock()
		if r.why != C.KVG_OK {
			return d.fail(op, r, fmt.Sprintf("%d bytes at %#x", size, uint64(at)))
		}
	}
	return nil
}
