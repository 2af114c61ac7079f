//go:build !cgo || !linux

package softcuda

import (
	"errors"
	"unsafe"

	"github.com/kvgate/kvgate/cuda/sim"
)

var errNoCgo = errors.New("cuda/softcuda: built without cgo")

// Library is the driver's functions, by name.
type Library struct{}

// Symbol fails: there is no C interface without cgo.
func (Library) Symbol(string) (unsafe.Pointer, error) { return nil, errNoCgo }

// Path says that this is no file.
func (Library) Path() string { return "softcuda" }

// Device is a simulated GPU that the driver interface serves.
type Device struct{}

// Add fails: there is no C interface without cgo.
func Add(sim.Options) (*Device, error) { return nil, errNoCgo }

// Ordinal returns what cuDeviceGet knows the device by.
func (d *Device) Ordinal() int { return 0 }

// Sim returns the simulated device.
func (d *Device) Sim() *sim.Device { return nil }

// Remove takes the device away.
func (d *Device) Remove() error { return nil }
