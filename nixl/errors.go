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
	ErrOverlap       = errors.New("memory overlaps a registered region and is not inside it")
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
	// transport: it has touched no memory and never will.
	NeverHanded bool
	// Over reports that the transport is done with all of the transfer that it
	// was handed: some bytes may have moved, none will. Any other failure
	// leaves open whether bytes are still on their way.
	Over bool
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
// more: it was never handed to the transport, or it was polled to its end and was
// canceled, or its notification could not be sent. Any other error, a disconnect and a release are no proof.
func Quiet(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.NeverHanded || e.Over)
}

// Canceled returns the error of a canceled transfer that the transport is done
// with, for implementations of [Transfer].
func Canceled(op, peer string) *Error {
	return &Error{Op: op, Peer: peer, Err: ErrCanceled, Over: true}
}
