//go:build cgo && linux

package driver

/*
#include "hostmemory.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

var (
	_ cuda.Managed    = (*Device)(nil)
	_ cuda.HostMemory = (*Device)(nil)
)

// inquireHostMemory asks for what a driver may be too old to know: that is no
// then. Numbers are CU_DEVICE_ATTRIBUTE_*.
func (d *Device) inquireHostMemory() {
	concurrent, _ := d.attribute(89)
	pageable, _ := d.attribute(88)
	d.info.ConcurrentManaged, d.pageable = concurrent != 0, pageable != 0
}

// AllocManaged implements [cuda.Managed].
func (d *Device) AllocManaged(size uint64, o cuda.AllocOptions) (cuda.ManagedBuffer, error) {
	const op = "allocate managed memory"
	if err := d.enter(op); err != nil {
		return cuda.ManagedBuffer{}, err
	}
	defer d.leave()
	if err := checkAlloc(op, size, o); err != nil {
		return cuda.ManagedBuffer{}, err
	}
	var p C.uint64_t
	if r := C.kvg_alloc_managed(d.c, C.uint64_t(size), &p); r.why != C.KVG_OK {
		return cuda.ManagedBuffer{}, d.lacking(op, r, fmt.Sprintf("%d bytes for %q", size, o.Name), "cuMemAllocManaged")
	}
	// The address is the host's as well.
	b := cuda.ManagedBuffer{Host: unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), size), Device: cuda.DevicePtr(p)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.managed == nil {
		d.managed = map[cuda.DevicePtr]cuda.ManagedBuffer{}
	}
	d.managed[b.Device] = b
	return b, nil
}

// FreeManaged implements [cuda.Managed]. It blocks the calling thread until the
// work is over.
func (d *Device) FreeManaged(b cuda.ManagedBuffer) error {
	const op = "free managed memory"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	d.mu.Lock()
	_, ok := d.managed[b.Device]
	delete(d.managed, b.Device)
	d.mu.Unlock()
	if !ok {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("%#x is no managed memory of this device", uint64(b.Device))}
	}
	if r := C.kvg_free(d.c, C.uint64_t(b.Device)); r.why != C.KVG_OK {
		return d.fail(op, r, fmt.Sprintf("%#x", uint64(b.Device)))
	}
	return nil
}

// RegisterHost implements [cuda.HostMemory].
func (d *Device) RegisterHost(host []byte) (cuda.PinnedBuffer, error) {
	const op = "register host memory"
	if err := d.enter(op); err != nil {
		return cuda.PinnedBuffer{}, err
	}
	defer d.leave()
	if len(host) == 0 {
		return cuda.PinnedBuffer{}, &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: "0 bytes"}
	}
	at, size := unsafe.Pointer(unsafe.SliceData(host)), C.uint64_t(len(host))
	var p C.uint64_t
	if r := C.kvg_register(d.c, at, size, &p); r.why != C.KVG_OK {
		return cuda.PinnedBuffer{}, d.lacking(op, r, fmt.Sprintf("%d bytes at %p", len(host), at), "cuMemHostRegister_v2", "cuMemHostUnregister")
	}
	b := cuda.PinnedBuffer{Host: host, Device: cuda.DevicePtr(p)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if C.kvg_pinned_add(d.c, p, size) == 0 {
		C.kvg_unregister(d.c, at)
		return cuda.PinnedBuffer{}, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op}
	}
	if d.pinned == nil {
		d.pinned = map[cuda.DevicePtr]cuda.PinnedBuffer{}
	}
	if d.registered == nil {
		d.registered = map[cuda.DevicePtr]bool{}
	}
	d.pinned[b.Device], d.registered[b.Device] = b, true
	return b, nil
}

// UnregisterHost implements [cuda.HostMemory].
func (d *Device) UnregisterHost(b cuda.PinnedBuffer) error {
	const op = "unregister host memory"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	d.mu.Lock()
	own, ok := d.pinned[b.Device]
	if ok = ok && d.registered[b.Device]; ok {
		delete(d.pinned, b.Device)
		delete(d.registered, b.Device)
		C.kvg_pinned_remove(d.c, C.uint64_t(b.Device))
	}
	d.mu.Unlock()
	if !ok {
		return &cuda.Error{Code: cuda.ErrHostNotRegistered, Op: op, Detail: fmt.Sprintf("%#x", uint64(b.Device))}
	}
	if r := C.kvg_unregister(d.c, hostPointer(own)); r.why != C.KVG_OK {
		return d.fail(op, r, fmt.Sprintf("%#x", uint64(b.Device)))
	}
	return nil
}

// CopyIn implements [cuda.HostMemory]. The driver copies src to memory of its own
// before its call returns; where the device reaches pageable memory by itself it
// need not, and the copy is waited for, blocking the calling thread.
func (d *Device) CopyIn(s cuda.Stream, dst cuda.DevicePtr, src []byte) error {
	const op = "copy from pageable memory"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	wait := C.int(0)
	if d.pageable {
		wait = 1
	}
	r := C.kvg_copy_in(d.c, C.uint64_t(s), C.uint64_t(dst), unsafe.Pointer(unsafe.SliceData(src)), C.uint64_t(len(src)), wait)
	if r.why != C.KVG_OK {
		return d.lacking(op, r, fmt.Sprintf("%d bytes to %#x in stream %#x", len(src), uint64(dst), uint64(s)), "cuMemcpyHtoDAsync_v2")
	}
	return nil
}

// CopyOut implements [cuda.HostMemory]. It blocks the calling thread.
func (d *Device) CopyOut(s cuda.Stream, dst []byte, src cuda.DevicePtr) error {
	const op = "copy to pageable memory"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	r := C.kvg_copy_out(d.c, C.uint64_t(s), unsafe.Pointer(unsafe.SliceData(dst)), C.uint64_t(src), C.uint64_t(len(dst)))
	if r.why != C.KVG_OK {
		return d.lacking(op, r, fmt.Sprintf("%d bytes from %#x in stream %#x", len(dst), uint64(src), uint64(s)), "cuMemcpyDtoHAsync_v2")
	}
	return nil
}
