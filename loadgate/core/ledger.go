package core

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// MaxRanks is how many ranks may share a [Ledger].
const MaxRanks = 16

// Ledger owns the ids of blocks: which are free, how many references each has,
// and the generation that it is in. A [Core] owns what may still touch a block;
// no fact is in both.
//
// Several cores may share a ledger, one for each tensor-parallel rank of a
// process. Each rank then makes the same allocations, references and frees in
// the same order. The rank that comes first decides, the others are given the
// same answer, and so all have equal ids. A block is free again when each rank
// has freed it and each rank's core says that nothing touches it any more. A
// rank that asks for something else than the ranks before it is refused with
// [ErrDiverged].
//
// A ledger allocates nothing in a steady state. Its methods are called by cores.
type Ledger struct {
	mu      Locker // guards all below where ranks have goroutines of their own; nil: not needed
	pools   []ledgerPool
	entries []entry // of all pools
	ranks   []*rankView
	all     uint16 // a bit for each rank

	log  []ledgerOp // what not every rank has done yet
	done uint64     // operations before the log
}

// ledgerPool is a pool and its free blocks: a ring, the block that was freed
// first in front.
type ledgerPool struct {
	Pool
	base   int32 // of its blocks in Ledger.entries
	free   []kv.Block
	head   int
	nfree  int
	used   int
	refs   int
	closed int // freed, and not quiet on every rank
}

// entry is what all ranks share of one block.
type entry struct {
	gen     kv.Generation
	refs    int32
	pending uint16 // the ranks that are not done with the newest tenancy
}

// rankView is what one rank has been told. Only its own core touches it.
type rankView struct {
	*Ledger
	rank int
	bit  uint16
	next uint64 // operations that this rank has done
	at   []tenancy

	scratch []kv.Tenancy
}

// tenancy is the newest tenancy of a block that a rank knows of.
type tenancy struct {
	gen   kv.Generation
	state BlockState
}

type opKind uint8

const (
	opAlloc opKind = iota
	opRef
	opFree
)

var opNames = [...]string{"alloc", "ref", "free"}

func (k opKind) String() string { return opNames[k] }

// ledgerOp is an operation with its outcome.
type ledgerOp struct {
	kind  opKind
	pool  kv.PoolID
	wants []Want
	args  []kv.Tenancy
	out   []kv.Tenancy // what was allocated, or what has no reference any more
	err   error
	left  uint16 // ranks that have yet to do it
}

// Want is a number of blocks of a group.
type Want struct {
	Group  kv.Group
	Blocks int
}

// FullError says that a pool has too few free blocks. It wraps [ErrFull].
type FullError struct {
	Pool string
	Want int
	Free int
	Used int // referred to
	Soon int // freed, and not quiet yet: they come back by themselves
}

func (e *FullError) Error() string {
	return fmt.Sprintf("loadgate: pool %q: %d blocks wanted, %d free, %d used, %d in quarantine: %v", e.Pool, e.Want, e.Free, e.Used, e.Soon, ErrFull)
}

func (e *FullError) Unwrap() error { return ErrFull }

// PoolCounters count a pool's blocks by state. Free, Used, Quarantined and Null
// add up to Blocks.
type PoolCounters struct {
	Blocks      int
	Free        int
	Used        int // referred to
	Quarantined int // freed, and not quiet yet
	Null        int // 1 if block 0 is the null block
	Refs        int // references to used blocks
}

// Locker is a lock, as sync.Locker is.
type Locker interface {
	Lock()
	Unlock()
}

// NewLedger returns a ledger for so many ranks over the given pools, whose ids
// are their indices. All blocks are free, in the order of their ids. The lock is
// for cores that several goroutines call, each its own; it is held for a few
// operations on memory and never while waiting. nil is for one goroutine.
func NewLedger(pools []Pool, ranks int, lock Locker) (*Ledger, error) {
	if ranks < 1 || ranks > MaxRanks {
		return nil, fmt.Errorf("loadgate: ledger for %d ranks, want 1 to %d: %w", ranks, MaxRanks, ErrInvalid)
	}
	if len(pools) == 0 || len(pools) > 1<<16-1 {
		return nil, fmt.Errorf("loadgate: %d pools: %w", len(pools), ErrInvalid)
	}
	l := &Ledger{mu: lock, ranks: make([]*rankView, ranks), all: uint16(1<<ranks - 1)}
	total := 0
	for i, p := range pools {
		if p.Blocks <= 0 || p.Blocks > math.MaxInt32-total {
			return nil, fmt.Errorf("loadgate: pool %d (%s): %d blocks: %w", i, p.Name, p.Blocks, ErrInvalid)
		}
		if p.Foreign && ranks > 1 {
			return nil, fmt.Errorf("loadgate: pool %d (%s): a ledger of %d ranks hands out the ids itself: %w", i, p.Name, ranks, ErrInvalid)
		}
		lp := ledgerPool{Pool: p, base: int32(total)}
		if !p.Foreign {
			lp.free = make([]kv.Block, p.Blocks)
			for b := kv.Block(0); int(b) < p.Blocks; b++ {
				if b != kv.Null || !p.HasNull {
					lp.push(b)
				}
			}
		}
		l.pools = append(l.pools, lp)
		total += p.Blocks
	}
	l.entries = make([]entry, total)
	return l, nil
}

