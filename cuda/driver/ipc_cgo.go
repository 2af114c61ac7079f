//go:build cgo && linux

package driver

/*
#include "ipc.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.IPC = (*Device)(nil)

// ExportMemory implements [cuda.IPC].
func (d *Device) ExportMemory(p cuda.DevicePtr) (h cuda.MemoryHandle, err error) {
	const op = "export memory"
	if err := d.enter(op); err != nil {
		return h, err
	}
	defer d.leave()
	d.mu.Lock()
	name, ok := d.memory[p]
	d.mu.Unlock()
	if !ok {
		return h, &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("no allocation of this device starts at %#x", uint64(p))}
	}
	if r := C.kvg_ipc_export(d.c, C.uint64_t(p), (*C.char)(unsafe.Pointer(&h))); r.why != C.KVG_OK {
		return cuda.MemoryHandle{}, d.lacking(op, r, fmt.Sprintf("%q at %#x", name, uint64(p)), "cuIpcGetMemHandle")
	}
	return h, nil
}

// OpenMemory implements [cuda.IPC]. Peer access to the exporter's device is
// enabled where that is another one.
func (d *Device) OpenMemory(h cuda.MemoryHandle) (cuda.DevicePtr, error) {
	const op = "open memory"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	var raw C.uint64_t
	if r := C.kvg_ipc_open(d.c, (*C.char)(unsafe.Pointer(&h)), &raw); r.why != C.KVG_OK {
		return 0, d.lacking(op, r, "", "cuIpcOpenMemHandle_v2")
	}
	p := cuda.DevicePtr(raw)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opened == nil {
		d.opened = map[cuda.DevicePtr]int{}
	}
	d.opened[p]++
	return p, nil
}

// CloseMemory implements [cuda.IPC]. It waits for all work in the context, and
// blocks the calling thread meanwhile.
func (d *Device) CloseMemory(p cuda.DevicePtr) error {
	const op = "close memory"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	d.mu.Lock()
	ok := d.opened[p] > 0
	if ok {
		d.dropOpened(p)
	}
	d.mu.Unlock()
	if !ok {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("%#x was not opened by this device", uint64(p))}
	}
	if r := C.kvg_ipc_close(d.c, C.uint64_t(p)); r.why != C.KVG_OK {
		return d.lacking(op, r, fmt.Sprintf("%#x", uint64(p)), "cuIpcCloseMemHandle")
	}
	return nil
}

func (d *Device) dropOpened(p cuda.DevicePtr) {
	if d.opened[p]--; d.opened[p] == 0 {
		delete(d.opened, p)
	}
}

// closeOpened closes what is still open when the device is closed.
func (d *Device) closeOpened(check func(op string, r C.kvg_result)) {
	for p, n := range d.opened {
		for range n {
			check("close memory", C.kvg_ipc_close(d.c, C.uint64_t(p)))
		}
	}
}
