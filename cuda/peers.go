package cuda

// Peers is implemented by devices that work together with others of their
// machine, of the same back end. Where the device behind it can not, its methods
// return [ErrNotSupported].
//
// Addresses are unified: [Batch.Copy], [Device.Read] and [Device.Write] take
// memory of any device, pinned, registered and managed memory is reached from all.
// Kernels and fills reach another device's memory only where access to it has been
// enabled; without, that is an illegal address. All other handles are of the
// device that made them, and refused by others.
//
// Source: CUDA driver API, "Peer Context Memory Access", "Unified Addressing",
// cuStreamWaitEvent.
type Peers interface {
	// CanAccess reports whether access to memory of other can be enabled. A device
	// is no peer of itself.
	CanAccess(other Device) (bool, error)
	// EnableAccess lets this device's work reach memory of other, what is allocated
	// later included; not the other way round. Enabled already, it is
	// [ErrPeerEnabled]; where it can not be, [ErrPeerUnsupported] or
	// [ErrInvalidDevice].
	EnableAccess(other Device) error
	// DisableAccess ends that. The caller sees to it that no work needs it any more.
	// Not enabled, it is [ErrPeerNotEnabled].
	DisableAccess(other Device) error
	// ImportEvent returns a handle on this device of an event of other, to be waited
	// for and asked after, but not recorded. It follows the event's records. Who
	// imports it destroys it, and keeps the event until then. When other dies,
	// Poll and SyncEvent of the handle return [ErrInvalidContext], which names
	// other, and this device lives on.
	ImportEvent(other Device, e Event) (Event, error)
}
