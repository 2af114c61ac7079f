//go:build !cgo || !linux

package nvml

import (
	"fmt"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// Library is NVML, started. Built without cgo there is none.
type Library struct{}

// Open starts the system's NVML. Where it can't be had the error is an
// [ErrNoNVML] that says why.
func Open() (*Library, error) {
	return nil, fmt.Errorf("cuda/nvml: %w: built without cgo", ErrNoNVML)
}

// Close ends NVML.
func (l *Library) Close() error { return nil }

// Count returns the number of devices.
func (l *Library) Count() (int, error) { return 0, ErrNoNVML }

// At returns the i-th device.
func (l *Library) At(int) (*Device, error) { return nil, ErrNoNVML }

// Find returns the device at a PCI address.
func (l *Library) Find(string) (*Device, error) { return nil, ErrNoNVML }

// Device is a GPU.
type Device struct{}

// PCI returns the device's PCI address.
func (d *Device) PCI() string { return "" }

// Facts asks for all there is to know.
func (d *Device) Facts() Facts { return Facts{NUMANode: -1, OwnNode: -1} }

func (d *Device) slice(*Facts, Source) {}

// Killer is a device that can be told of its death.
type Killer interface {
	Kill(c cuda.Code, why string) error
	Clock() clock.Clock
}

// Watch is a watch over a device's events.
type Watch struct{}

// Watch kills k when NVML tells of an error that ends the device.
func (d *Device) Watch(Killer) (*Watch, error) { return nil, ErrNoNVML }

// Close ends the watch.
func (w *Watch) Close() error { return nil }
