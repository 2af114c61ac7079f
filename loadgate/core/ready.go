package core

import "fmt"

// Ready reports why a step can not use a holder's blocks now: a load into one of
// them is unfinished ([ErrLoading]) or did not arrive ([ErrLost], with the cause).
// It costs O(1).
func (c *Core) Ready(h Holder) error {
	i, err := c.holder("step", h)
	if err != nil {
		return err
	}
	switch hd := &c.holders[i]; {
	case hd.loads > 0:
		return ErrLoading
	case hd.lost > 0:
		return fmt.Errorf("%w: %w", ErrLost, hd.cause)
	}
	return nil
}