// join makes a core the ledger's for one rank.
func (l *Ledger) join(rank int, pools []Pool) (*rankView, error) {
	if rank < 0 || rank >= len(l.ranks) {
		return nil, fmt.Errorf("loadgate: rank %d of a ledger for %d: %w", rank, len(l.ranks), ErrInvalid)
	}
	if len(pools) != len(l.pools) {
		return nil, fmt.Errorf("loadgate: rank %d has %d pools, its ledger %d: %w", rank, len(pools), len(l.pools), ErrInvalid)
	}
	for i, p := range pools {
		q := l.pools[i].Pool
		if p.Blocks != q.Blocks || p.HasNull != q.HasNull || p.Foreign != q.Foreign || len(p.Groups) != len(q.Groups) {
			return nil, fmt.Errorf("loadgate: rank %d: pool %d (%s) has %d blocks and %d groups, the ledger's %d and %d: %w",
				rank, i, p.Name, p.Blocks, len(p.Groups), q.Blocks, len(q.Groups), ErrInvalid)
		}
	}
	l.lock()
	defer l.unlock()
	if l.ranks[rank] != nil {
		return nil, fmt.Errorf("loadgate: rank %d of the ledger has a gate already: %w", rank, ErrState)
	}
	if l.done+uint64(len(l.log)) > 0 && len(l.ranks) == 1 {
		return nil, fmt.Errorf("loadgate: the ledger is in use: %w", ErrState)
	}
	v := &rankView{Ledger: l, rank: rank, bit: 1 << rank, at: make([]tenancy, len(l.entries))}
	l.ranks[rank] = v
	return v, nil
}

func (l *Ledger) lock() {
	if l.mu != nil {
		l.mu.Lock()
	}
}

func (l *Ledger) unlock() {
	if l.mu != nil {
		l.mu.Unlock()
	}
}

func (p *ledgerPool) push(b kv.Block) {
	tail := p.head + p.nfree
	if tail >= len(p.free) {
		tail -= len(p.free)
	}
	p.free[tail] = b
	p.nfree++
}

func (p *ledgerPool) pop() kv.Block {
	b := p.free[p.head]
	if p.head++; p.head == len(p.free) {
		p.head = 0
	}
	p.nfree--
	return b
}

// counters returns the numbers of a pool's blocks.
func (l *Ledger) counters(p kv.PoolID) PoolCounters {
	l.lock()
	defer l.unlock()
	lp := &l.pools[p]
	c := PoolCounters{Blocks: lp.Blocks, Free: lp.nfree, Used: lp.used, Quarantined: lp.closed, Refs: lp.refs}
	if lp.HasNull {
		c.Null = 1
	}
	if lp.Foreign {
		c.Free = lp.Blocks - c.Null - c.Used - c.Quarantined
	}
	return c
}

// replay returns the outcome of this rank's next operation if another rank has
// done it already.
func (v *rankView) replay(kind opKind, p kv.PoolID, wants []Want, args []kv.Tenancy) (ledgerOp, bool, error) {
	if v.next == v.done+uint64(len(v.log)) {
		return ledgerOp{}, false, nil
	}
	o := &v.log[v.next-v.done]
	if o.kind != kind || o.pool != p || !slices.Equal(o.wants, wants) || !slices.Equal(o.args, args) {
		return ledgerOp{}, false, fmt.Errorf("loadgate: rank %d: operation %d is %v %v%v of pool %d, another rank did %v %v%v of pool %d: %w",
			v.rank, v.next, kind, wants, args, p, o.kind, o.wants, o.args, o.pool, ErrDiverged)
	}
	out := *o
	o.left &^= v.bit
	v.next++
	for len(v.log) > 0 && v.log[0].left == 0 {
		v.log = v.log[1:]
		v.done++
	}
	return out, true, nil
}

// maxSkew bounds how many operations a rank may be ahead of the slowest.
const maxSkew = 1 << 20

// lead says whether this rank may be the first to do an operation.
func (v *rankView) lead() error {
	if len(v.log) >= maxSkew {
		return fmt.Errorf("loadgate: rank %d is %d operations ahead of the slowest rank of its ledger: %w", v.rank, len(v.log), ErrState)
	}
	return nil
}

// logged enters an operation that this rank was the first to do.
func (v *rankView) logged(o ledgerOp) {
	if len(v.ranks) == 1 {
		return
	}
	o.wants, o.args, o.out = slices.Clone(o.wants), slices.Clone(o.args), slices.Clone(o.out)
	o.left = v.all &^ v.bit
	v.log = append(v.log, o)
	v.next++
}

