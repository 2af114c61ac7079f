package nixl

import (
	"errors"
	"fmt"
)

// What can go wrong, for errors.Is.
var (
	ErrUnavailable   = errors.New("NIXL is not available")
	ErrInvalid       = errors.New("invalid argument")
	ErrNotRegistered = errors.New("memory is not registered")
	ErrNoPeer        = errors.New("unknown peer")
	ErrStalePeer     = errors.New("peer has restarted since")
	ErrBusy          = errors.New("transfer in flight")
	ErrPoisoned      = errors.New("memory may still be touched by a failed transfer")
	ErrNotPosted     = errors.New("transfer was not posted")
	ErrDisconnected  = errors.New("peer disconnected")
	ErrBackend       = errors.New("transport error")
	ErrCanceled      = errors.New("transfer canceled")
	ErrClosed        = errors.New("closed")
)

// Error is a failed operation on an agent or a transfer.
type Error struct {
	Op     string // what was called
	Peer   string // whom it concerned; may be empty
	Detail string
	Err    error // one of the errors above

	// NeverHanded reports that nothing of the transfer was handed to the
	// transport: it has touched no memory and never will. Any other failure
	// leaves open whether bytes are still on their way.
	NeverHanded bool
}

func (e *Error) Error() string {
	s := "nixl: " + e.Op
	if e.Peer != "" {
		s += " " + e.Peer
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return fmt.Sprintf("%s: %v", s, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Quiet reports whether err proves that its transfer touches no memory any
// more. Only a transfer that was never handed to the transport does: an error,
// a disconnect and a release are no proof.
func Quiet(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.NeverHanded
}
