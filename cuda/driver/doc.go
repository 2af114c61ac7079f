// Package driver is the cuda interface over NVIDIA's libcuda.so.1, which it
// opens at run time: neither a CUDA toolkit nor a driver is needed to build or
// to start a program that imports it. Without cgo, [Open] and [Adopt] always
// fail with [cuda.ErrNoDriver].
//
// [cuda.Device.Submit] and [cuda.Device.Poll] cross into C once, however long
// the batch. Each crossing makes the device's context current and the thread's
// capture mode relaxed, and puts back both, so calls are right on any
// goroutine and harmless beside CUDA code of the engine's own.
//
// Handles are indices that C looks up without a lock; a dead or foreign one is
// [cuda.ErrInvalidHandle] instead of a crash in the driver. Destroying a handle
// while another goroutine's call uses it is the caller's mistake, as in CUDA.
//
// Who waits for marks asks after them, or has the device tell of them:
// [Device.Watch]. How late a waiter then runs depends on Go's scheduler, which
// takes tens of milliseconds where every P is busy; [Watched.Hook] does not.
// BenchmarkWake in cuda/softcuda measures all ways over a device that is none,
// BenchmarkWakeOnGPU on a GPU.
//
// Host functions are C: [Device.NewSignal] has one that counts, [Device.NewHostFunc]
// takes one of the caller's. Waits that can be cancelled ask the driver again and
// again (SyncStream sleeps in between, SyncEvent does not), those for an event with
// BlockingSync and for the whole device have a thread of the system's blocked.
//
// The symbols it calls are listed in SYMBOLS.md. All are looked up when a device
// is opened, so that C reads the table without a lock; without an optional one
// only the calls that need it fail, each time, with [cuda.ErrNotSupported] and
// the names of symbol and library.
package driver
