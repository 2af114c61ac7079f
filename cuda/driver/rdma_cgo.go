//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/cuda"
)

// RDMA is what a device does about writes and reads by a NIC.
type RDMA struct {
	// Supported: the device's memory can be registered with a NIC.
	Supported bool
	// NeedsFlush: what a NIC wrote is visible to kernels that are launched
	// after the host saw the transfer's end, but not to others on its own:
	// call [Device.FlushRDMA].
	NeedsFlush bool
	// CanFlush: [Device.FlushRDMA] works.
	CanFlush bool
}

// RDMA tells how the device and NICs go together. Source: driver API,
// CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_*.
func (d *Device) RDMA() RDMA { return d.rdma }

// PrepareRDMA is called for device memory before it is registered with a NIC:
// from then on blocking copies and fills of the range that p lies in are over
// when they return, as a NIC needs it. Memory of the virtual memory functions
// can't be prepared: the error is [cuda.ErrNotSupported], and whoever registers
// it must synchronise before a NIC reads what was copied. That is not fatal.
func (d *Device) PrepareRDMA(p cuda.DevicePtr) error {
	const op = "prepare for RDMA"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	if r := C.kvg_sync_memops(d.c, C.uint64_t(p)); r.why != C.KVG_OK {
		detail := fmt.Sprintf("%#x", uint64(p))
		if r.why == C.KVG_MISSING {
			detail = "cuPointerSetAttribute"
		}
		return d.fail(op, r, detail)
	}
	return nil
}

// FlushRDMA makes what NICs have written into the device's memory visible to
// kernels that already run. It returns [cuda.ErrNotSupported] where the driver
// or the device can not do so.
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
	ask := func(attribute C.int) int {
		var v C.int
		if C.kvg_attribute(&d.c.t, attribute, d.device, &v) != 0 {
			return 0
		}
		return int(v)
	}
	const hostFlush, owner = 1, 100 // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER
	d.rdma.Supported = ask(116) != 0
	d.rdma.CanFlush = ask(117)&hostFlush != 0
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

// UUID returns the device's UUID, as nvidia-smi prints it.
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
