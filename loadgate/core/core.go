package core

import (
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// Pool describes one pool of blocks.
type Pool struct {
	Name string
	// Blocks is the number of blocks, ids 0 to Blocks-1.
	Blocks int
	// BlockBytes is the number of bytes of a block, over all its pages.
	BlockBytes uint64
	// HasNull says that block 0 is the null block.
	HasNull bool
	// Groups are the uses that a block can be put to. Without any there is one,
	// which zeroes all bytes of a block if NeedsZero is set.
	Groups    []Group
	NeedsZero bool
	// Foreign says that ids and generations come from an allocator outside: a
	// tenancy begins with [Core.Hold] or [Core.Append] and ends with
	// [Core.Retire], and [Core.Reusable] tells when its block may be handed out
	// again. Otherwise blocks come from [Core.Alloc] and go by [Core.Free].
	Foreign bool
}

// Group is what a block of a pool is used for.
type Group struct {
	Name string
	// Filling is what has to be written before a new owner uses a block, if
	// NeedsFill says so.
	Filling   Filling
	NeedsFill bool
	// Bytes are those that the filling writes, in order and apart from each
	// other; none: the whole block. A load that brings all of them leaves
	// nothing to be filled.
	Bytes []kv.Range
}

// Options configure a core. The zero value of each field is its default.
type Options struct {
	Mode Mode
	// HoldLimit is how long a transfer may be held before [Overdue] reports it,
	// in nanoseconds; 0 is never. Nothing is freed or failed by age.
	HoldLimit kv.Instant
	// Ledger is shared with the cores of other ranks, and Rank is which of them
	// this core is for. Without one the core has a ledger of its own.
	Ledger *Ledger
	Rank   int
}

// Core is the state of the gate. It has no clock, lock, goroutine or device:
// inputs are methods, outputs are [Action]s, and the same inputs give the same
// outputs. It is for one goroutine at a time.
//
// All state is in flat arrays that keep their memory, so that a steady state
// allocates nothing.
type Core struct {
	opts   Options
	pools  []poolState
	groups []groupState
	view   *rankView

	blocks  []block
	losses  map[int32]*loss // of blocks that are lost
	holders []holder
	nodes   []node
	plans   []plan
	tickets []ticket
	pieces  []piece
	launchs []launch
	lines   []timeline
	fences  fenceTable
	steps   stepQueue
	aging   agingList // held transfers, oldest first

	freeHolders, freeNodes, freePlans, freeTickets, freePieces, freeLaunchs []int32

	now       kv.Instant
	number    uint64 // of the newest plan or transfer: their common order
	visit     uint32 // stamp for duplicate detection
	dead      error
	fault     error // see must
	actions   []Action
	scratch   []kv.Point
	waits     []kv.Point
	launching []int32
	wanted    []int
	freed     []kv.Tenancy
	before    []LaunchID
	counts    Counters
}

type poolState struct {
	Pool
	base     int32 // of its blocks in Core.blocks
	reusable []kv.Tenancy
}

type groupState struct {
	Group
	pool kv.PoolID
	size uint64 // of Bytes
}

// New returns the core for the given pools, whose ids are their indices.
func New(pools []Pool, o Options) (*Core, error) {
	if err := o.Mode.check(); err != nil {
		return nil, err
	}
	if o.HoldLimit < 0 {
		return nil, fmt.Errorf("loadgate: hold limit %d: %w", o.HoldLimit, ErrInvalid)
	}
	if len(pools) == 0 || len(pools) > 1<<16-1 {
		return nil, fmt.Errorf("loadgate: %d pools: %w", len(pools), ErrInvalid)
	}
	c := &Core{opts: o, losses: map[int32]*loss{}}
	pools = slices.Clone(pools)
	total := 0
	for i := range pools {
		p := &pools[i]
		if p.Blocks <= 0 || p.Blocks > 1<<31-1-total {
			return nil, fmt.Errorf("loadgate: pool %d (%s): %d blocks: %w", i, p.Name, p.Blocks, ErrInvalid)
		}
		if p.BlockBytes == 0 {
			return nil, fmt.Errorf("loadgate: pool %d (%s): blocks without bytes: %w", i, p.Name, ErrInvalid)
		}
		if len(p.Groups) == 0 {
			p.Groups = []Group{{Name: p.Name, NeedsFill: p.NeedsZero}}
		}
		for k, g := range p.Groups {
			gs, err := newGroup(kv.PoolID(i), p, g)
			if err != nil {
				return nil, fmt.Errorf("loadgate: pool %d (%s): group %d (%s): %w", i, p.Name, k, g.Name, err)
			}
			c.groups = append(c.groups, gs)
		}
		if len(c.groups) > 1<<16-1 {
			return nil, fmt.Errorf("loadgate: %d groups: %w", len(c.groups), ErrInvalid)
		}
		c.pools = append(c.pools, poolState{Pool: *p, base: int32(total)})
		total += p.Blocks
	}
	l := o.Ledger
	if l == nil {
		var err error
		if l, err = NewLedger(pools, 1, nil); err != nil {
			return nil, err
		}
	}
	var err error
	if c.view, err = l.join(o.Rank, pools); err != nil {
		return nil, err
	}
	c.blocks = make([]block, total)
	for i := range c.blocks {
		c.blocks[i].init()
	}
	return c, nil
}

func newGroup(p kv.PoolID, of *Pool, g Group) (groupState, error) {
	if g.Filling > Resetting {
		return groupState{}, fmt.Errorf("%v: %w", g.Filling, ErrInvalid)
	}
	if len(g.Bytes) == 0 {
		g.Bytes = []kv.Range{{Len: of.BlockBytes}}
	}
	gs := groupState{Group: g, pool: p}
	end := uint64(0)
	for _, r := range g.Bytes {
		if r.Len == 0 || r.Off < end || r.Off > of.BlockBytes || r.Len > of.BlockBytes-r.Off {
			return gs, fmt.Errorf("bytes %v of blocks of %d, behind %d: %w", r, of.BlockBytes, end, ErrInvalid)
		}
		end = r.End()
		gs.size += r.Len
	}
	return gs, nil
}

// Mode returns the mode that the core was made with.
func (c *Core) Mode() Mode { return c.opts.Mode }

// Pools returns how many pools there are.
func (c *Core) Pools() int { return len(c.pools) }

func refuse(op, what string, err error) error {
	return fmt.Errorf("loadgate: %s: %s: %w", op, what, err)
}

// must takes an error that can only come of a fault of the core's own. The first
// is kept, and everything is refused from then on: a gate that has lost count
// must not go on ordering.
func (c *Core) must(err error) {
	if err != nil && c.fault == nil {
		c.fault = fmt.Errorf("loadgate: internal: %w", err)
	}
}

// alive refuses everything once the device is dead.
func (c *Core) alive(op string) error {
	if c.fault != nil {
		return c.fault
	}
	if c.dead != nil {
		return fmt.Errorf("loadgate: %s: %w: %w", op, ErrDead, c.dead)
	}
	return nil
}

// take returns a free slot of a, growing it when there is none.
func take[T any](a *[]T, free *[]int32) int32 {
	if n := len(*free); n > 0 {
		i := (*free)[n-1]
		*free = (*free)[:n-1]
		return i
	}
	var zero T
	*a = append(*a, zero)
	return int32(len(*a) - 1)
}

// handle packs a slot and the generation of its use.
func handle(i int32, gen uint32) uint64 { return uint64(gen)<<32 | uint64(uint32(i)+1) }

func unpack(h uint64) (int32, uint32) { return int32(uint32(h)) - 1, uint32(h >> 32) }