// alloc takes blocks for all wants, or none.
func (v *rankView) alloc(wants []Want, pools []int, dst []kv.Tenancy) ([]kv.Tenancy, error) {
	v.lock()
	defer v.unlock()
	o, have, err := v.replay(opAlloc, 0, wants, nil)
	if err != nil {
		return dst, err
	}
	if have {
		return append(dst, o.out...), o.err
	}
	if err := v.lead(); err != nil {
		return dst, err
	}
	for p, n := range pools {
		if lp := &v.pools[p]; n > lp.nfree {
			err := &FullError{Pool: lp.Name, Want: n, Free: lp.nfree, Used: lp.used, Soon: lp.closed}
			v.logged(ledgerOp{kind: opAlloc, wants: wants, err: err})
			return dst, err
		}
	}
	from := len(dst)
	for _, w := range wants {
		lp := &v.pools[v.poolOfGroup(w.Group)]
		for range w.Blocks {
			id := lp.pop()
			e := &v.entries[lp.base+int32(id)]
			if e.gen++; e.gen == 0 { // 0 is no tenancy
				e.gen = 1
			}
			e.refs, e.pending = 1, v.all
			dst = append(dst, kv.Tenancy{Block: id, Generation: e.gen})
		}
		lp.used += w.Blocks
		lp.refs += w.Blocks
	}
	v.logged(ledgerOp{kind: opAlloc, wants: wants, out: dst[from:]})
	return dst, nil
}

func (l *Ledger) poolOfGroup(g kv.Group) kv.PoolID {
	for i := range l.pools {
		if n := kv.Group(len(l.pools[i].Groups)); g >= n {
			g -= n
			continue
		}
		return kv.PoolID(i)
	}
	return 0 // the core has checked the group
}

// ref adds a reference to each block. The core has checked that all are live.
func (v *rankView) ref(p kv.PoolID, ts []kv.Tenancy) error {
	v.lock()
	defer v.unlock()
	o, have, err := v.replay(opRef, p, nil, ts)
	if err != nil || have {
		return cmp.Or(err, o.err)
	}
	if err := v.lead(); err != nil {
		return err
	}
	lp := &v.pools[p]
	for _, t := range ts {
		if e := &v.entries[lp.base+int32(t.Block)]; e.refs == math.MaxInt32 {
			return fmt.Errorf("loadgate: ref: pool %d %v: reference count: %w", p, t, ErrInvalid)
		}
	}
	for _, t := range ts {
		v.entries[lp.base+int32(t.Block)].refs++
	}
	lp.refs += len(ts)
	v.logged(ledgerOp{kind: opRef, pool: p, args: ts})
	return nil
}

// lastRefs returns which of the tenancies have no other reference. It changes
// nothing, and is valid until the next call.
func (v *rankView) lastRefs(p kv.PoolID, ts []kv.Tenancy) []kv.Tenancy {
	v.lock()
	defer v.unlock()
	v.scratch = v.scratch[:0]
	if v.next != v.done+uint64(len(v.log)) {
		v.scratch = append(v.scratch, v.log[v.next-v.done].out...)
		return v.scratch
	}
	for _, t := range ts {
		if v.entries[v.pools[p].base+int32(t.Block)].refs == 1 {
			v.scratch = append(v.scratch, t)
		}
	}
	return v.scratch
}

// drop takes a reference from each block and appends those without any to dst.
func (v *rankView) drop(p kv.PoolID, ts, dst []kv.Tenancy) ([]kv.Tenancy, error) {
	v.lock()
	defer v.unlock()
	o, have, err := v.replay(opFree, p, nil, ts)
	if err != nil {
		return dst, err
	}
	if have {
		return append(dst, o.out...), o.err
	}
	if err := v.lead(); err != nil {
		return dst, err
	}
	from := len(dst)
	lp := &v.pools[p]
	for _, t := range ts {
		e := &v.entries[lp.base+int32(t.Block)]
		if e.refs--; e.refs == 0 {
			lp.used--
			lp.closed++
			dst = append(dst, t)
		}
	}
	lp.refs -= len(ts)
	v.logged(ledgerOp{kind: opFree, pool: p, args: ts, out: dst[from:]})
	return dst, nil
}

// begin starts a tenancy of a foreign pool.
func (v *rankView) begin(p kv.PoolID, b int32, gen kv.Generation) {
	v.entries[b] = entry{gen: gen, refs: 1, pending: v.all}
	v.pools[p].used++
	v.pools[p].refs++
}

// end ends a tenancy of a foreign pool.
func (v *rankView) end(p kv.PoolID, b int32) {
	v.entries[b].refs = 0
	v.pools[p].used--
	v.pools[p].refs--
	v.pools[p].closed++
}

// quiet says that nothing of this rank touches a block that it has freed. The
// answer is whether that holds for all ranks now, and the block is free.
func (v *rankView) quiet(p kv.PoolID, b int32) bool {
	v.lock()
	defer v.unlock()
	e, lp := &v.entries[b], &v.pools[p]
	e.pending &^= v.bit
	if e.pending != 0 {
		return false
	}
	lp.closed--
	if !lp.Foreign {
		lp.push(kv.Block(b - lp.base))
	}
	return true
}

// refsOf returns how many references a block has.
func (v *rankView) refsOf(b int32) int {
	v.lock()
	defer v.unlock()
	return int(v.entries[b].refs)
}
