package softnic

import (
	"fmt"
	"time"

	"github.com/kvgate/kvgate/nixl"
)

// Listener is told what happens on a fabric. Nil funcs are not called. They
// run with the machine locked, in the order of its events: they must not block
// nor call into the world, the fabric, an agent or a transfer.
type Listener struct {
	Posted   func(TransferInfo) // a transfer began to leave
	Left     func(ChunkInfo)    // a chunk's source was read
	Landed   func(ChunkInfo)    // a chunk was written
	Ended    func(EndedInfo)    // the initiator saw the end of a transfer
	Notified func(NotifiedInfo) // a message arrived
	Overlap  func(OverlapInfo)  // a region was registered inside another one
}

// ChunkInfo is a run of bytes that moved.
type ChunkInfo struct {
	At         time.Duration // world time
	Transfer   uint64        // as in [TransferInfo]
	Op         nixl.Op
	Entry      int    // of the transfer's lists
	Source     string // agent whose memory was read
	SourceAddr uint64
	Target     string // agent whose memory is written
	TargetAddr uint64
	Len        uint64
}

func (c ChunkInfo) String() string {
	return fmt.Sprintf("%v transfer %d entry %d: %s %#x+%d to %s %#x",
		c.At, c.Transfer, c.Entry, c.Source, c.SourceAddr, c.Len, c.Target, c.TargetAddr)
}

// EndedInfo is the end of a transfer as its initiator saw it.
type EndedInfo struct {
	At       time.Duration
	Transfer uint64
	Agent    string
	Err      error // nil: done
}

func (e EndedInfo) String() string {
	if e.Err == nil {
		return fmt.Sprintf("%v transfer %d of %s done", e.At, e.Transfer, e.Agent)
	}
	return fmt.Sprintf("%v transfer %d of %s: %v", e.At, e.Transfer, e.Agent, e.Err)
}

// NotifiedInfo is a message that arrived.
type NotifiedInfo struct {
	At       time.Duration
	Transfer uint64 // 0: sent by Notify
	From, To string
	Message  []byte // not to be changed
}

func (n NotifiedInfo) String() string {
	return fmt.Sprintf("%v %s to %s: message %q", n.At, n.From, n.To, n.Message)
}

// OverlapInfo is a region that an agent registered inside another one.
type OverlapInfo struct {
	Agent string
	nixl.Overlap
}

func (o OverlapInfo) String() string { return o.Agent + ": " + o.Overlap.String() }

func (l Listener) withDefaults() Listener {
	orNothing(&l.Posted)
	orNothing(&l.Left)
	orNothing(&l.Landed)
	orNothing(&l.Ended)
	orNothing(&l.Notified)
	orNothing(&l.Overlap)
	return l
}

func orNothing[T any](fn *func(T)) {
	if *fn == nil {
		*fn = func(T) {}
	}
}
