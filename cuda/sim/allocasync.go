package sim

import (
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.StreamAllocator = (*Device)(nil)

// Commands of the simulator's own: a stream reaches an allocation or a free.
const (
	opAlloc cuda.Op = 0xfe - iota
	opFree

	allocName = "allocate in stream order"
	freeName  = "free in stream order"
)

func (c *command) opName() string {
	switch c.op {
	case opAlloc:
		return allocName
	case opFree:
		return freeName
	}
	return c.op.String()
}

// AllocAsync returns memory of a pool. What it counts against [Options.Memory]
// is what the pool has to take for it. When the stream reaches the allocation
// the memory is filled with 0xff, as fresh memory is: see [Options].
func (d *Device) AllocAsync(h cuda.Stream, size uint64, pool cuda.Pool, o cuda.AllocOptions) (cuda.DevicePtr, error) {
	const op = allocName
	if err := d.call(op, d.costs.PoolCall); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	s := d.streams[h]
	if s == nil {
		return 0, badHandle(op, "stream", uint64(h))
	}
	p, err := d.poolOf(op, pool)
	switch {
	case err != nil:
		return 0, err
	case s.capture != nil:
		return 0, refuse(cuda.ErrStreamCapturing, op, s.String())
	case size == 0:
		return 0, invalid(op, "0 bytes for %q", o.Name)
	}
	if err := s.implicit(op); err != nil {
		return 0, err
	}
	d.pooling = true
	s.follow()
	b, err := d.take(op, p, s, size, o)
	if err != nil {
		return 0, err
	}
	if o.Name != "" {
		b.r.name = o.Name
	}
	b.given, b.size = true, size
	p.add(cuda.PoolUsed, int64(b.capacity))
	n := s.enqueue(opAlloc)
	n.memory, n.c = b, size
	s.advance()
	return cuda.DevicePtr(b.r.base), nil
}

// FreeAsync gives memory back to its pool, behind what is in the stream.
func (d *Device) FreeAsync(h cuda.Stream, ptr cuda.DevicePtr) error {
	const op = freeName
	if err := d.call(op, d.costs.PoolCall); err != nil {
		return err
	}
	defer d.world.Exit()
	s := d.streams[h]
	if s == nil {
		return badHandle(op, "stream", uint64(h))
	}
	r, err := d.owned(op, uint64(ptr), cuda.DeviceMemory)
	switch {
	case err != nil:
		return err
	case r.block == nil:
		return invalid(op, "%q is no memory of a pool", r.name)
	case s.capture != nil:
		return refuse(cuda.ErrStreamCapturing, op, s.String())
	}
	if err := s.implicit(op); err != nil {
		return err
	}
	s.follow()
	n := s.enqueue(opFree)
	n.memory = r.block
	r.block.giveBack(s, s.issued)
	s.advance()
	return nil
}

// giveBack takes the block from the host. The place is where the device will.
func (b *block) giveBack(on *stream, until uint64) {
	b.given, b.on, b.until = false, on, until
	b.pool.add(cuda.PoolUsed, -int64(b.capacity))
}

// reach is what happens when a stream has reached an allocation or a free.
func (s *stream) reach(c *command) error {
	d, b := s.d, c.memory
	if c.op == opAlloc {
		b.live, b.r.size, b.r.data = true, c.c, b.whole[:c.c:c.c]
		if b.used && d.mem.poison && c.c <= PoisonLimit { // else it is fresh
			fill(b.r.data, 0, 0xff)
		}
		b.used = true
		return nil
	}
	if !b.live {
		return &AccessError{Write: true, Addr: b.r.base, Size: b.size, Name: b.r.name, Base: b.r.base, Length: b.size, Early: true}
	}
	b.live = false
	if b.pool.destroyed && !b.given {
		b.on = nil
		return b.pool.trim(d, 0)
	}
	return nil
}

// freed is Free of a pool's memory, when all work is over.
func (b *block) freed() {
	b.giveBack(nil, 0)
	b.live = false
}

// see notes that what is next in s is behind a place in another stream.
func (s *stream) see(m mark) {
	if m.s == s {
		return
	}
	for i := range s.seen {
		if s.seen[i].s == m.s {
			s.seen[i].until = max(s.seen[i].until, m.until)
			return
		}
	}
	s.seen = slices.DeleteFunc(s.seen, func(m mark) bool { return m.s.destroyed && m.s.len == 0 })
	s.seen = append(s.seen, m)
}

// seeEvent notes that what is next in s is behind the record of e, and behind
// what that was behind.
func (s *stream) seeEvent(e *event) {
	if !s.d.pooling || e.on == nil {
		return
	}
	s.see(mark{e.on, e.until})
	for _, m := range e.seen {
		s.see(m)
	}
}

// known returns an error where an access could not be right: the host has not
// been given the memory, or has given it back. Whether the device will have
// reached that is not known yet.
func (m *Memory) known(addr, size uint64, write bool) error {
	r := m.below(addr)
	if r == nil || r.block == nil || r.freed {
		_, _, err := m.locate(addr, size, write)
		return err
	}
	b := r.block
	if off := addr - r.base; b.given && off <= b.size && size <= b.size-off && (size == 0 || off < b.size) {
		return nil
	}
	return &AccessError{Write: write, Addr: addr, Size: size, Name: r.name, Base: r.base, Length: b.size, Freed: !b.given}
}

// reachable reports whether the device has the region's memory at this time.
func (r *region) reachable() bool { return !r.freed && (r.block == nil || r.block.live) }

func (b *block) String() string { return fmt.Sprintf("%d bytes of %q", b.size, b.r.name) }
