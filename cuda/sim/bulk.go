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
	dst, src := d.mem.at(c.a), d.mem.at(c.b)
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
	m := b.d.mem
	_, dst, err := m.locate(b.c.a+b.done, b.chunk, true)
	if err != nil {
		return 0, false, err
	}
	bytes := float64(b.chunk) * float64(dst.scale)
	if b.c.op == cuda.OpCopy {
		_, src, err := m.locate(b.c.b+b.done, b.chunk, false)
		if err != nil {
			return 0, false, err
		}
		if dst.kind == src.kind {
			bytes += float64(b.chunk) * float64(src.scale)
		} else {
			bytes = float64(b.chunk) * float64(max(src.scale, dst.scale))
		}
	}
	return bytes, false, nil
}

// land moves the chunk whose bytes have passed.
func (b *bulk) land() error {
	n := b.chunk
	if n == 0 {
		return nil
	}
	m := b.d.mem
	dst, _, err := m.locate(b.c.a+b.done, n, true)
	if err != nil {
		return err
	}
	if b.c.op == cuda.OpCopy {
		src, _, err := m.locate(b.c.b+b.done, n, false)
		if err != nil {
			return err
		}
		m.observe(b.who, b.c.b+b.done, n, false)
		copy(dst, src)
	} else {
		fill(dst, b.c.flags, b.c.b)
	}
	m.observe(b.who, b.c.a+b.done, n, true)
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
