package event

import (
	"errors"
	"fmt"
)

// ErrBackwards is returned when a 32-bit counter was seen to go down.
var ErrBackwards = errors.New("counter went backwards")

// Extend32 turns readings of a 32-bit counter that wraps into a 64-bit one.
// Between two readings the counter may advance by less than 2^31; a larger
// step can not be told from a step back. The zero value starts at 0.
//
// It is for programs that count in words of their own ([cuda.Batch.WriteWord],
// or a CPU's store): a registry's marks have events, and need no counter.
type Extend32 struct{ last uint64 }

// Next takes a reading and returns the extended count. A reading below the
// last one is [ErrBackwards] and changes nothing.
func (e *Extend32) Next(word uint32) (uint64, error) {
	step := word - uint32(e.last)
	if step >= 1<<31 {
		return e.last, fmt.Errorf("event: word %#x after %#x: %w", word, uint32(e.last), ErrBackwards)
	}
	e.last += uint64(step)
	return e.last, nil
}

// Last returns the count so far.
func (e *Extend32) Last() uint64 { return e.last }
