package core

import (
	"fmt"

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
	// NeedsZero says that a block has to be zeroed before a new owner uses it.
	NeedsZero bool
}

// Options configure a core. The zero value of each field is its default.
type Options struct {
	Mode Mode
	// HoldLimit is how long a transfer may be held before [Overdue] reports it,
	// in nanoseconds; 0 is never. Nothing is freed or failed by age.
	HoldLimit kv.Instant
}

// Core is the state of the gate. It has no clock, lock, goroutine or device:
// inputs are methods, outputs are [Action]s, and the same inputs give the same
// outputs. It is for one goroutine at a time.
//
// All state is in flat arrays that keep their memory, so that a steady state
// allocates nothing.
type Core struct {
	opts  Options
	pools []poolState

	blocks  []block
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
	before    []LaunchID
	counts    Counters
}

type poolState struct {
	Pool
	base     int32 // of its blocks in Core.blocks
	reusable []kv.Tenancy
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
	c := &Core{opts: o}
	total := 0
	for i, p := range pools {
		if p.Blocks <= 0 || p.Blocks > 1<<31-1-total {
			return nil, fmt.Errorf("loadgate: pool %d (%s): %d blocks: %w", i, p.Name, p.Blocks, ErrInvalid)
		}
		if p.BlockBytes == 0 {
			return nil, fmt.Errorf("loadgate: pool %d (%s): blocks without bytes: %w", i, p.Name, ErrInvalid)
		}
		c.pools = append(c.pools, poolState{Pool: p, base: int32(total)})
		total += p.Blocks
	}
	c.blocks = make([]block, total)
	for i := range c.blocks {
		c.blocks[i].init()
	}
	return c, nil
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
