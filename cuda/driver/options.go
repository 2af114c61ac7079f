package driver

import (
	"unsafe"

	"github.com/kvgate/kvgate/clock"
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
	// Path is the library to open, and the only one: no other is looked for.
	Path string
	// Library replaces opening one. Path is not used then.
	Library Library
	// SyncMemops has blocking copies and fills of the context return only when
	// they are done, also where NICs reach the memory (CU_CTX_SYNC_MEMOPS, CUDA
	// 12.1). The flag is set when the device is opened, before any work of the
	// device, and stays. It is for programs that register memory of the virtual
	// memory functions with a NIC: [Device.PrepareRDMA] sets the flag as well, but
	// at a time when work may be under way. Where the driver is too old, opening
	// fails with [cuda.ErrNotSupported].
	SyncMemops bool
	// Clock is what waits and deadlines count by. Default: the wall clock.
	Clock clock.Clock
}

// Context is a CUcontext.
type Context uint64

// RawStream is a CUstream, RawEvent a CUevent.
type (
	RawStream uint64
	RawEvent  uint64
)
