package core

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
)

// Holder is a request's set of tenancies. The handle is dead once dropped.
type Holder uint64

func (h Holder) String() string {
	i, gen := unpack(uint64(h))
	return fmt.Sprintf("holder %d.%d", i, gen)
}

// Slot returns a small number that no other holder of the core has until this
// one is gone, for tables beside the core.
func (h Holder) Slot() int {
	i, _ := unpack(uint64(h))
	return int(i)
}

// Held reports whether a holder is there and has not been dropped.
func (c *Core) Held(h Holder) bool {
	i, gen := unpack(uint64(h))
	return i >= 0 && int(i) < len(c.holders) && c.holders[i].used && !c.holders[i].dropped && c.holders[i].gen == gen
}

// holder counts what stands in the way of a step, so that planning and
// submitting one look at the holder alone and not at its blocks.
type holder struct {
	gen     uint32
	used    bool
	dropped bool // no new plan; goes when the open ones are closed
	nodes   int32
	blocks  int32
	plans   int32  // open
	begun   int32  // of those, begun
	loads   int32  // pieces of unfinished loads on its blocks
	dirty   int32  // blocks to be zeroed before use
	lost    int32  // blocks whose load did not arrive
	pending int32  // blocks whose zeroing has no fence yet
	last    set    // the last steps that used it
	steps   uint64 // submitted so far
	ready   set    // what a step has to wait for
	cause   error  // the first failure, while lost > 0
	told    uint64
	visit   uint32
}

// node is one tenancy in one holder, chained both ways.
type node struct {
	block, holder            int32
	nextInBlock, prevInBlock int32
	nextInHolder, prevInHold int32
	joined                   uint64 // the holder's steps at that time
}

// usedBy reports whether a step of the node's holder was submitted while the
// block was in it: steps from before it joined have not touched it.
func (c *Core) usedBy(n int32) bool { return c.nodes[n].joined != c.holders[c.nodes[n].holder].steps }

func (c *Core) holder(op string, h Holder) (int32, error) {
	i, gen := unpack(uint64(h))
	if i < 0 || int(i) >= len(c.holders) {
		return 0, refuse(op, h.String(), ErrInvalid)
	}
	if hd := &c.holders[i]; !hd.used || hd.dropped || hd.gen != gen {
		return 0, refuse(op, h.String(), ErrStale)
	}
	return i, nil
}

// Hold makes a holder of tenancies of one group. In a foreign pool those that
// are new begin here.
func (c *Core) Hold(g kv.Group, ts []kv.Tenancy) (Holder, error) {
	if err := c.alive("hold"); err != nil {
		return 0, err
	}
	if err := c.admitAll("hold", g, ts, -1); err != nil {
		return 0, err
	}
	i := c.newHolder()
	c.appendAll(i, g, ts)
	return Holder(handle(i, c.holders[i].gen)), nil
}

// Append adds tenancies of one group to a holder. It costs O(len(ts)).
func (c *Core) Append(h Holder, g kv.Group, ts []kv.Tenancy) error {
	if err := c.alive("append"); err != nil {
		return err
	}
	i, err := c.holder("append", h)
	if err != nil {
		return err
	}
	if err := c.admitAll("append", g, ts, i); err != nil {
		return err
	}
	c.appendAll(i, g, ts)
	return nil
}

func (c *Core) newHolder() int32 {
	i := take(&c.holders, &c.freeHolders)
	hd := &c.holders[i]
	*hd = holder{gen: hd.gen + 1, used: true, nodes: -1}
	return i
}

func (c *Core) admitAll(op string, g kv.Group, ts []kv.Tenancy, holder int32) error {
	if int(g) >= len(c.groups) {
		return refuse(op, fmt.Sprintf("group %d of %d", g, len(c.groups)), ErrInvalid)
	}
	c.visit++
	for _, t := range ts {
		b, err := c.admit(op, c.groups[g].pool, t)
		if err != nil {
			return err
		}
		if c.view.at[b].state == Live && c.blocks[b].group != g {
			return c.blockError(op, b, t.Generation, fmt.Errorf("of group %d, not %d: %w", c.blocks[b].group, g, ErrInvalid))
		}
		if c.blocks[b].visit == c.visit || holder >= 0 && c.find(b, holder) >= 0 {
			return c.blockError(op, b, t.Generation, fmt.Errorf("listed twice: %w", ErrInvalid))
		}
		c.blocks[b].visit = c.visit
	}
	return nil
}

func (c *Core) appendAll(i int32, g kv.Group, ts []kv.Tenancy) {
	for _, t := range ts {
		b := c.pools[c.groups[g].pool].base + int32(t.Block)
		c.beginForeign(b, t.Generation, g)
		c.attach(i, b)
	}
}

