package memory

import "errors"

// Errors of this package. The wrapping error names the block, slot or buffer.
var (
	// ErrFull: not enough is free at the moment.
	ErrFull = errors.New("full")
	// ErrTooLarge: more was asked for than there is in all.
	ErrTooLarge = errors.New("larger than the whole")
	// ErrBusy: parts are still in use.
	ErrBusy = errors.New("still in use")
	// ErrOutOfRange: bytes outside a buffer.
	ErrOutOfRange = errors.New("out of range")

	// ErrNoBlock: the pool has no block of that id; negative ids are padding.
	ErrNoBlock = errors.New("no such block")
	// ErrNullBlock: block 0 of a pool is never handed out, referred to or freed.
	ErrNullBlock = errors.New("null block")
	// ErrNotAllocated: the block is not handed out, so it was freed already.
	ErrNotAllocated = errors.New("block is not allocated")
	// ErrStale: the block has been handed out again since.
	ErrStale = errors.New("stale generation")
	// ErrDuplicate: a block is listed twice in one call.
	ErrDuplicate = errors.New("block listed twice")
	// ErrReclaimer: the reclaimer gave back a block that it does not have.
	ErrReclaimer = errors.New("reclaimer gave back a block it does not hold")

	// ErrReleased: a staging slot was released twice.
	ErrReleased = errors.New("slot already released")
)
