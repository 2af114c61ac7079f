//go:build gorgonia

package gorgonia

import (
	"unsafe"

	"gorgonia.org/cu"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
)

// Each of gorgonia.org/cu's handles is a struct of the driver's handle alone.
const (
	_ = -uint(unsafe.Sizeof(cu.CUContext{}) ^ 8)
	_ = -uint(unsafe.Sizeof(cu.Stream{}) ^ 8)
	_ = -uint(unsafe.Sizeof(cu.Event{}) ^ 8)
)

func raw[T any](h T) uint64 { return *(*uint64)(unsafe.Pointer(&h)) }

// RawContext returns the driver's handle of a context, for [driver.Adopt].
func RawContext(c cu.CUContext) driver.Context { return driver.Context(raw(c)) }

// RawStream returns the driver's handle of a stream, for
// [driver.Device.AdoptStream], whose result is for stream.Adopt.
func RawStream(s cu.Stream) driver.RawStream { return driver.RawStream(raw(s)) }

// RawEvent returns the driver's handle of an event, for
// [driver.Device.AdoptEvent].
func RawEvent(e cu.Event) driver.RawEvent { return driver.RawEvent(raw(e)) }

// Pointer returns an address. It stays the engine's.
func Pointer(p cu.DevicePtr) cuda.DevicePtr { return cuda.DevicePtr(p.Uintptr()) }
