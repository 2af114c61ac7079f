//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.RDMADevice = (*Device)(nil)

// RDMA tells how the device and NICs go together.
func (d *Device) RDMA() cuda.RDMA { return d.rdma }

// contextFlags are what it takes to give a context a flag.
var contextFlags = []string{"cuCtxGetFlags", "cuCtxSetFlags"}

// syncContext gives the context CU_CTX_SYNC_MEMOPS.
func (d *Device) syncContext() error {
	if r := C.kvg_sync_context(d.c); r.why != C.KVG_OK {
		return d.lacking("have the context synchronise blocking copies and fills", r, "CU_CTX_SYNC_MEMOPS", contextFlags...)
	}
	return nil
}

// PrepareRDMA readies memory to be registered with a NIC. It sets an attribute
// of each allocation (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS). Drivers refuse it for
// memory of the virtual memory functions (UCX, issue 9895); there it sets a flag
// of the context (CU_CTX_SYNC_MEMOPS, CUDA 12.1), also of an adopted one, whose
// blocking copies and fills then wait a little longer. Without that the error
// is [cuda.ErrNotSupported].
func (d *Device) PrepareRDMA(p cuda.DevicePtr, size uint64) (cuda.MemorySync, error) {
	const op = "prepare for RDMA"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	var sync C.int
	r := C.kvg_sync_memops(d.c, C.uint64_t(p), C.uint64_t(size), &sync)
	if r.why == C.KVG_OK {
		return cuda.MemorySync(sync), nil
	}
	detail := fmt.Sprintf("%d bytes at %#x", size, uint64(p))
	if r.why == C.KVG_MISSING {
		detail += ": no attribute for this memory, and no " + strings.Join(d.lacks(contextFlags), ", ") + " for the context"
	}
	return 0, d.fail(op, r, detail)
}

// FlushRDMA makes what NICs have written into the device's memory visible to
// the device. It returns [cuda.ErrNotSupported] where the driver or the device
// can not do so.
func (d *Device) FlushRDMA() error {
	const op = "flush RDMA writes"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	if r := C.kvg_flush(d.c); r.why != C.KVG_OK {
		return d.fail(op, r, "cuFlushGPUDirectRDMAWrites")
	}
	return nil
}

// inquireRDMA asks for what a driver may be too old to know: that is no then.
func (d *Device) inquireRDMA() {
	ask := func(attribute int) int {
		v, _ := d.attribute(attribute)
		return v
	}
	const hostFlush, owner = 1, 100 // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER
	d.rdma.Supported = ask(116) != 0
	d.rdma.CanFlush = ask(117)&hostFlush != 0 && d.c.t.cuFlushGPUDirectRDMAWrites != nil
	d.rdma.NeedsFlush = ask(118) < owner
}

// PCIAddress returns the device's PCI address, as 0000:01:00.0.
func (d *Device) PCIAddress() (string, error) {
	const op = "PCI address"
	if err := d.enter(op); err != nil {
		return "", err
	}
	defer d.leave()
	var id [32]C.char
	if code := cuda.Code(C.kvg_pci(&d.c.t, &id[0], C.int(len(id)), d.device)); code != cuda.Success {
		return "", &cuda.Error{Code: code, Op: op, Detail: "cuDeviceGetPCIBusId"}
	}
	id[len(id)-1] = 0
	return C.GoString(&id[0]), nil
}

// UUID returns the device's UUID, as nvidia-smi prints it. Of a slice of a GPU
// (MIG) nvidia-smi prints MIG instead of GPU at its beginning, which CUDA does
// not tell.
func (d *Device) UUID() (string, error) {
	const op = "UUID"
	if err := d.enter(op); err != nil {
		return "", err
	}
	defer d.leave()
	var u [16]C.char
	if code := cuda.Code(C.kvg_uuid(&d.c.t, &u[0], d.device)); code != cuda.Success {
		return "", &cuda.Error{Code: code, Op: op, Detail: "cuDeviceGetUuid_v2"}
	}
	var b [16]byte
	for i, c := range u {
		b[i] = byte(c)
	}
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}

// Kill leaves the device dead with a sticky error, when something other than
// the driver has found it so: every call from now on returns the error, and
// waits wake. The first error stays.
func (d *Device) Kill(c cuda.Code, why string) error {
	const op = "kill"
	if !c.Sticky() {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: c.String() + " leaves a device alive"}
	}
	err := d.enter(op)
	if errors.Is(err, cuda.ErrClosed) {
		return err
	}
	if err == nil {
		defer d.leave()
		d.die(&cuda.Error{Code: c, Op: "device", Detail: why})
	}
	return nil
}
