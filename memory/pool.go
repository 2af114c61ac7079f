package memory

import (
	"fmt"
	"math"

	"github.com/kvgate/kvgate/memory/kv"
)

// Reclaimer decides when a block that nobody refers to any more may be handed
// out again. The gate is one: it knows what may still touch the bytes.
type Reclaimer interface {
	// Retire hands over blocks whose last reference is gone. On an error it has
	// taken none of them, and they stay allocated. It keeps nothing of ts.
	Retire(ts []kv.Tenancy) error
	// Reusable appends the blocks that may be handed out again to dst. Each
	// retired tenancy comes back once.
	Reusable(dst []kv.Tenancy) []kv.Tenancy
}

// PoolOptions are the options of a pool.
type PoolOptions struct {
	Name string // appears in errors
	ID   kv.PoolID
	// Blocks is the number of ids, 0 to Blocks-1.
	Blocks int
	// RealNull says that block 0 is a block like any other, as the slots of a
	// state pool are. Otherwise it is the null block: never handed out,
	// referred to or freed.
	RealNull bool
	// Reclaimer is asked before a block is handed out again; nil: it may be at
	// once.
	Reclaimer Reclaimer
}

// PoolCounters count blocks by state. Free, Used, Retired and Null add up to
// Blocks.
type PoolCounters struct {
	Blocks  int
	Free    int
	Used    int // referred to
	Retired int // with the reclaimer
	Null    int // 1 if block 0 is the null block
	Refs    int // references to used blocks
}

// Pool hands out the ids of equal blocks and counts references to them. A free
// block waits behind those that were freed before it. The content of a block
// that was handed out is whatever its last owner left.
//
// A call that returns an error has changed nothing. A Pool is for one goroutine
// at a time.
type Pool struct {
	o       PoolOptions
	blocks  []block
	free    []kv.Block // ring of capacity len(blocks)
	head    int
	nfree   int
	used    int
	retired int
	refs    int
	call    uint32 // number of the current call, for finding duplicates
	scratch []kv.Tenancy
}

type block struct {
	gen   kv.Generation
	refs  int32
	call  uint32 // the last call that listed it
	state blockState
}

type blockState uint8

const (
	blockFree blockState = iota
	blockUsed
	blockRetired
	blockNull
	blockStateEnd
)

var blockStateNames = [blockStateEnd]string{"free", "used", "retired", "null"}

func (s blockState) String() string { return blockStateNames[s] }

// NewPool returns a pool whose blocks are free in the order of their ids.
func NewPool(o PoolOptions) (*Pool, error) {
	least := 2
	if o.RealNull {
		least = 1
	}
	if o.Blocks < least || o.Blocks > math.MaxInt32 {
		return nil, fmt.Errorf("memory: pool %q: %d blocks: want %d to %d: %w", o.Name, o.Blocks, least, math.MaxInt32, ErrOutOfRange)
	}
	p := &Pool{o: o, blocks: make([]block, o.Blocks), free: make([]kv.Block, o.Blocks)}
	first := 0
	if !o.RealNull {
		p.blocks[0].state = blockNull
		first = 1
	}
	for b := first; b < o.Blocks; b++ {
		p.push(kv.Block(b))
	}
	return p, nil
}

// ID returns the id that the pool was made with.
func (p *Pool) ID() kv.PoolID { return p.o.ID }

// Name returns the name that the pool was made with.
func (p *Pool) Name() string { return p.o.Name }

// Counters returns the numbers of blocks by state, as of the last call that
// asked the reclaimer.
func (p *Pool) Counters() PoolCounters {
	c := PoolCounters{Blocks: len(p.blocks), Free: p.nfree, Used: p.used, Retired: p.retired, Refs: p.refs}
	if !p.o.RealNull {
		c.Null = 1
	}
	return c
}

// Collect asks the reclaimer for blocks that may be handed out again and
// returns how many there were. An error names a block that the reclaimer did
// not have; the others are free all the same.
func (p *Pool) Collect() (int, error) {
	if p.o.Reclaimer == nil || p.retired == 0 {
		return 0, nil
	}
	p.scratch = p.o.Reclaimer.Reusable(p.scratch[:0])
	n := 0
	var err error
	for _, t := range p.scratch {
		if t.Block < 0 || int(t.Block) >= len(p.blocks) || p.blocks[t.Block].state != blockRetired || p.blocks[t.Block].gen != t.Generation {
			if err == nil {
				err = p.errorf(t, ErrReclaimer)
			}
			continue
		}
		p.retired--
		p.push(t.Block)
		n++
	}
	return n, err
}

