package core

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
)

// Why the gate refuses, for errors.Is. A refused call has changed nothing.
var (
	ErrInvalid     = errors.New("invalid argument")
	ErrStale       = errors.New("stale")
	ErrNull        = errors.New("the null block")
	ErrQuarantined = errors.New("in quarantine")
	ErrHeld        = errors.New("still held")
	ErrNotHeld     = errors.New("not held by this holder")
	ErrFreed       = errors.New("already freed")
	ErrFull        = errors.New("full")
	ErrDiverged    = errors.New("the ranks of a ledger differ")
	ErrLoading     = errors.New("load unfinished")
	ErrLost        = errors.New("load failed")
	ErrSending     = errors.New("being sent")
	ErrTransfer    = errors.New("a transfer may touch it")
	ErrInUse       = errors.New("a step that uses it is being launched")
	ErrPoisoned    = errors.New("poisoned: a transfer on it is not proven quiet")
	ErrUnready     = errors.New("zeroing is not launched yet")
	ErrState       = errors.New("not possible in this state")
	ErrBackwards   = errors.New("a timeline ran backwards")
	ErrCanceled    = errors.New("canceled")
	ErrPeerLost    = errors.New("peer lost")
	ErrDead        = errors.New("the device is dead")
)

// blockError names the block of a refusal.
func (c *Core) blockError(op string, b int32, gen kv.Generation, err error) error {
	p, id := c.poolOf(b)
	return fmt.Errorf("loadgate: %s: pool %d block %d gen %d: %w", op, p, id, gen, err)
}
