package nixl

import "fmt"

// MemoryType says what kind of memory a descriptor's address lies in.
type MemoryType uint8

// The memory types of NIXL.
const (
	DRAM MemoryType = iota
	VRAM
	Block
	Object
	File
)

func (m MemoryType) String() string {
	switch m {
	case DRAM:
		return "DRAM"
	case VRAM:
		return "VRAM"
	case Block:
		return "BLOCK"
	case Object:
		return "OBJECT"
	case File:
		return "FILE"
	}
	return fmt.Sprintf("memory type %d", uint8(m))
}

// Descriptor is a run of bytes in registered memory.
type Descriptor struct {
	Addr   uint64 // or offset, for files and objects
	Len    uint64 // bytes
	Device uint64 // index of the device, or file descriptor, or object key
}

func (d Descriptor) String() string {
	return fmt.Sprintf("%#x+%d dev %d", d.Addr, d.Len, d.Device)
}

// Op is the direction of a transfer, as seen by the agent that posts it.
type Op uint8

const (
	Read  Op = iota // remote to local
	Write           // local to remote
)

func (o Op) String() string {
	if o == Read {
		return "read"
	}
	return "write"
}

// Peer is a remote agent as this agent knows it. The generation tells two
// lives of one name apart: handles made for an earlier one are refused.
type Peer struct {
	Name       string
	Generation uint32
}

func (p Peer) String() string { return fmt.Sprintf("%s#%d", p.Name, p.Generation) }

// Spec describes a transfer. Local and Remote have the same number of entries,
// and entries at the same index the same length.
type Spec struct {
	Op           Op
	Peer         Peer
	Local        []Descriptor
	Remote       []Descriptor
	LocalMemory  MemoryType
	RemoteMemory MemoryType
	// Notification, if not nil, reaches the peer after all bytes have, and
	// only if all have. It leaves when the initiator sees the completion, that
	// is, when it polls [Transfer.Status].
	Notification []byte
}

// Notification is a message from a peer.
type Notification struct {
	From    string
	Message []byte
}

// Status is the state of a transfer.
type Status uint8

const (
	Idle       Status = iota // made, not posted
	InProgress               // posted, not at its end
	Done                     // every byte has arrived
	Failed                   // at its end with an error; see [Quiet]
)

func (s Status) String() string {
	switch s {
	case Idle:
		return "idle"
	case InProgress:
		return "in progress"
	case Done:
		return "done"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("status %d", uint8(s))
}
