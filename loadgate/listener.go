package loadgate

import (
	"fmt"

	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
)

// Listener is told of what happens in a gate. Any of the functions may be nil.
// They run on the goroutine whose call made it happen, after that call has let
// go of the gate, in the order of the events; they may call the gate.
type Listener struct {
	// Launched: a zeroing or reset is in its stream.
	Launched func(LaunchInfo)
	// Held: a transfer did not leave at once.
	Held func(TransferInfo)
	// Left: the gate lets a transfer go, to a poster. It holds nothing back any
	// more; what still passes until Posted is the transport's time.
	Left func(TransferInfo)
	// Posted: the transport has taken a transfer.
	Posted func(TransferInfo)
	// Done: a transfer is over for its caller.
	Done func(TransferInfo)
	// Failed: a load into a block of Holder did not arrive. Every holder of the
	// block is told, once for a transfer.
	Failed func(FailedInfo)
	// Overdue: a transfer has been held for longer than the limit. Err says for
	// what. Told once for a transfer.
	Overdue func(TransferInfo)
}

// LaunchInfo describes a launch of the gate. Blocks is valid during the call.
type LaunchInfo struct {
	Filling Filling
	Pool    kv.PoolID
	Blocks  []kv.Block
	Where   core.Where
	Fence   event.Fence
}

func (i LaunchInfo) String() string {
	return fmt.Sprintf("%v pool %d blocks %v on %v", i.Filling, i.Pool, i.Blocks, i.Where)
}

// TransferInfo describes a transfer at one moment.
type TransferInfo struct {
	Transfer Transfer
	Kind     Kind
	Holder   Holder
	Peer     nixl.Peer
	// Spec is what it moves. It is not to be changed, and valid during the call.
	Spec *nixl.Spec
	Err  error
	// Why says what a held transfer waits for.
	Why string
}

func (i TransferInfo) String() string {
	s := fmt.Sprintf("%v of %v, %v, %d bytes with %v", i.Kind, i.Holder, i.Transfer, i.Bytes(), i.Peer)
	switch {
	case i.Err != nil:
		return fmt.Sprintf("%s: %v", s, i.Err)
	case i.Why != "":
		return fmt.Sprintf("%s: waits for %s", s, i.Why)
	}
	return s
}

// Bytes returns how many bytes the transfer moves.
func (i TransferInfo) Bytes() (n uint64) {
	if i.Spec != nil {
		for k := range i.Spec.Local {
			n += i.Spec.Local[k].Len
		}
	}
	return n
}

// FailedInfo says that a load did not arrive at one of a holder's blocks.
type FailedInfo struct {
	Holder   Holder
	Transfer Transfer
	Err      error
}

func (i FailedInfo) String() string { return fmt.Sprintf("%v: %v: %v", i.Holder, i.Transfer, i.Err) }

type noticeKind uint8

const (
	noticeLaunched noticeKind = iota
	noticeHeld
	noticeLeft
	noticePosted
	noticeDone
	noticeFailed
	noticeOverdue
)

// notice is an event that waits for the gate to be unlocked.
type notice struct {
	kind     noticeKind
	launch   LaunchInfo
	transfer TransferInfo
	holder   Holder
}

// note keeps an event, which the listener has a function for.
func (g *Gate) note(n notice) { g.notices = append(g.notices, n) }

// unlock lets go of the gate, and then wakes waits and tells the listener.
func (g *Gate) unlock() {
	told, woke, l := g.notices, g.woke, &g.listener
	g.notices, g.woke = nil, false
	g.mu.Unlock()
	if woke {
		g.clk.Notify()
	}
	for i := range told {
		n := &told[i]
		switch n.kind {
		case noticeLaunched:
			l.Launched(n.launch)
		case noticeHeld:
			l.Held(n.transfer)
		case noticeLeft:
			l.Left(n.transfer)
		case noticePosted:
			l.Posted(n.transfer)
		case noticeDone:
			l.Done(n.transfer)
		case noticeFailed:
			l.Failed(FailedInfo{Holder: n.holder, Transfer: n.transfer.Transfer, Err: n.transfer.Err})
		case noticeOverdue:
			l.Overdue(n.transfer)
		}
	}
}