// attach puts a live block into a holder.
func (c *Core) attach(i, b int32) {
	ready := c.uses(b)
	n := take(&c.nodes, &c.freeNodes)
	bl, hd := &c.blocks[b], &c.holders[i]
	c.nodes[n] = node{block: b, holder: i, nextInBlock: bl.nodes, prevInBlock: -1, nextInHolder: hd.nodes, prevInHold: -1, joined: hd.steps}
	if bl.nodes >= 0 {
		c.nodes[bl.nodes].prevInBlock = n
	}
	if hd.nodes >= 0 {
		c.nodes[hd.nodes].prevInHold = n
	}
	bl.nodes, hd.nodes = n, n
	hd.blocks++
	hd.loads += bl.loads
	if bl.dirty {
		hd.dirty++
	}
	if bl.lost {
		hd.lost++
		if hd.cause == nil {
			hd.cause = c.causeOf(b)
		}
	}
	if bl.launch >= 0 {
		hd.pending++
	}
	hd.ready = c.union(hd.ready, ready)
}

// detach takes a block out of its holder, stamping it with the holder's steps.
func (c *Core) detach(n int32) {
	nd := c.nodes[n]
	bl, hd := &c.blocks[nd.block], &c.holders[nd.holder]
	if c.usedBy(n) {
		bl.stamp = c.union(bl.stamp, hd.last)
	}
	if nd.prevInBlock >= 0 {
		c.nodes[nd.prevInBlock].nextInBlock = nd.nextInBlock
	} else {
		bl.nodes = nd.nextInBlock
	}
	if nd.nextInBlock >= 0 {
		c.nodes[nd.nextInBlock].prevInBlock = nd.prevInBlock
	}
	if nd.prevInHold >= 0 {
		c.nodes[nd.prevInHold].nextInHolder = nd.nextInHolder
	} else {
		hd.nodes = nd.nextInHolder
	}
	if nd.nextInHolder >= 0 {
		c.nodes[nd.nextInHolder].prevInHold = nd.prevInHold
	}
	hd.blocks--
	hd.loads -= bl.loads
	if bl.dirty {
		hd.dirty--
	}
	if bl.lost {
		hd.lost--
	}
	if bl.launch >= 0 {
		hd.pending--
	}
	if hd.lost == 0 {
		hd.cause = nil
	}
	c.freeNodes = append(c.freeNodes, n)
	c.settleBlock(nd.block)
}

// find returns the node of a block in a holder, or -1. It costs as much as the
// block has holders.
func (c *Core) find(b, holder int32) int32 {
	for n := c.blocks[b].nodes; n >= 0; n = c.nodes[n].nextInBlock {
		if c.nodes[n].holder == holder {
			return n
		}
	}
	return -1
}

// Drop lets go of a holder. Its blocks stay with it until the plans that name
// it are closed; then they carry the fences of its last steps. The tenancies go
// on until they are retired.
func (c *Core) Drop(h Holder) error {
	i, err := c.holder("drop", h)
	if err != nil {
		return err
	}
	c.dropHolder(i)
	return nil
}

func (c *Core) dropHolder(i int32) {
	hd := &c.holders[i]
	hd.dropped = true
	if hd.plans > 0 {
		return
	}
	for hd.nodes >= 0 {
		c.detach(hd.nodes)
	}
	hd.used, hd.last, hd.ready = false, 0, 0
	c.freeHolders = append(c.freeHolders, i)
}

// Remove lets go of some tenancies of a holder, as a sliding window does.
func (c *Core) Remove(h Holder, p kv.PoolID, ts []kv.Tenancy) error {
	i, err := c.holder("remove", h)
	if err != nil {
		return err
	}
	c.visit++
	for _, t := range ts {
		b, err := c.live("remove", p, t)
		if err != nil {
			return err
		}
		if c.find(b, i) < 0 || c.blocks[b].visit == c.visit {
			return c.blockError("remove", b, t.Generation, ErrNotHeld)
		}
		c.blocks[b].visit = c.visit
	}
	if len(ts) == 0 {
		return nil
	}
	if c.holders[i].plans == 0 {
		for _, t := range ts {
			c.detach(c.find(c.pools[p].base+int32(t.Block), i))
		}
		return nil
	}
	// Open plans name the holder and so these blocks: a holder of their own,
	// dropped already, stands in those plans for them.
	z := c.newHolder()
	zd, hd := &c.holders[z], &c.holders[i]
	zd.last, zd.ready = hd.last, hd.ready
	for _, t := range ts {
		b := c.pools[p].base + int32(t.Block)
		c.detach(c.find(b, i))
		c.attach(z, b)
	}
	for k := range c.plans {
		pl := &c.plans[k]
		if pl.state == planFree {
			continue
		}
		for _, have := range pl.holders {
			if have == i {
				pl.holders = append(pl.holders, z)
				c.holders[z].plans++
				if pl.state == planBegun {
					c.holders[z].begun++
				}
				break
			}
		}
	}
	c.dropHolder(z)
	return nil
}
