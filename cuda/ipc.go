package cuda

// MemoryHandle names an allocation of device memory to other processes of the
// machine. It is plain data, to be sent to them as it is.
type MemoryHandle [64]byte

// IPC is implemented by devices that share memory with other processes. Where
// the device behind it can not, its methods return [ErrNotSupported].
//
// Work of two processes on the same memory has no order but the one that they
// agree on: who hands memory over waits for its own work first. Memory that is
// freed, or whose process ends, while others have it open is undefined
// behaviour on hardware.
//
// Source: CUDA driver API, cuIpcGetMemHandle, cuIpcOpenMemHandle,
// cuIpcCloseMemHandle.
type IPC interface {
	// ExportMemory returns a handle of the allocation that starts at p, which
	// must come from [Device.Alloc], not from a pool. It may be called again, and the handle be
	// opened by any number of processes. On hardware small allocations share
	// pages: whoever opens one may reach its neighbours as well, unless its size
	// is a multiple of 2 MiB.
	ExportMemory(p DevicePtr) (MemoryHandle, error)
	// OpenMemory maps what another process has exported. The address need not be
	// the exporter's. The memory is the exporter's still: it can not be freed or
	// exported here, but closed, with [IPC.CloseMemory]. Opened again, it has the
	// same address and has to be closed as often.
	//
	// A handle of this very process is [ErrInvalidContext]; one that is none is
	// [ErrInvalidValue] or [ErrInvalidHandle], as is one whose exporter has gone
	// or freed the memory, where that can be told.
	OpenMemory(h MemoryHandle) (DevicePtr, error)
	// CloseMemory ends one opening of what [IPC.OpenMemory] returned; with the
	// last the memory is unmapped, after the work that was submitted before.
	CloseMemory(p DevicePtr) error
}
