package cuda

import "fmt"

// Pool is a pool of device memory that is allocated and freed in stream order.
// Zero is the device's current pool, its default one unless somebody made
// another one current.
type Pool uint64

// PoolAttribute is a setting or a figure of a pool. The numbers are CUDA's:
// driver API, CUmemPool_attribute.
type PoolAttribute uint8

// Settings are 0 or 1, and on when a pool is made, but for the threshold, which
// is 0. Figures are bytes; the highest ones can be set to 0, to begin anew.
const (
	PoolFollowEvents     PoolAttribute = iota + 1 // memory freed in another stream is used behind an event that orders it
	PoolOpportunistic                             // memory whose free has been reached is used by any stream
	PoolInternalWaits                             // a stream may be made to wait for a free of another
	PoolReleaseThreshold                          // how many bytes are kept, when somebody synchronises
	PoolReserved                                  // what the pool has taken of the device's memory
	PoolReservedHigh                              // the most of it so far
	PoolUsed                                      // what is allocated of that
	PoolUsedHigh                                  // the most of it so far
)

var poolAttributes = [...]string{PoolFollowEvents: "follow events", PoolOpportunistic: "opportunistic reuse",
	PoolInternalWaits: "internal waits", PoolReleaseThreshold: "release threshold", PoolReserved: "reserved",
	PoolReservedHigh: "most reserved", PoolUsed: "used", PoolUsedHigh: "most used"}

func (a PoolAttribute) String() string {
	if int(a) < len(poolAttributes) && a != 0 {
		return poolAttributes[a]
	}
	return fmt.Sprintf("pool attribute %d", uint8(a))
}

// StreamAllocator is implemented by devices that allocate memory in stream
// order. Methods are safe for use by several goroutines; a driver that lacks
// what one needs returns [ErrNotSupported] with the symbol.
//
// What AllocAsync returns may be used by work behind it in its stream, and in
// other streams by work that an event puts behind it; what FreeAsync was given,
// by work before that, and in other streams by work that an event puts before
// it. Between the two it is memory as any other, and [Device.Free] frees it as
// well. Neither waits for anything, and neither can be captured: the error of a
// stream that is being captured is [ErrStreamCapturing].
type StreamAllocator interface {
	// AllocAsync returns size bytes of device memory, of undefined content.
	AllocAsync(s Stream, size uint64, p Pool, o AllocOptions) (DevicePtr, error)
	// FreeAsync frees what AllocAsync returned, behind what is in s.
	FreeAsync(s Stream, ptr DevicePtr) error

	// NewPool returns a pool, which the caller destroys. The name appears in
	// errors.
	NewPool(name string) (Pool, error)
	// DestroyPool ends a handle at once; the pool gives its memory back when all
	// that was allocated of it has been freed. The current pool is not destroyed
	// as such: [ErrInvalidValue].
	DestroyPool(p Pool) error
	// PoolAttribute returns a setting or a figure.
	PoolAttribute(p Pool, a PoolAttribute) (uint64, error)
	// SetPoolAttribute changes a setting, or sets a highest figure to 0.
	SetPoolAttribute(p Pool, a PoolAttribute, v uint64) error
	// TrimPool gives memory back that nobody uses until the pool has taken no
	// more than keep bytes, or there is none such.
	TrimPool(p Pool, keep uint64) error
}
