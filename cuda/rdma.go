package cuda

import "fmt"

// RDMA says how a device and the NICs that read and write its memory directly
// go together. Source: driver API, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_*.
type RDMA struct {
	// Supported: a NIC can reach the device's memory without a copy in between.
	Supported bool
	// NeedsFlush: the device does not by itself see a NIC's writes in order:
	// after a transfer into its memory, and before work that reads the bytes is
	// submitted, call [RDMADevice.FlushRDMA].
	NeedsFlush bool
	// CanFlush: [RDMADevice.FlushRDMA] works.
	CanFlush bool
}

// MemorySync says by what blocking copies and fills of memory are over when
// they return. CUDA lets some return earlier (driver API, "API synchronization
// behavior"), and a NIC does not wait for them as a stream does.
type MemorySync uint8

const (
	SyncNotNeeded MemorySync = iota // host memory: there they are over
	SyncRange                       // an attribute of the memory
	SyncContext                     // a flag of the context, for all memory in it
)

var memorySyncNames = [...]string{"not needed", "attribute of the memory", "flag of the context"}

func (s MemorySync) String() string {
	if int(s) < len(memorySyncNames) {
		return memorySyncNames[s]
	}
	return fmt.Sprintf("memory sync %d", uint8(s))
}

// RDMADevice is implemented by devices that know about NICs. Nothing is known
// of others. Methods are safe for use by several goroutines.
type RDMADevice interface {
	// RDMA does not change, and is no crossing.
	RDMA() RDMA
	// PrepareRDMA readies size bytes at p, in one allocation or several, to be
	// registered with a NIC: from then on blocking copies and fills of them are
	// over when they return. It returns by what, the widest where allocations
	// differ. Memory of the virtual memory functions has no such attribute: for
	// it the whole context is told. Where that can't be done either the error is
	// [ErrNotSupported], and it is no failure of the memory: whoever makes
	// blocking copies or fills has to synchronise behind them by other means.
	// Bytes that are in no allocation are [ErrInvalidValue].
	PrepareRDMA(p DevicePtr, size uint64) (MemorySync, error)
	// FlushRDMA returns when all that NICs have written into the device's memory
	// before is visible to work of the device. [ErrNotSupported] where the
	// driver or the device can't do it.
	FlushRDMA() error
}
