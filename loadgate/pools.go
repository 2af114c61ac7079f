package loadgate

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// PoolOptions describe one pool of blocks.
type PoolOptions struct {
	Name string
	// Table has every byte of a block that a transfer may touch: a descriptor
	// belongs to the block in which the table finds it. Byte ranges of a block
	// count over its segments. Its pool id has to be the pool's place in
	// [Options.Pools].
	Table layout.Table
	// Groups are the uses that a block can be put to. Group ids are counted over
	// all pools, in their order. Without groups the pool has one, which zeroes
	// the whole Table if NeedsZero is set.
	Groups    []GroupOptions
	NeedsZero bool
	// Foreign says that the ids of blocks come from a block manager of the
	// engine's own: a tenancy begins when [Gate.Hold] or [Gate.Append] names
	// it, [Pool.Retire] ends it, and [Pool.Reusable] tells when its block may be
	// handed out again. Otherwise blocks come from [Pool.Alloc].
	Foreign bool
}

// GroupOptions describe one use of a pool's blocks: a set of layers that share
// a block table.
type GroupOptions struct {
	Name string
	// Fill is what has to be written before a new owner uses a block, if
	// NeedsZero says so. Its bytes are bytes of the pool's Table, and its blocks
	// those of the pool. A load that brings all of them leaves nothing to fill.
	Fill      layout.Table
	NeedsZero bool
	// State says that a block is a row of state, which is reset: to the bytes
	// of Template, which is laid out as one block of Fill, or to zeros if that is 0.
	State    bool
	Template cuda.DevicePtr
}

// pool is a pool with its map.
type pool struct {
	PoolOptions
	where *layout.Map
	first kv.Group
}

// group is a group with its table on the device.
type group struct {
	GroupOptions
	pool  kv.PoolID
	table *kernels.Table
}

// addPool checks a pool and uploads the tables of its groups.
func (g *Gate) addPool(o PoolOptions) (core.Pool, error) {
	i := len(g.pools)
	fail := func(err error) (core.Pool, error) {
		return core.Pool{}, fmt.Errorf("loadgate: pool %d (%s): %w", i, o.Name, err)
	}
	if int(o.Table.Pool) != i {
		return fail(fmt.Errorf("its table is of pool %d: %w", o.Table.Pool, core.ErrInvalid))
	}
	p := pool{PoolOptions: o, first: kv.Group(len(g.groups))}
	var err error
	if p.where, err = layout.NewMap(o.Table); err != nil {
		return fail(err)
	}
	for k := range g.pools {
		if b, ok := p.where.Meets(g.pools[k].where); ok {
			return fail(fmt.Errorf("block %d lies in the memory of pool %d (%s): %w", b, k, g.pools[k].Name, core.ErrInvalid))
		}
	}
	if err := kernels.CheckMemory(g.reg.Device(), &p.Table); err != nil {
		return fail(err)
	}
	cp := core.Pool{Name: o.Name, Blocks: o.Table.Blocks, BlockBytes: o.Table.Bytes(), HasNull: !o.Table.RealNull, Foreign: o.Foreign}
	groups := o.Groups
	if len(groups) == 0 {
		groups = []GroupOptions{{Name: o.Name, Fill: o.Table, NeedsZero: o.NeedsZero}}
	} else if o.NeedsZero {
		return fail(fmt.Errorf("NeedsZero is said by each of its groups: %w", core.ErrInvalid))
	}
	for k, opts := range groups {
		cg, err := g.addGroup(&p, kv.PoolID(i), opts)
		if err != nil {
			return fail(fmt.Errorf("group %d (%s): %w", k, opts.Name, err))
		}
		cp.Groups = append(cp.Groups, cg)
	}
	g.pools = append(g.pools, p)
	return cp, nil
}

func (g *Gate) addGroup(p *pool, id kv.PoolID, o GroupOptions) (core.Group, error) {
	cg := core.Group{Name: o.Name, NeedsFill: o.NeedsZero}
	if o.State {
		cg.Filling = core.Resetting
	} else if o.Template != 0 {
		return cg, fmt.Errorf("a template is for groups of state: %w", core.ErrInvalid)
	}
	if o.Fill.Pool != id || o.Fill.Blocks != p.Table.Blocks || o.Fill.RealNull != p.Table.RealNull {
		return cg, fmt.Errorf("its table has %d blocks of pool %d, the pool %d: %w", o.Fill.Blocks, o.Fill.Pool, p.Table.Blocks, core.ErrInvalid)
	}
	var err error
	if cg.Bytes, err = p.Table.Ranges(o.Fill); err != nil {
		return cg, err
	}
	if p.where.Overlapping() {
		cg.Bytes = nil // a transfer's bytes stand for the whole block
	}
	table, err := g.set.NewTable(o.Fill)
	if err != nil {
		return cg, err
	}
	if err := g.checkTemplate(table, &o); err != nil {
		return cg, errors.Join(err, table.Close())
	}
	g.groups = append(g.groups, group{o, id, table})
	return cg, nil
}