// Alloc takes n free blocks, oldest first, with one reference each, and appends
// their new tenancies to dst. It returns [ErrFull], and dst as it was, if there
// are fewer after the reclaimer was asked.
func (p *Pool) Alloc(n int, dst []kv.Tenancy) ([]kv.Tenancy, error) {
	if n < 0 {
		return dst, fmt.Errorf("memory: pool %q: alloc of %d blocks: %w", p.o.Name, n, ErrOutOfRange)
	}
	if _, err := p.Collect(); err != nil {
		return dst, err
	}
	if n > p.nfree {
		return dst, fmt.Errorf("memory: pool %q: %d blocks wanted, %d free, %d used, %d retired: %w",
			p.o.Name, n, p.nfree, p.used, p.retired, ErrFull)
	}
	for range n {
		id := p.free[p.head]
		if p.head++; p.head == len(p.free) {
			p.head = 0
		}
		b := &p.blocks[id]
		if b.gen++; b.gen == 0 { // 0 is no tenancy
			b.gen = 1
		}
		b.state, b.refs = blockUsed, 1
		dst = append(dst, kv.Tenancy{Block: id, Generation: b.gen})
	}
	p.nfree -= n
	p.used += n
	p.refs += n
	return dst, nil
}

// Ref adds a reference to each block.
func (p *Pool) Ref(ts []kv.Tenancy) error {
	if err := p.check(ts); err != nil {
		return err
	}
	for _, t := range ts {
		if p.blocks[t.Block].refs == math.MaxInt32 {
			return p.errorf(t, fmt.Errorf("reference count: %w", ErrOutOfRange))
		}
	}
	for _, t := range ts {
		p.blocks[t.Block].refs++
	}
	p.refs += len(ts)
	return nil
}

// Free drops a reference to each block. Blocks without any go to the reclaimer,
// in the order listed.
func (p *Pool) Free(ts []kv.Tenancy) error {
	if err := p.check(ts); err != nil {
		return err
	}
	p.scratch = p.scratch[:0]
	for _, t := range ts {
		if p.blocks[t.Block].refs == 1 {
			p.scratch = append(p.scratch, t)
		}
	}
	if p.o.Reclaimer != nil && len(p.scratch) > 0 {
		if err := p.o.Reclaimer.Retire(p.scratch); err != nil {
			return fmt.Errorf("memory: pool %q: retire %d blocks: %w", p.o.Name, len(p.scratch), err)
		}
	}
	for _, t := range ts {
		b := &p.blocks[t.Block]
		if b.refs--; b.refs > 0 {
			continue
		}
		p.used--
		if p.o.Reclaimer == nil {
			p.push(t.Block)
		} else {
			b.state = blockRetired
			p.retired++
		}
	}
	p.refs -= len(ts)
	return nil
}

// Refs returns the number of references to a tenancy; 0 if it is over.
func (p *Pool) Refs(t kv.Tenancy) int {
	if t.Block < 0 || int(t.Block) >= len(p.blocks) {
		return 0
	}
	b := &p.blocks[t.Block]
	if b.state != blockUsed || b.gen != t.Generation {
		return 0
	}
	return int(b.refs)
}

// Grow adds n blocks behind the others. They are handed out like recycled
// ones, so whoever zeroes blocks for their new owners does so for these too:
// there is no other zeroing that their first use could miss.
func (p *Pool) Grow(n int) error {
	if n < 0 || n > math.MaxInt32-len(p.blocks) {
		return fmt.Errorf("memory: pool %q: grow %d blocks by %d: %w", p.o.Name, len(p.blocks), n, ErrOutOfRange)
	}
	free := make([]kv.Block, len(p.blocks)+n)
	for i := range p.nfree {
		free[i] = p.free[(p.head+i)%len(p.free)]
	}
	p.free, p.head = free, 0
	for range n {
		p.blocks = append(p.blocks, block{})
		p.push(kv.Block(len(p.blocks) - 1))
	}
	return nil
}

func (p *Pool) push(id kv.Block) {
	tail := p.head + p.nfree
	if tail >= len(p.free) {
		tail -= len(p.free)
	}
	p.free[tail] = id
	p.nfree++
	b := &p.blocks[id]
	b.state, b.refs = blockFree, 0
}

// check refuses a list that does not name used blocks, each once.
func (p *Pool) check(ts []kv.Tenancy) error {
	if p.call++; p.call == 0 {
		for i := range p.blocks {
			p.blocks[i].call = 0
		}
		p.call = 1
	}
	for _, t := range ts {
		if t.Block < 0 || int(t.Block) >= len(p.blocks) {
			return p.errorf(t, ErrNoBlock)
		}
		b := &p.blocks[t.Block]
		switch {
		case b.state == blockNull:
			return p.errorf(t, ErrNullBlock)
		case t.Generation != b.gen:
			return p.errorf(t, fmt.Errorf("its generation is %d: %w", b.gen, ErrStale))
		case b.state != blockUsed:
			return p.errorf(t, fmt.Errorf("%v: %w", b.state, ErrNotAllocated))
		case b.call == p.call:
			return p.errorf(t, ErrDuplicate)
		}
		b.call = p.call
	}
	return nil
}

func (p *Pool) errorf(t kv.Tenancy, err error) error {
	return fmt.Errorf("memory: pool %q: %v: %w", p.o.Name, t, err)
}
