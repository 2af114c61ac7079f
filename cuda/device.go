package cuda

import (
	"context"

	"github.com/kvgate/kvgate/clock"
)

// DevicePtr is an address in the unified address space: device memory, or host
// memory that the device can reach. It is an integer, never a Go pointer.
type DevicePtr uint64

// Stream, Event, Module, Function and HostFunc are handles of a device. Zero is
// none, and never the legacy default stream: see [Device.LegacyStream].
type (
	Stream   uint64
	Event    uint64
	Module   uint64
	Function uint64
	HostFunc uint64 // a function that a stream calls on the host: see [Batch.Signal]
)

// MemoryKind says where memory lies and who can reach it.
type MemoryKind uint8

const (
	DeviceMemory   MemoryKind = iota // on the device
	PinnedMemory                     // page-locked host memory, mapped into the device
	ManagedMemory                    // moves to where it is used: see [Managed]
	PageableMemory                   // plain host memory: see [HostMemory]
)

func (k MemoryKind) String() string {
	switch k {
	case DeviceMemory:
		return "device"
	case PinnedMemory:
		return "pinned"
	case ManagedMemory:
		return "managed"
	case PageableMemory:
		return "pageable"
	}
	return "unknown kind of memory"
}

// AllocOptions are the options of an allocation. The zero value is a plain one.
type AllocOptions struct {
	// Name appears in errors and reports.
	Name string
	// CostScale makes each stored byte count as that many for the running time
	// of kernels, copies and transfers, so that a simulated pool can stand for
	// a larger one. 0 is 1. Hardware refuses any other value.
	CostScale uint32
}

// PinnedBuffer is page-locked host memory that the device can reach. It stays
// valid until [Device.FreePinned]; the collector has no part in it.
type PinnedBuffer struct {
	Host   []byte
	Device DevicePtr
}

// StreamOptions are the options of a stream. The zero value is a non-blocking
// one of the least priority.
type StreamOptions struct {
	// Name appears in errors and reports.
	Name string
	// HighPriority asks for the device's greatest priority, whichever number that
	// is: the second of [Info.Priorities]. It wins over Priority.
	HighPriority bool
	// Priority is the priority where HighPriority is not set, as CUDA counts:
	// smaller is greater, and 0 is the least. What lies outside [Info.Priorities]
	// is clamped to it. It is a hint for kernels that are pending; one that runs
	// is not interrupted, and copies take no notice.
	Priority int
	// Blocking makes a stream that has an implicit order with the legacy default
	// stream: see [Device.LegacyStream].
	Blocking bool
}

// EventOptions are the options of an event. The zero value is one without
// timing, for which a waiting thread spins.
type EventOptions struct {
	// BlockingSync lets [Device.SyncEvent] give the processor away while it
	// waits, and run again somewhat later.
	BlockingSync bool
}

// Info describes a device.
type Info struct {
	Backend    string // "sim", "driver", "gorgonia"
	Name       string
	Simulated  bool
	Capability [2]int // compute capability, major and minor
	Driver     int    // as CUDA counts: 12090 is 12.9; 0 where there is none
	Memory     uint64 // bytes
	Bandwidth  uint64 // of device memory, bytes a second; 0 where unknown
	SMs        int
	MaxGrid    [3]uint32
	MaxBlock   [3]uint32
	MaxThreads int // of one thread block
	// SharedMemory is what a thread block may use of shared memory, static and
	// dynamic, and SharedOptIn what it may after [Device.AllowShared]. Bytes.
	SharedMemory, SharedOptIn uint32
	// Priorities are the least and the greatest priority of streams. Smaller
	// numbers are greater priorities.
	Priorities [2]int
	// FlushesWrites tells that a wait for a word can be followed by a flush of
	// writes from outside the device: see [WaitFlush].
	FlushesWrites bool
	// ConcurrentManaged: the host may touch managed memory while the device
	// works. See [Managed].
	ConcurrentManaged bool
}

// MarkState is an answer of [Device.Poll].
type MarkState uint8

const (
	MarkPending MarkState = iota // neither has happened, as far as the device could see
	MarkFired                    // one of them has; it stays so
)

// Mark is one question of [Device.Poll] and the place of its answer: whether an
// event has fired, or a mapped 32-bit word has cyclically reached a value, or
// either.
type Mark struct {
	Event Event     // 0: none
	Word  DevicePtr // 0: none; else mapped pinned memory
	Want  uint32
	Seen  uint32 // answer: the word as it was read
	State MarkState
	_     [7]byte
}

