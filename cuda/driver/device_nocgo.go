//go:build !cgo || !linux

package driver

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// Device is a GPU. Built without cgo there is none.
type Device struct{ cuda.Device }

// Open opens a device on its primary context. The error is a
// [cuda.ErrNoDriver] that says why there is no usable driver.
func Open(Options) (*Device, error) {
	return nil, fmt.Errorf("cuda/driver: %w: built without cgo", cuda.ErrNoDriver)
}

// Adopt opens the device of a context that someone else made and keeps alive
// until Close.
func Adopt(Context, Options) (*Device, error) { return Open(Options{}) }

// AdoptStream takes a stream of the device's context that someone else made.
func (d *Device) AdoptStream(RawStream) (cuda.Stream, error) { panic("no device exists") }

// AdoptEvent takes an event of the device's context that someone else made.
func (d *Device) AdoptEvent(RawEvent) (cuda.Event, error) { panic("no device exists") }

// NewHostFunc makes a C function what a batch may call on the host.
func (d *Device) NewHostFunc(fn unsafe.Pointer) (cuda.HostFunc, error) { panic("no device exists") }

// Library returns the path of the library.
func (d *Device) Library() string { panic("no device exists") }

// Context returns the context that the device works in.
func (d *Device) Context() Context { panic("no device exists") }

// Watched is a device that tells of movement without a crossing.
type Watched struct{ *Device }

// Watch starts telling of marks that are recorded from now on.
func (d *Device) Watch(Wake) (*Watched, error) { panic("no device exists") }

// Activity changes when a mark may have fired.
func (w *Watched) Activity() uint64 { panic("no device exists") }

// Hook starts a thread that calls a C function each time that something moved.
func (w *Watched) Hook(fn, arg unsafe.Pointer) error { panic("no device exists") }

// RDMA tells how the device and NICs go together.
func (d *Device) RDMA() cuda.RDMA { panic("no device exists") }

// PrepareRDMA readies memory to be registered with a NIC.
func (d *Device) PrepareRDMA(cuda.DevicePtr, uint64) (cuda.MemorySync, error) {
	panic("no device exists")
}

// FlushRDMA makes what NICs have written visible to the device.
func (d *Device) FlushRDMA() error { panic("no device exists") }

// FillRows puts a fill of rows, each a distance behind the one before, into a
// stream.
func (d *Device) FillRows(cuda.Stream, cuda.DevicePtr, uint64, uint32, uint64, uint64) error {
	panic("no device exists")
}

// PCIAddress returns the device's PCI address.
func (d *Device) PCIAddress() (string, error) { panic("no device exists") }

// UUID returns the device's UUID.
func (d *Device) UUID() (string, error) { panic("no device exists") }

// Kill leaves the device dead with a sticky error.
func (d *Device) Kill(cuda.Code, string) error { panic("no device exists") }

// CanAccess implements [cuda.Peers].
func (d *Device) CanAccess(cuda.Device) (bool, error) { panic("no device exists") }

// EnableAccess implements [cuda.Peers].
func (d *Device) EnableAccess(cuda.Device) error { panic("no device exists") }

// DisableAccess implements [cuda.Peers].
func (d *Device) DisableAccess(cuda.Device) error { panic("no device exists") }

// ImportEvent implements [cuda.Peers].
func (d *Device) ImportEvent(cuda.Device, cuda.Event) (cuda.Event, error) { panic("no device exists") }

// AllocManaged implements [cuda.Managed].
func (d *Device) AllocManaged(uint64, cuda.AllocOptions) (cuda.ManagedBuffer, error) {
	panic("no device exists")
}

// FreeManaged implements [cuda.Managed].
func (d *Device) FreeManaged(cuda.ManagedBuffer) error { panic("no device exists") }

// RegisterHost implements [cuda.HostMemory].
func (d *Device) RegisterHost([]byte) (cuda.PinnedBuffer, error) { panic("no device exists") }

// UnregisterHost implements [cuda.HostMemory].
func (d *Device) UnregisterHost(cuda.PinnedBuffer) error { panic("no device exists") }

// CopyIn implements [cuda.HostMemory].
func (d *Device) CopyIn(cuda.Stream, cuda.DevicePtr, []byte) error { panic("no device exists") }

// CopyOut implements [cuda.HostMemory].
func (d *Device) CopyOut(cuda.Stream, []byte, cuda.DevicePtr) error { panic("no device exists") }

// ExportMemory implements [cuda.IPC].
func (d *Device) ExportMemory(cuda.DevicePtr) (cuda.MemoryHandle, error) { panic("no device exists") }

// OpenMemory implements [cuda.IPC].
func (d *Device) OpenMemory(cuda.MemoryHandle) (cuda.DevicePtr, error) { panic("no device exists") }

// CloseMemory implements [cuda.IPC].
func (d *Device) CloseMemory(cuda.DevicePtr) error { panic("no device exists") }
