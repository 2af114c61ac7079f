package kernels

import (
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// Table is a segment table in device memory. It does not own the blocks'
// memory, which must stay allocated while launches use it. It is immutable but
// for Close, and safe for use by several goroutines.
type Table struct {
	dev    cuda.Device
	layout layout.Table

	tiles   cuda.DevicePtr
	origin  uint64
	count   uint32 // of tiles
	first   uint32 // lowest id that is written
	span    uint32 // how many ids from there on are
	resting bool   // nothing to launch: no segments
	overlap bool   // pages of one block share bytes
	uneven  bool   // and lie differently to each other in every block
	closed  bool
}

// NewTable checks a segment table, finds each segment inside one allocation of
// the device, or memory that was mapped without a hole ([cuda.Extent]), from its
// first block to its last, and uploads it.
//
// The error wraps [layout.ErrTable] when the table makes no sense or when a
// segment leaves its allocation, and names segment and block.
func NewTable(dev cuda.Device, t layout.Table) (*Table, error) { return newTable(dev, t, tileBytes) }

// NewTable is [NewTable] on the device of s, with tiles of the size that s is tuned
// to.
func (s *Set) NewTable(t layout.Table) (*Table, error) { return newTable(s.dev, t, s.tuning.Tile) }

// newTable is NewTable with tiles of size bytes, or more for large blocks.
func newTable(dev cuda.Device, t layout.Table, size uint64) (*Table, error) {
	m, err := layout.NewMap(t)
	if err != nil {
		return nil, err
	}
	t = *m.Table() // has its own segments
	if err := checkAllocations(dev, &t); err != nil {
		return nil, err
	}
	k := &Table{dev: dev, layout: t, first: uint32(t.First()), overlap: m.Overlapping()}
	k.span = uint32(t.Blocks) - k.first
	if len(t.Segments) == 0 {
		k.resting = true
		return k, nil
	}
	k.uneven = k.overlap && slices.ContainsFunc(t.Segments, func(s layout.Segment) bool { return s.Stride != t.Segments[0].Stride })
	size = tileSize(&t, size)
	if n := tileCount(&t, size); n > maxLaunchTiles {
		return nil, fmt.Errorf("kernels: pool %d: blocks of %d bytes make %d tiles, want at most %d: %w",
			t.Pool, t.Bytes(), n, uint64(maxLaunchTiles), layout.ErrTable)
	}
	k.origin = origin(&t)
	tiles := cut(&t, k.origin, size)
	k.count = uint32(len(tiles))
	bytes := tileBytesOf(tiles)
	k.tiles, err = dev.Alloc(uint64(len(bytes)), cuda.AllocOptions{Name: fmt.Sprintf("segments of pool %d", t.Pool)})
	if err != nil {
		return nil, fmt.Errorf("kernels: pool %d: %w", t.Pool, err)
	}
	if err := dev.Write(k.tiles, bytes); err != nil {
		dev.Free(k.tiles) // the write's error is the one to tell
		return nil, fmt.Errorf("kernels: pool %d: %w", t.Pool, err)
	}
	return k, nil
}

// maxLaunchTiles keeps sums of two places in the tile list in 32 bits.
const maxLaunchTiles = 1 << 30

// CheckMemory finds each segment of a valid table inside one allocation of the
// device, or memory that was mapped without a hole ([cuda.Extent]), from its
// first block to its last. The error wraps [layout.ErrTable] and names segment
// and block.
func CheckMemory(dev cuda.Device, t *layout.Table) error { return checkAllocations(dev, t) }

// Overlapping reports whether pages of one block share bytes.
func (t *Table) Overlapping() bool { return t.overlap }

func checkAllocations(dev cuda.Device, t *layout.Table) error {
	var base, end uint64 // the allocation found last
	for i, s := range t.Segments {
		last := kv.Block(t.Blocks - 1)
		from, to := s.Base, s.Address(last)+s.Page
		if from >= base && to <= end {
			continue
		}
		p, size, err := cuda.Extent(dev, cuda.DevicePtr(from), to-from)
		if err != nil {
			return fmt.Errorf("kernels: pool %d: segment %d: block 0 at %#x: %w: %w",
				t.Pool, i, from, err, layout.ErrTable)
		}
		base, end = uint64(p), uint64(p)+size
		if to > end {
			b := last
			if from+s.Page > end {
				b = 0
			}
			return fmt.Errorf("kernels: pool %d: segment %d: block %d ends at %#x, behind its allocation of %d bytes at %#x: %w",
				t.Pool, i, b, s.Address(b)+s.Page, size, base, layout.ErrTable)
		}
	}
	return nil
}

// Layout returns the table as it was given. It must not be changed.
func (t *Table) Layout() *layout.Table { return &t.layout }

// writes reports whether the kernels write a block of that id.
func (t *Table) writes(id kv.Block) bool { return uint32(id)-t.first < t.span }

// CheckIDs is [layout.Table.CheckIDs].
func (t *Table) CheckIDs(ids []kv.Block) error { return t.layout.CheckIDs(ids) }

// Close frees the device memory of the table, once the work submitted before
// has run. No launch may use the table afterwards. A second Close does nothing.
func (t *Table) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	if t.tiles == 0 {
		return nil
	}
	return t.dev.Free(t.tiles)
}
