package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/kvgate/kvgate/cuda"
)

// pool is device memory that is allocated and freed in stream order.
type pool struct {
	blocks    []*block // not given back to the device
	settings  [cuda.PoolUsedHigh + 1]uint64
	destroyed bool
}

func newPool() *pool {
	p := &pool{}
	p.settings[cuda.PoolFollowEvents], p.settings[cuda.PoolOpportunistic], p.settings[cuda.PoolInternalWaits] = 1, 1, 1
	return p
}

// block is memory of a pool. The host is ahead of the device: it is given the
// block and gives it back, and the streams reach the one and the other later.
type block struct {
	r        *region
	pool     *pool
	capacity uint64
	whole    []byte

	given bool   // to the host
	size  uint64 // for which it was asked last
	live  bool   // on the device
	used  bool   // it was live before

	// The newest free: a place in a stream. on is nil where there was none, or
	// it is long over.
	on    *stream
	until uint64
}

// blockGrain is what sizes of blocks are multiples of: the alignment that the
// driver promises.
const blockGrain = 256

func (p *pool) add(a cuda.PoolAttribute, n int64) {
	p.settings[a] += uint64(n)
	p.settings[a+1] = max(p.settings[a+1], p.settings[a])
}

// reached reports whether the newest free is over on the device.
func (b *block) reached() bool { return b.on == nil || b.on.completed.Load() >= b.until }

// follows reports whether an event, or the stream itself, puts what is next in
// s behind the newest free.
func (b *block) follows(s *stream) bool {
	return b.on == nil || b.on == s || slices.ContainsFunc(s.seen, func(m mark) bool { return m.s == b.on && m.until >= b.until })
}

// fit returns the smallest block that s may have by the rule, or nil. One of
// more than twice the size is left to others.
func (p *pool) fit(size uint64, scale uint32, may func(b *block) bool) (best *block) {
	for _, b := range p.blocks {
		if !b.given && b.capacity >= size && b.capacity/2 <= roundUp(size, blockGrain) && b.r.scale == scale &&
			(best == nil || b.capacity < best.capacity) && may(b) {
			best = b
		}
	}
	return best
}

// take returns a block for s, by the first rule that has one: memory of the
// pool that is free for s, new memory, memory that s has to wait for.
func (d *Device) take(op string, p *pool, s *stream, size uint64, o cuda.AllocOptions) (*block, error) {
	scale := max(o.CostScale, 1)
	b := p.fit(size, scale, func(b *block) bool {
		return b.on == s || p.settings[cuda.PoolFollowEvents] != 0 && b.follows(s) ||
			(b.on == nil || p.settings[cuda.PoolOpportunistic] != 0) && b.reached()
	})
	if b != nil {
		return b, nil
	}
	capacity := roundUp(size, blockGrain)
	if capacity < size {
		return nil, invalid(op, "%d bytes", size)
	}
	if capacity > (d.size-d.mem.used)/uint64(scale) {
		for _, q := range d.allPools() {
			if err := q.trim(d, 0); err != nil {
				return nil, err
			}
		}
	}
	left := (d.size - d.mem.used) / uint64(scale)
	if capacity > left {
		if p.settings[cuda.PoolInternalWaits] != 0 {
			b = p.fit(size, scale, func(*block) bool { return true })
		}
		if b == nil {
			return nil, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op,
				Detail: fmt.Sprintf("%d x %d bytes for %q, %d are free", scale, capacity, o.Name, left)}
		}
		w := s.enqueue(cuda.OpWaitEvent)
		w.on, w.until = b.on, b.until
		s.see(mark{b.on, b.until})
		return b, nil
	}
	r, err := d.mem.alloc(capacity, cuda.DeviceMemory, o)
	if err != nil {
		return nil, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op, Detail: fmt.Sprintf("%q: %v", o.Name, err)}
	}
	b = &block{r: r, pool: p, capacity: capacity, whole: r.data}
	r.block = b
	p.blocks = append(p.blocks, b)
	p.add(cuda.PoolReserved, int64(capacity))
	return b, nil
}