// Device is one GPU, real or simulated. Methods are safe for use by several
// goroutines, may be called from any OS thread, and leave the thread's current
// context as they found it. None uses the legacy default stream, unless a batch
// names it.
//
// After a sticky error ([Sticky]) the device is dead: every call returns it.
type Device interface {
	// Info describes the device. It does not change and is no crossing.
	Info() Info

	// Clock returns the clock that waits, leases and deadlines count by.
	Clock() clock.Clock

	// Alloc returns size bytes of device memory, aligned to 256 bytes. Its
	// content is undefined.
	Alloc(size uint64, o AllocOptions) (DevicePtr, error)
	// Free frees what Alloc returned. It waits for the work that was submitted
	// before it, as cuMemFree does.
	Free(p DevicePtr) error
	// AllocPinned returns size bytes of mapped, page-locked host memory.
	AllocPinned(size uint64, o AllocOptions) (PinnedBuffer, error)
	// FreePinned frees what AllocPinned returned; the caller sees to it that no
	// work uses it any more.
	FreePinned(b PinnedBuffer) error
	// AllocRange returns the allocation that p lies in; where memory was mapped piece
	// by piece (cuMemMap), the piece: see [Extent].
	AllocRange(p DevicePtr) (base DevicePtr, size uint64, err error)
	// Read and Write copy between Go memory and device memory and return when
	// that is done. They run on a stream of their own and are not ordered with
	// work on others. For tests, set-up and tools.
	Read(dst []byte, src DevicePtr) error
	// Write is Read the other way round.
	Write(dst DevicePtr, src []byte) error

	// LoadModule compiles PTX (or loads a cubin). Its functions are usable at
	// once, without a lazy load at the first launch.
	LoadModule(image []byte) (Module, error)
	// UnloadModule ends a module and its functions. The caller sees to it that
	// no launch of them is pending.
	UnloadModule(m Module) error
	// Function returns the kernel of that name, or ErrNotFound.
	Function(m Module, name string) (Function, error)
	// AllowShared lets launches of f take that many bytes of dynamic shared memory,
	// also where they come to more than [Info.SharedMemory] with the kernel's
	// static ones. Beyond [Info.SharedOptIn] it fails with ErrInvalidValue.
	AllowShared(f Function, dynamic uint32) error

	// NewStream returns a stream, which the caller destroys.
	NewStream(o StreamOptions) (Stream, error)
	// DestroyStream ends a handle at once. Work in the stream still runs.
	DestroyStream(s Stream) error
	// StreamPriority returns the priority that a stream was given.
	StreamPriority(s Stream) (int, error)
	// LegacyStream adopts the legacy default stream of the device's context, for
	// engines that have work there. A command in it waits for all earlier work
	// of blocking streams, and later work of theirs for it; non-blocking streams
	// are exempt. It is the engine's: nothing of this library is ever put there
	// unasked, and destroying the handle leaves the stream alone.
	LegacyStream() (Stream, error)
	// NewEvent returns an event without timing.
	NewEvent() (Event, error)
	// NewEventWithOptions is NewEvent with options.
	NewEventWithOptions(o EventOptions) (Event, error)
	// DestroyEvent ends a handle at once. Records of it and waits for it that
	// are in streams keep their meaning.
	DestroyEvent(e Event) error

	// NewSignal returns a host function that counts its calls, each by one
	// whatever its argument, for [Batch.Signal]. The caller destroys it.
	NewSignal() (HostFunc, error)
	// SignalCount returns how often a function of NewSignal has been called. It
	// is no crossing, and answers on a dead device, too: what stands behind a
	// failure in a stream is never called.
	SignalCount(f HostFunc) (uint64, error)
	// DestroyHostFunc ends a handle at once. Calls that are in streams still
	// come.
	DestroyHostFunc(f HostFunc) error

	// Submit hands the commands of b to their streams, in order, in one
	// crossing, and returns without waiting for them. On a failure the error is
	// a *[SubmitError], which says which commands are in, or for no batch at all
	// [ErrInvalidValue]. It allocates nothing when it succeeds, and keeps nothing
	// of b.
	Submit(b *Batch) error
	// Poll answers each mark in place, in one crossing. The error is the
	// device's, not a mark's; marks behind it are unanswered.
	Poll(marks []Mark) error

	// SyncStream blocks until all work submitted to s has run, and all that it
	// waits for: see [Device.LegacyStream]. As SyncEvent and Sync it ends with
	// ctx, whose cause it then returns, and promptly with the device's error.
	SyncStream(ctx context.Context, s Stream) error
	// SyncEvent blocks until the newest record of e has fired. As in CUDA it
	// returns at once for an event that was never recorded.
	SyncEvent(ctx context.Context, e Event) error
	// Sync blocks until all work submitted to the device has run.
	Sync(ctx context.Context) error

	// Close destroys what is left of the device. Handles are dead afterwards.
	Close() error
}

// Watcher is implemented by devices that can tell without a crossing that marks
// may have moved. Waits look at the counter and poll only when it changed.
type Watcher interface {
	// Activity changes whenever an event fires or the device dies, and may
	// change whenever a stream has written a word or called a host function.
	Activity() uint64
}
