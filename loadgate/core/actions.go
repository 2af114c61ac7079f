package core

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
)

// ActionKind says what the runtime has to do, or to pass on.
type ActionKind uint8

const (
	// DoLaunch: launch Launch and tell [Core.Launched] or [Core.LaunchFailed].
	DoLaunch ActionKind = iota + 1
	// DoPost: hand Transfer to its transport and tell [Core.Posted] or
	// [Core.PostFailed].
	DoPost
	// TellDone: Transfer is over for its caller; Err is nil when it succeeded.
	TellDone
	// TellFailed: a load into a block of Holder did not arrive, because of Err.
	TellFailed
	// TellOverdue: Transfer has been held for longer than the limit; Err says
	// what for.
	TellOverdue
)

func (k ActionKind) String() string {
	switch k {
	case DoLaunch:
		return "launch"
	case DoPost:
		return "post"
	case TellDone:
		return "done"
	case TellFailed:
		return "failed"
	case TellOverdue:
		return "overdue"
	}
	return fmt.Sprintf("action %d", uint8(k))
}

// Action is one output of the core. Which fields mean something depends on the
// kind.
type Action struct {
	Kind     ActionKind
	Launch   LaunchID
	Transfer Transfer
	Holder   Holder
	Err      error
}

func (c *Core) emit(a Action) { c.actions = append(c.actions, a) }

// Actions appends what has to be done since the last call to dst, in order.
func (c *Core) Actions(dst []Action) []Action {
	dst = append(dst, c.actions...)
	clear(c.actions)
	c.actions = c.actions[:0]
	return dst
}

// Pending reports whether there are actions.
func (c *Core) Pending() bool { return len(c.actions) > 0 }

// Counters count what the core did since it was made, and what it holds.
type Counters struct {
	Tenancies    uint64 // begun
	Launches     uint64
	ZeroedBlocks uint64
	Loads        uint64 // asked for
	Stores       uint64
	HeldAtFirst  uint64 // transfers that did not leave at once
	Succeeded    uint64
	Failed       uint64
	Withdrawn    uint64 // canceled before they were posted
	Abandoned    uint64 // canceled later
	Overdue      uint64
	Held         int // now
	InFlight     int // now: posting, posted, or abandoned and not quiet
	Poisoned     int // now: transfers not proven quiet
}

// Counters returns a copy of the counters.
func (c *Core) Counters() Counters { return c.counts }

// BlockInfo is the state of a block, for tests, reports and tools.
type BlockInfo struct {
	State      BlockState
	Generation kv.Generation
	Group      kv.Group
	Busy       bool // work on it is under way
	Dirty      bool // must be zeroed before use
	Lost       bool // a load into it did not arrive
	Poisoned   bool
	Holders    int
	Transfers  int
	Plans      int // open, naming it through a holder or singly
}

// Block returns the state of a block.
func (c *Core) Block(p kv.PoolID, id kv.Block) (BlockInfo, error) {
	if int(p) >= len(c.pools) || id < 0 || int(id) >= c.pools[p].Blocks {
		return BlockInfo{}, fmt.Errorf("loadgate: pool %d has no block %d: %w", p, id, ErrInvalid)
	}
	b := c.pools[p].base + int32(id)
	bl := &c.blocks[b]
	info := BlockInfo{State: c.view.at[b].state, Generation: c.view.at[b].gen, Group: bl.group, Busy: !c.fired(c.uses(b)), Dirty: bl.dirty,
		Lost: bl.lost, Plans: int(bl.plans)}
	for n := bl.nodes; n >= 0; n = c.nodes[n].nextInBlock {
		info.Holders++
		info.Plans += int(c.holders[c.nodes[n].holder].plans)
	}
	for q := bl.pieces; q >= 0; q = c.pieces[q].nextInBlock {
		info.Transfers++
		info.Poisoned = info.Poisoned || c.tickets[c.pieces[q].ticket].state == Poisoned
	}
	return info, nil
}

// Generation returns the newest tenancy of a block that the core knows of, or 0.
func (c *Core) Generation(p kv.PoolID, id kv.Block) kv.Generation {
	if int(p) >= len(c.pools) || id < 0 || int(id) >= c.pools[p].Blocks {
		return 0
	}
	return c.view.at[c.pools[p].base+int32(id)].gen
}

// Poisoned appends the tenancies of a pool that a transfer not proven quiet may
// touch.
func (c *Core) Poisoned(p kv.PoolID, dst []kv.Tenancy) []kv.Tenancy {
	if int(p) >= len(c.pools) || c.counts.Poisoned == 0 {
		return dst
	}
	ps := &c.pools[p]
	for id := range kv.Block(ps.Blocks) {
		if info, _ := c.Block(p, id); info.Poisoned {
			dst = append(dst, kv.Tenancy{Block: id, Generation: info.Generation})
		}
	}
	return dst
}
