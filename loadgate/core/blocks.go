package core

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
)

// BlockState says who may touch a block.
type BlockState uint8

const (
	// Free: nobody holds it; the pool may hand it out.
	Free BlockState = iota
	// Live: it has a tenancy.
	Live
	// Quarantined: its tenancy is over, but something may still touch it that
	// no stream can wait for: an open plan, or a transfer that is not quiet.
	Quarantined
)

var blockStateNames = [...]string{"free", "live", "quarantined"}

func (s BlockState) String() string {
	if int(s) < len(blockStateNames) {
		return blockStateNames[s]
	}
	return fmt.Sprintf("block state %d", uint8(s))
}

// block is all that the core knows of one block. Indices are -1 for none.
type block struct {
	group  kv.Group
	dirty  bool    // must be filled before use
	owed   Filling // with what, while dirty
	lost   bool    // a load into it did not arrive; see Core.losses
	nodes  int32
	pieces int32
	launch int32 // zeroing that has left the core and has no fence yet
	plans  int32 // open plans that name it singly
	loads  int32 // pieces of unfinished loads
	visit  uint32
	stamp  set // uses by holders that have let go of it, and by single tenancies
	zeroed set // zeroing and resetting in this tenancy
}

func (b *block) init() {
	*b = block{dirty: true, nodes: -1, pieces: -1, launch: -1}
}

func (c *Core) poolOf(b int32) (kv.PoolID, kv.Block) {
	for i := len(c.pools) - 1; ; i-- {
		if b >= c.pools[i].base {
			return kv.PoolID(i), kv.Block(b - c.pools[i].base)
		}
	}
}

// index returns the place of a pool's block, refusing ids outside the pool and
// the null block.
func (c *Core) index(op string, p kv.PoolID, t kv.Tenancy) (int32, error) {
	if int(p) >= len(c.pools) {
		return 0, fmt.Errorf("loadgate: %s: pool %d: %w", op, p, ErrInvalid)
	}
	ps := &c.pools[p]
	if t.Block < 0 || int(t.Block) >= ps.Blocks {
		return 0, fmt.Errorf("loadgate: %s: pool %d has no block %d: %w", op, p, t.Block, ErrInvalid)
	}
	if t.Block == kv.Null && ps.HasNull {
		return 0, fmt.Errorf("loadgate: %s: pool %d block 0: %w", op, p, ErrNull)
	}
	if t.Generation == 0 {
		return 0, fmt.Errorf("loadgate: %s: pool %d block %d without a generation: %w", op, p, t.Block, ErrInvalid)
	}
	return ps.base + int32(t.Block), nil
}

// live returns the place of a tenancy that is under way.
func (c *Core) live(op string, p kv.PoolID, t kv.Tenancy) (int32, error) {
	b, err := c.index(op, p, t)
	if err != nil {
		return 0, err
	}
	if at := c.view.at[b]; at.state != Live || at.gen != t.Generation {
		return 0, c.blockError(op, b, t.Generation, ErrStale)
	}
	return b, nil
}

// admit checks that a tenancy is under way or, in a foreign pool, may begin.
func (c *Core) admit(op string, p kv.PoolID, t kv.Tenancy) (int32, error) {
	if int(p) < len(c.pools) && !c.pools[p].Foreign {
		return c.live(op, p, t)
	}
	b, err := c.index(op, p, t)
	if err != nil {
		return 0, err
	}
	at := c.view.at[b]
	switch {
	case at.state == Live && at.gen == t.Generation:
	case int32(t.Generation-at.gen) <= 0: // generations wrap, and 0 is skipped
		return 0, c.blockError(op, b, t.Generation, ErrStale)
	case at.state == Quarantined:
		return 0, c.blockError(op, b, t.Generation, ErrQuarantined)
	case at.state == Live:
		return 0, c.blockError(op, b, t.Generation, ErrHeld)
	}
	return b, nil
}

// begin starts a tenancy.
func (c *Core) begin(b int32, gen kv.Generation, g kv.Group) {
	c.view.at[b] = tenancy{gen, Live}
	bl := &c.blocks[b]
	// What earlier tenancies left under way is one set from here on.
	bl.stamp, bl.zeroed = c.union(bl.stamp, bl.zeroed), 0
	if bl.lost { // nobody holds it, so no count has it
		bl.lost = false
		delete(c.losses, b)
	}
	bl.group, bl.dirty, bl.owed = g, c.groups[g].NeedsFill, c.groups[g].Filling
	c.counts.Tenancies++
}

// beginForeign starts a tenancy of a foreign pool if it is not under way.
func (c *Core) beginForeign(b int32, gen kv.Generation, g kv.Group) {
	if c.view.at[b].state != Live {
		c.view.begin(c.groups[g].pool, b, gen)
		c.begin(b, gen, g)
	}
}

