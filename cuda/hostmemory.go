package cuda

// ManagedBuffer is memory that host and device reach at one address and that
// moves to where it is used. It stays valid until [Managed.FreeManaged]; the
// collector has no part in it.
type ManagedBuffer struct {
	Host   []byte
	Device DevicePtr // the address of Host
}

// Managed is implemented by devices with managed memory. Where the device behind
// it has none, its methods return [ErrNotSupported].
//
// Batches, [Device.Read] and [Device.Write] take managed memory as they take
// device memory. What the host wrote before a launch, the launch sees; what work
// wrote, the host sees when it has waited for the work.
//
// Where [Info.ConcurrentManaged] is false the host must not touch managed memory,
// any at all, from a launch until it has waited for every launch, or asked and
// been told that they are over: an access in between ends the program with a
// segmentation fault.
//
// Source: CUDA driver API, cuMemAllocManaged; CUDA C++ Programming Guide, "Unified
// Memory Programming".
type Managed interface {
	// AllocManaged returns size bytes of managed memory, reachable by all devices.
	AllocManaged(size uint64, o AllocOptions) (ManagedBuffer, error)
	// FreeManaged frees what AllocManaged returned, after the work that was
	// submitted before it.
	FreeManaged(b ManagedBuffer) error
}

// HostMemory is implemented by devices that work with host memory which they
// have not allocated. Where the device behind it can not, its methods return
// [ErrNotSupported].
//
// Copies from and to pinned memory, registered memory included, go through
// [Batch.Copy]: the host runs on, and the copy reads its source and writes its
// destination when it runs, piece by piece. Memory that is not page-locked is
// pageable, and copied by the methods here: its bytes go through memory that is.
//
// Source: CUDA driver API, "API synchronization behavior", cuMemHostRegister.
type HostMemory interface {
	// RegisterHost page-locks b, which must not be of Go's heap but mapped, or
	// C's, and stay mapped until UnregisterHost. From then on it is as if
	// [Device.AllocPinned] had returned it, but is not freed with FreePinned.
	// Memory that is pinned already is [ErrHostRegistered].
	RegisterHost(b []byte) (PinnedBuffer, error)
	// UnregisterHost ends that. The caller sees to it that no work uses the
	// memory any more. What was not registered is [ErrHostNotRegistered].
	UnregisterHost(b PinnedBuffer) error

	// On a stream that is captured CopyIn and CopyOut are [ErrStreamCapturing].

	// CopyIn puts a copy from src, pageable memory of any kind, into s. When it
	// returns src has been read, and may be changed, but dst need not have been
	// written. It may wait for s.
	CopyIn(s Stream, dst DevicePtr, src []byte) error
	// CopyOut copies to dst, pageable memory of any kind, behind the work in s,
	// and returns when that is done. It can not be cancelled: until it is over,
	// dst is written to.
	CopyOut(s Stream, dst []byte, src DevicePtr) error
}
