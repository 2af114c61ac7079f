package memory

import "errors"

// Errors of this package. The wrapping error names the slot or buffer.
var (
	// ErrFull: not enough is free at the moment.
	ErrFull = errors.New("full")
	// ErrTooLarge: more was asked for than there is in all.
	ErrTooLarge = errors.New("larger than the whole")
	// ErrBusy: parts are still in use.
	ErrBusy = errors.New("still in use")
	// ErrOutOfRange: bytes outside a buffer.
	ErrOutOfRange = errors.New("out of range")

	// ErrReleased: a staging slot was released twice.
	ErrReleased = errors.New("slot already released")
)