// Retire says that tenancies of a foreign pool are over: their blocks may be given to new owners
// as soon as the core allows, which [Core.Reusable] tells. It is refused as a
// whole when one of them is stale, listed twice, or in a holder that has not
// been dropped.
func (c *Core) Retire(p kv.PoolID, ts []kv.Tenancy) error {
	if int(p) < len(c.pools) && !c.pools[p].Foreign {
		return refuse("retire", fmt.Sprintf("pool %d (%s) hands out its blocks itself", p, c.pools[p].Name), ErrInvalid)
	}
	c.visit++
	for _, t := range ts {
		b, err := c.index("retire", p, t)
		if err != nil {
			return err
		}
		bl := &c.blocks[b]
		switch {
		case bl.visit == c.visit:
			return c.blockError("retire", b, t.Generation, ErrFreed)
		case c.view.at[b].gen == t.Generation && c.view.at[b].state != Live:
			return c.blockError("retire", b, t.Generation, ErrFreed)
		}
		bl.visit = c.visit
		if _, err := c.admit("retire", p, t); err != nil {
			return err
		}
		for n := bl.nodes; n >= 0; n = c.nodes[n].nextInBlock {
			if !c.holders[c.nodes[n].holder].dropped {
				return c.blockError("retire", b, t.Generation, ErrHeld)
			}
		}
	}
	for _, t := range ts {
		b := c.pools[p].base + int32(t.Block)
		c.beginForeign(b, t.Generation, c.firstGroup(p)) // a tenancy that was never used is over at once
		c.view.end(p, b)
		c.view.at[b].state = Quarantined
		c.settleBlock(b)
	}
	return nil
}

// settleBlock gives a block of a tenancy that is over back, if nothing holds it
// in quarantine.
func (c *Core) settleBlock(b int32) {
	bl := &c.blocks[b]
	if c.view.at[b].state != Quarantined || bl.nodes >= 0 || bl.pieces >= 0 || bl.launch >= 0 || bl.plans > 0 {
		return
	}
	c.view.at[b].state = Free
	p, id := c.poolOf(b)
	if c.view.quiet(p, b) && c.pools[p].Foreign {
		c.pools[p].reusable = append(c.pools[p].reusable, kv.Tenancy{Block: id, Generation: c.view.at[b].gen})
	}
}

// Reusable appends the tenancies of a foreign pool whose blocks have come back since the last
// call. The blocks may be busy: work on them may be under way, which whatever
// comes next is made to wait for on the device.
func (c *Core) Reusable(p kv.PoolID, dst []kv.Tenancy) []kv.Tenancy {
	if int(p) >= len(c.pools) {
		return dst
	}
	r := &c.pools[p].reusable
	dst = append(dst, *r...)
	*r = (*r)[:0]
	return dst
}

// uses returns the set of all work submitted on a block: by earlier and present
// owners, and zeroing.
func (c *Core) uses(b int32) set {
	bl := &c.blocks[b]
	s := c.union(bl.stamp, bl.zeroed)
	for n := bl.nodes; n >= 0; n = c.nodes[n].nextInBlock {
		if c.usedBy(n) {
			s = c.union(s, c.holders[c.nodes[n].holder].last)
		}
	}
	return s
}

// setDirty and setLost keep the holders' counts.
func (c *Core) setDirty(b int32, dirty bool) {
	bl := &c.blocks[b]
	if bl.dirty == dirty {
		return
	}
	bl.dirty = dirty
	for n := bl.nodes; n >= 0; n = c.nodes[n].nextInBlock {
		c.holders[c.nodes[n].holder].dirty += count(dirty)
	}
}

func (c *Core) setLost(b int32, lost bool) {
	bl := &c.blocks[b]
	if bl.lost == lost {
		return
	}
	bl.lost = lost
	for n := bl.nodes; n >= 0; n = c.nodes[n].nextInBlock {
		c.holders[c.nodes[n].holder].lost += count(lost)
	}
}

func (c *Core) addLoads(b, delta int32) {
	bl := &c.blocks[b]
	bl.loads += delta
	for n := bl.nodes; n >= 0; n = c.nodes[n].nextInBlock {
		c.holders[c.nodes[n].holder].loads += delta
	}
}

func count(up bool) int32 {
	if up {
		return 1
	}
	return -1
}

// Uses returns all work on tenancies that has not fired: by earlier and present
// owners, and zeroing. The slice is valid until the next call.
func (c *Core) Uses(p kv.PoolID, ts []kv.Tenancy) ([]kv.Point, error) {
	var s set
	for _, t := range ts {
		b, err := c.live("uses", p, t)
		if err != nil {
			return nil, err
		}
		s = c.union(s, c.uses(b))
	}
	return c.points(s), nil
}

// clip turns the whole block into its bytes, and refuses bytes that the block
// does not have.
func (c *Core) clip(op string, b int32, gen kv.Generation, bytes kv.Range) (kv.Range, error) {
	p, _ := c.poolOf(b)
	size := c.pools[p].BlockBytes
	if bytes == kv.WholeBlock {
		bytes.Len = size
	}
	if bytes.Len == 0 || bytes.Off > size || bytes.Len > size-bytes.Off {
		return bytes, c.blockError(op, b, gen, fmt.Errorf("bytes %v of %d: %w", bytes, size, ErrInvalid))
	}
	return bytes, nil
}