// trim gives back blocks that nobody has, and whose free is over, until no more
// than keep bytes are reserved.
func (p *pool) trim(d *Device, keep uint64) error {
	kept := p.blocks[:0]
	var err error
	for _, b := range p.blocks {
		if err != nil || p.settings[cuda.PoolReserved] <= keep || b.given || b.live || !b.reached() {
			kept = append(kept, b)
			continue
		}
		b.r.size = b.capacity
		if err = d.mem.release(b.r); err != nil {
			kept = append(kept, b)
			continue
		}
		p.add(cuda.PoolReserved, -int64(b.capacity))
	}
	clear(p.blocks[len(kept):])
	p.blocks = kept
	return err
}

func (d *Device) allPools() []*pool {
	all := append([]*pool{d.pool}, d.ending...)
	for _, p := range d.pools {
		all = append(all, p)
	}
	return all
}

// settle gives back what pools hold above their thresholds: somebody has
// synchronised.
func (d *Device) settle(op string) error {
	if !d.pooling {
		return nil
	}
	if err := d.enter(op, 0); err != nil {
		return err
	}
	defer d.world.Exit()
	for _, p := range d.allPools() {
		if err := p.trim(d, p.settings[cuda.PoolReleaseThreshold]); err != nil {
			return err
		}
	}
	d.ending = slices.DeleteFunc(d.ending, func(p *pool) bool { return len(p.blocks) == 0 })
	return nil
}

// poolOf returns the pool of a handle.
func (d *Device) poolOf(op string, h cuda.Pool) (*pool, error) {
	if h == 0 {
		return d.pool, nil
	}
	if p := d.pools[h]; p != nil {
		return p, nil
	}
	return nil, badHandle(op, "pool", uint64(h))
}

// NewPool returns a pool.
func (d *Device) NewPool(name string) (cuda.Pool, error) {
	if err := d.call("make pool", d.costs.Handle); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	h := cuda.Pool(d.handle(kindPool))
	d.pools[h] = newPool()
	return h, nil
}

// DestroyPool makes the handle invalid. The pool's memory is given back when
// all of it has been freed.
func (d *Device) DestroyPool(h cuda.Pool) error {
	const op = "destroy pool"
	if err := d.call(op, d.costs.Handle); err != nil {
		return err
	}
	defer d.world.Exit()
	p, err := d.poolOf(op, h)
	switch {
	case err != nil:
		return err
	case h == 0:
		return invalid(op, "the device's own")
	}
	delete(d.pools, h)
	p.destroyed, p.settings[cuda.PoolReleaseThreshold] = true, 0
	if err := p.trim(d, 0); err != nil {
		return err
	}
	if len(p.blocks) > 0 {
		d.ending = append(d.ending, p)
	}
	return nil
}

// PoolAttribute returns a setting or a figure of a pool.
func (d *Device) PoolAttribute(h cuda.Pool, a cuda.PoolAttribute) (uint64, error) {
	const op = "pool attribute"
	if err := d.call(op, 0); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	p, err := d.poolOf(op, h)
	switch {
	case err != nil:
		return 0, err
	case a == 0 || a > cuda.PoolUsedHigh:
		return 0, invalid(op, "%s", a)
	}
	return p.settings[a], nil
}

// SetPoolAttribute changes a setting of a pool, or sets a highest figure to 0:
// to what it is now.
func (d *Device) SetPoolAttribute(h cuda.Pool, a cuda.PoolAttribute, v uint64) error {
	const op = "set pool attribute"
	if err := d.call(op, 0); err != nil {
		return err
	}
	defer d.world.Exit()
	p, err := d.poolOf(op, h)
	if err != nil {
		return err
	}
	limit := uint64(0)
	switch a {
	case cuda.PoolFollowEvents, cuda.PoolOpportunistic, cuda.PoolInternalWaits:
		limit = 1
	case cuda.PoolReleaseThreshold:
		limit = math.MaxUint64
	case cuda.PoolReservedHigh, cuda.PoolUsedHigh:
		if v == 0 {
			v = p.settings[a-1]
			limit = v
		}
	default:
		return invalid(op, "%s can not be set", a)
	}
	if v > limit {
		return invalid(op, "%s of %d, may be at most %d", a, v, limit)
	}
	p.settings[a] = v
	return nil
}

// TrimPool gives memory back that nobody uses.
func (d *Device) TrimPool(h cuda.Pool, keep uint64) error {
	const op = "trim pool"
	if err := d.call(op, d.costs.Free); err != nil {
		return err
	}
	defer d.world.Exit()
	p, err := d.poolOf(op, h)
	if err != nil {
		return err
	}
	return p.trim(d, keep)
}
