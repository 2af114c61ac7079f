package layout

import (
	"errors"
	"fmt"
	"math"

	"github.com/kvgate/kvgate/memory/kv"
)

// Segment is one page of every block of a pool. Sizes are in bytes.
type Segment struct {
	Base   uint64 // address of block 0
	Stride uint64 // from one block to the next
	Page   uint64 // bytes of a block
}

// Address returns where the page of block b starts.
func (s Segment) Address(b kv.Block) uint64 { return s.Base + uint64(b)*s.Stride }

// Table is the memory of a pool's blocks. It is plain data; [Table.Validate]
// says whether it makes sense.
//
// Pages of one block may overlap each other (block-outermost layouts in which
// a layer's bytes are spread over its neighbours give such tables): zeroing
// writes the shared bytes twice. Pages of different blocks may not.
type Table struct {
	Pool     kv.PoolID
	Blocks   int // block ids are 0 to Blocks-1
	Segments []Segment
	// RealNull says that block 0 is a block like any other, as in pools of
	// state rows. Otherwise it is the null block, which nothing may write.
	RealNull bool
}

// MaxBlocks and MaxSegments bound a table: ids are 32-bit and signed, and a
// count of segments has to fit in a kernel argument.
const (
	MaxBlocks   = math.MaxInt32
	MaxSegments = 1 << 24
)

// ErrTable is wrapped by every error about a table that makes no sense.
var ErrTable = errors.New("bad segment table")

// First returns the lowest id that may be written: 1, or 0 with RealNull.
func (t *Table) First() kv.Block {
	if t.RealNull {
		return 0
	}
	return kv.Null + 1
}

// Bytes returns the size of one block: the sum of its pages.
func (t *Table) Bytes() uint64 {
	var n uint64
	for _, s := range t.Segments {
		n += s.Page
	}
	return n
}

// Validate checks the table by itself: sizes, no address past 2^64, and no byte
// that is in two blocks. Whether the addresses are allocated it can't know. The
// error wraps [ErrTable] and names segment and block.
func (t *Table) Validate() error {
	_, err := arrange(t)
	return err
}

func (t *Table) fault(format string, args ...any) error {
	return fmt.Errorf("layout: pool %d: %s: %w", t.Pool, fmt.Sprintf(format, args...), ErrTable)
}

// checkSizes makes sure that later arithmetic can't overflow.
func (t *Table) checkSizes() error {
	if t.Blocks < 1 || t.Blocks > MaxBlocks {
		return t.fault("%d blocks, want 1 to %d", t.Blocks, MaxBlocks)
	}
	if len(t.Segments) > MaxSegments {
		return t.fault("%d segments, want at most %d", len(t.Segments), MaxSegments)
	}
	var bytes uint64
	for i, s := range t.Segments {
		switch {
		case s.Page == 0:
			return t.fault("segment %d: page of 0 bytes", i)
		case s.Page > s.Stride && t.Blocks > 1:
			return t.fault("segment %d: page of %d bytes is larger than the stride of %d, so block 0 reaches into block 1",
				i, s.Page, s.Stride)
		case s.Base == 0:
			return t.fault("segment %d: base address 0", i)
		case t.Blocks > 1 && s.Stride > (math.MaxUint64-s.Base)/uint64(t.Blocks-1):
			return t.fault("segment %d: block %d of stride %d lies past the end of the address space",
				i, t.Blocks-1, s.Stride)
		case s.Page > math.MaxUint64-s.Address(kv.Block(t.Blocks-1)):
			return t.fault("segment %d: block %d of %d bytes reaches past the end of the address space",
				i, t.Blocks-1, s.Page)
		case s.Page > math.MaxUint64-bytes:
			return t.fault("segment %d: the pages of a block have more than 2^64 bytes", i)
		}
		bytes += s.Page
	}
	return nil
}

// end returns the first address behind the last block.
func (s Segment) end(blocks int) uint64 { return s.Address(kv.Block(blocks-1)) + s.Page }
