package softnic

import (
	"fmt"

	"github.com/kvgate/kvgate/nixl"
)

// TransferInfo is what a fault is chosen by: one post, or one message that
// belongs to no transfer (it has no entries).
type TransferInfo struct {
	ID           uint64 // counts posts and messages on the fabric from 1
	Initiator    string
	Peer         string
	Op           nixl.Op
	Entries      int
	Bytes        uint64
	Notification []byte // not to be changed
	Attempt      int    // how often this transfer was posted before
}

func (i TransferInfo) String() string {
	return fmt.Sprintf("transfer %d: %s %ss %d bytes in %d entries, peer %s", i.ID, i.Initiator, i.Op, i.Bytes, i.Entries, i.Peer)
}

// FaultKind says what goes wrong.
type FaultKind uint8

const (
	// NoFault lets the post or message go well.
	NoFault FaultKind = iota
	// FailPost refuses the post before anything is handed over.
	FailPost
	// FailHalfWay fails the post at an entry behind Fault.At: the entries
	// before it go on landing with no handle.
	FailHalfWay
	// FailLate lands every byte, then ends with an error.
	FailLate
	// Hang stops moving at Fault.At of the bytes and never ends, not even
	// canceled. At 1 all have landed.
	Hang
	// Slow divides the transfer's bandwidth by Fault.Factor.
	Slow
	// Disconnect cuts the connection once Fault.At of the bytes have landed.
	Disconnect
	// LoseNotification lets the message vanish.
	LoseNotification
	// EarlyNotification delivers the message at the post, before the bytes.
	EarlyNotification
	// DuplicateNotification delivers the message twice.
	DuplicateNotification
)

func (k FaultKind) String() string {
	switch k {
	case NoFault:
		return "none"
	case FailPost:
		return "fail post"
	case FailHalfWay:
		return "fail half way"
	case FailLate:
		return "fail late"
	case Hang:
		return "hang"
	case Slow:
		return "slow"
	case Disconnect:
		return "disconnect"
	case LoseNotification:
		return "lose notification"
	case EarlyNotification:
		return "early notification"
	case DuplicateNotification:
		return "duplicate notification"
	}
	return fmt.Sprintf("fault %d", uint8(k))
}

// Fault is what goes wrong with one post.
type Fault struct {
	Kind   FaultKind
	At     float64 // part of the whole, 0 to 1, where the kind has a place
	Factor float64 // of Slow; below 1, and no number, counts as 1
}

// part returns f.At of n, rounded down.
func (f Fault) part(n uint64) uint64 {
	switch {
	case !(f.At > 0):
		return 0
	case f.At >= 1:
		return n
	}
	return min(n, uint64(f.At*float64(n)))
}

// factor returns f.Factor within bounds: no rate may become 0, which for a flow
// means none of its own.
func (f Fault) factor() float64 {
	if !(f.Factor >= 1) {
		return 1
	}
	return min(f.Factor, 1e100)
}

// Inject has choose asked about every post and every message from now on; nil
// ends that. It runs with the machine locked, like a [Listener], and in a
// fixed order, so that a choice by the info's ID or by a seeded generator can
// be replayed.
func (f *Fabric) Inject(choose func(TransferInfo) Fault) {
	f.world.Enter(0)
	defer f.world.Exit()
	if choose == nil {
		choose = func(TransferInfo) Fault { return Fault{} }
	}
	f.choose = choose
}
