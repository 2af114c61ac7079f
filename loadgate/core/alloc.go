package core

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
)

// Alloc takes free blocks, those that were freed first, with one reference each,
// and appends their tenancies to dst in the order of the wants. It takes all of
// them, or none and returns a *[FullError].
func (c *Core) Alloc(wants []Want, dst []kv.Tenancy) ([]kv.Tenancy, error) {
	if err := c.alive("alloc"); err != nil {
		return dst, err
	}
	c.wanted = append(c.wanted[:0], make([]int, len(c.pools))...)
	for _, w := range wants {
		if int(w.Group) >= len(c.groups) || w.Blocks < 0 || w.Blocks > 1<<31-1 {
			return dst, refuse("alloc", fmt.Sprintf("%d blocks of group %d of %d", w.Blocks, w.Group, len(c.groups)), ErrInvalid)
		}
		p := c.groups[w.Group].pool
		if c.pools[p].Foreign {
			return dst, refuse("alloc", fmt.Sprintf("the blocks of pool %d (%s) are handed out by somebody else", p, c.pools[p].Name), ErrInvalid)
		}
		c.wanted[p] += w.Blocks
	}
	from := len(dst)
	dst, err := c.view.alloc(wants, c.wanted, dst)
	if err != nil {
		return dst, err
	}
	at := from
	for _, w := range wants {
		base := c.pools[c.groups[w.Group].pool].base
		for range w.Blocks {
			c.begin(base+int32(dst[at].Block), dst[at].Generation, w.Group)
			at++
		}
	}
	return dst, nil
}

// Ref adds a reference to each block.
func (c *Core) Ref(p kv.PoolID, ts []kv.Tenancy) error {
	if err := c.owned("ref", p, ts, false); err != nil {
		return err
	}
	return c.view.ref(p, ts)
}

// Free takes a reference from each block. The tenancy of a block without any is
// over: the block may be handed out again as soon as nothing touches it any
// more. Free is refused as a whole when a block is stale, listed twice, or would
// lose its last reference while a holder that has not been dropped has it.
func (c *Core) Free(p kv.PoolID, ts []kv.Tenancy) error {
	if err := c.owned("free", p, ts, true); err != nil {
		return err
	}
	for _, t := range c.view.lastRefs(p, ts) {
		b := c.pools[p].base + int32(t.Block)
		for n := c.blocks[b].nodes; n >= 0; n = c.nodes[n].nextInBlock {
			if !c.holders[c.nodes[n].holder].dropped {
				return c.blockError("free", b, t.Generation, ErrHeld)
			}
		}
	}
	var err error
	if c.freed, err = c.view.drop(p, ts, c.freed[:0]); err != nil {
		return err
	}
	for _, t := range c.freed {
		b := c.pools[p].base + int32(t.Block)
		c.view.at[b].state = Quarantined
		c.settleBlock(b)
	}
	return nil
}

// owned refuses tenancies that are not under way; once also those that are
// listed twice.
func (c *Core) owned(op string, p kv.PoolID, ts []kv.Tenancy, once bool) error {
	switch {
	case int(p) >= len(c.pools):
		return refuse(op, fmt.Sprintf("pool %d of %d", p, len(c.pools)), ErrInvalid)
	case c.pools[p].Foreign:
		return refuse(op, fmt.Sprintf("the blocks of pool %d (%s) are handed out by somebody else", p, c.pools[p].Name), ErrInvalid)
	}
	c.visit++
	for _, t := range ts {
		b, err := c.index(op, p, t)
		if err != nil {
			return err
		}
		at := c.view.at[b]
		switch {
		case at.gen == t.Generation && at.state != Live:
			return c.blockError(op, b, t.Generation, ErrFreed)
		case at.gen != t.Generation || at.state != Live:
			return c.blockError(op, b, t.Generation, ErrStale)
		case once && c.blocks[b].visit == c.visit:
			return c.blockError(op, b, t.Generation, fmt.Errorf("listed twice: %w", ErrInvalid))
		}
		c.blocks[b].visit = c.visit
	}
	return nil
}

// Refs returns the number of references to a tenancy; 0 if it is over.
func (c *Core) Refs(p kv.PoolID, t kv.Tenancy) int {
	b, err := c.live("refs", p, t)
	if err != nil {
		return 0
	}
	return c.view.refsOf(b)
}

// PoolCounters returns the numbers of a pool's blocks by state; of a pool that
// does not exist the zero value.
func (c *Core) PoolCounters(p kv.PoolID) PoolCounters {
	if int(p) >= len(c.pools) {
		return PoolCounters{}
	}
	return c.view.counters(p)
}

// firstGroup returns the first group of a pool.
func (c *Core) firstGroup(p kv.PoolID) kv.Group {
	g := 0
	for i := range p {
		g += len(c.pools[i].Groups)
	}
	return kv.Group(g)
}
