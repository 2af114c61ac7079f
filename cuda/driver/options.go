package driver

import (
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// Library is where the functions of a driver come from. The address of a
// symbol stays valid as long as the process runs.
type Library interface {
	Symbol(name string) (unsafe.Pointer, error)
	Path() string // for reports
}

// Options are the options of [Open] and [Adopt]. The zero value is device 0 of
// the system's driver.
type Options struct {
	// Device is the ordinal that CUDA_VISIBLE_DEVICES leaves the GPU with.
	Device int
	// Path is the library to open instead of libcuda.so.1 on the loader's path.
	Path string
	// Library replaces opening one. Path is not used then.
	Library Library
	// Clock is what waits and deadlines count by. Default: the wall clock.
	Clock cuda.Clock
}

// Context is a CUcontext.
type Context uint64

// RawStream is a CUstream, RawEvent a CUevent.
type (
	RawStream uint64
	RawEvent  uint64
)