// checkTemplate refuses a template that does not fit the rows.
func (g *Gate) checkTemplate(t *kernels.Table, o *GroupOptions) error {
	if o.Template == 0 {
		return nil
	}
	if t.Overlapping() {
		return fmt.Errorf("pages overlap, so that a template gives bytes two values: %w", core.ErrInvalid)
	}
	size := o.Fill.Bytes()
	base, n, err := cuda.Extent(g.reg.Device(), o.Template, size)
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	if left := uint64(base) + n - uint64(o.Template); left < size {
		return fmt.Errorf("template of %d bytes for rows of %d: %w", left, size, core.ErrInvalid)
	}
	return nil
}

// Pool is a pool of a gate. The zero Pool is not valid.
type Pool struct {
	g  *Gate
	id kv.PoolID
}

// Pool returns a pool of the gate by its place in [Options.Pools].
func (g *Gate) Pool(id kv.PoolID) (Pool, error) {
	if int(id) >= len(g.pools) {
		return Pool{}, fmt.Errorf("loadgate: pool %d of %d: %w", id, len(g.pools), core.ErrInvalid)
	}
	return Pool{g, id}, nil
}

// ID returns the pool's id.
func (p Pool) ID() kv.PoolID { return p.id }

// Alloc takes n free blocks of the pool's first group; see [Gate.Alloc].
func (p Pool) Alloc(n int, dst []kv.Tenancy) ([]kv.Tenancy, error) {
	return p.g.Alloc([]Want{{Group: p.g.pools[p.id].first, Blocks: n}}, dst)
}

// Ref adds a reference to each block.
func (p Pool) Ref(ts []kv.Tenancy) error {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.g.core.Ref(p.id, ts)
}

// Free takes a reference from each block. The tenancy of a block without any is
// over, and the block is handed out again when nothing touches it any more.
// Free changes nothing when it returns an error: a block is stale or listed
// twice, or a holder has a block that would lose its last reference
// ([ErrHeld]).
func (p Pool) Free(ts []kv.Tenancy) error {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.g.core.Free(p.id, ts)
}

// Refs returns the number of references to a tenancy; 0 if it is over.
func (p Pool) Refs(t kv.Tenancy) int {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.g.core.Refs(p.id, t)
}

// Counters returns the numbers of blocks by state.
func (p Pool) Counters() PoolCounters {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.g.core.PoolCounters(p.id)
}

// Retire ends tenancies of a foreign pool. It changes nothing when it returns an
// error.
func (p Pool) Retire(ts []kv.Tenancy) error {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.g.core.Retire(p.id, ts)
}

// Reusable appends the tenancies of a foreign pool whose blocks may be handed
// out again to dst. Each retired tenancy comes back once.
func (p Pool) Reusable(dst []kv.Tenancy) []kv.Tenancy {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.g.core.Reusable(p.id, dst)
}

// Alloc takes free blocks, those that were freed first, with one reference each,
// and appends their tenancies to dst in the order of the wants. It takes all of
// them, or none and returns a *[FullError]. The content of a block is whatever
// its last owner left: it is filled before its first use.
func (g *Gate) Alloc(wants []Want, dst []kv.Tenancy) ([]kv.Tenancy, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Alloc(wants, dst)
}

// NewLedger returns a ledger that the gates of so many tensor-parallel ranks
// share; see [Ledger]. The pools are those of each of the gates.
func NewLedger(ranks int, pools []PoolOptions) (*Ledger, error) {
	var cps []core.Pool
	for _, p := range pools {
		cp := core.Pool{Name: p.Name, Blocks: p.Table.Blocks, HasNull: !p.Table.RealNull, Foreign: p.Foreign, Groups: make([]core.Group, max(1, len(p.Groups)))}
		cps = append(cps, cp)
	}
	return core.NewLedger(cps, ranks, &sync.Mutex{})
}
