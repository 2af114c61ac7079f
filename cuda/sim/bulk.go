package sim

import (
	"encoding/binary"

	"github.com/kvgate/kvgate/cuda"
)

// engine is a copy engine: it does one copy after the other.
type engine struct {
	name  string
	busy  bool
	queue []*task
}

// engineFor returns the engine of a copy, or nil where the device moves the
// bytes itself.
func (d *Device) engineFor(c *command) *engine {
	if c.pages != nil {
		if c.a != 0 {
			return &d.toDevice
		}
		return &d.toHost
	}
	_, dst, _ := d.mem.locateAny(c.a, 1, true)
	_, src, _ := d.mem.locateAny(c.b, 1, false)
	switch {
	case dst == nil || src == nil: // the copy itself will tell
		return nil
	case src.kind == cuda.PinnedMemory:
		return &d.toDevice
	case dst.kind == cuda.PinnedMemory:
		return &d.toHost
	}
	return nil
}

// bulk is the work of a fill or copy. Each chunk lands when it is done; its
// source is read then.
type bulk struct {
	d     *Device
	c     *command
	who   string
	total uint64
	unit  uint64 // number of chunks
	done  uint64
	chunk uint64 // under way
}

// minChunk is what memory moves at a time: a sector of 32 bytes.
const minChunk = 32

func (b *bulk) step() (float64, bool, error) {
	if err := b.land(); err != nil {
		return 0, false, err
	}
	if b.done == b.total {
		return 0, true, nil
	}
	b.chunk = min(max(roundUp((b.total+b.unit-1)/b.unit, minChunk), minChunk), b.d.costs.MaxChunk, b.total-b.done)
	_, dst, err := b.destination(b.chunk)
	if err != nil {
		return 0, false, err
	}
	bytes := float64(b.chunk) * float64(dst.scale)
	if b.c.op == cuda.OpCopy {
		_, src, err := b.source(b.chunk)
		if err != nil {
			return 0, false, err
		}
		pinned := dst.kind == cuda.PinnedMemory || src.kind == cuda.PinnedMemory
		if dst.owner == src.owner && (dst.kind == src.kind || !pinned) {
			bytes += float64(b.chunk) * float64(src.scale)
		} else {
			bytes = float64(b.chunk) * float64(max(src.scale, dst.scale))
		}
	}
	return bytes, false, nil
}

// pageable stands for host memory that belongs to nobody here.
var pageable = region{kind: cuda.PinnedMemory, scale: 1}

// destination and source return the next n bytes of either side.
func (b *bulk) destination(n uint64) ([]byte, *region, error) {
	if b.c.pages != nil && b.c.a == 0 {
		return b.c.pages[b.done : b.done+n], &pageable, nil
	}
	if b.c.op == cuda.OpCopy {
		return b.d.mem.locateAny(b.c.a+b.done, n, true)
	}
	return b.d.mem.locate(b.c.a+b.done, n, true)
}

func (b *bulk) source(n uint64) ([]byte, *region, error) {
	if b.c.pages != nil && b.c.b == 0 {
		return b.c.pages[b.done : b.done+n], &pageable, nil
	}
	return b.d.mem.locateAny(b.c.b+b.done, n, false)
}

// land moves the chunk whose bytes have passed.
func (b *bulk) land() error {
	n := b.chunk
	if n == 0 {
		return nil
	}
	m := b.d.mem
	dst, to, err := b.destination(n)
	if err != nil {
		return err
	}
	if b.c.op == cuda.OpCopy {
		src, from, err := b.source(n)
		if err != nil {
			return err
		}
		if from != &pageable {
			m.observe(b.c.by, b.c.b+b.done, n, false)
		}
		copy(dst, src)
	} else {
		fill(dst, b.c.flags, b.c.b)
	}
	if to != &pageable {
		m.observe(b.c.by, b.c.a+b.done, n, true)
	}
	b.done += n
	b.chunk = 0
	return nil
}

// fill fills dst, a whole number of elements, with v.
func fill(dst []byte, log2 uint8, v uint64) {
	if len(dst) == 0 {
		return
	}
	if v == 0 {
		clear(dst)
		return
	}
	var e [8]byte
	binary.LittleEndian.PutUint64(e[:], v)
	n := copy(dst, e[:1<<log2])
	for n < len(dst) {
		n += copy(dst[n:], dst[:n])
	}
}
