package kernels

import (
	"fmt"
	"math"
	"sync"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
)

// Pair is one copy: from Src to Dst. Each is a block id, or the number of a row
// where that side is a [Staging].
type Pair struct {
	Dst, Src kv.Block
}

// Staging is memory outside the pool that holds blocks as rows: in a row the pages
// of one block lie end to end, in the order of the table's segments. It may be
// device memory or pinned host memory, and must stay allocated while launches use
// it.
//
// Pages are copied fastest when each lies as far from a 16-byte boundary in the
// row as in its block.
type Staging struct {
	At     cuda.DevicePtr
	Stride uint64 // from one row to the next: at least the bytes of a block
	Rows   int
}

// CopyBlocks adds copies of blocks to other blocks of the same table. The pairs
// travel in the launch arguments, at most 504 in each launch. All run at the same
// time: no block may be written twice, or be written by one pair and read by
// another. Such a list is refused; [Preparation] orders one.
//
// Pairs with an id that is negative, the null block, or not of the pool are
// skipped, as is a copy of a block to itself. A table whose pages share bytes with
// each other in a way that differs from block to block is refused.
func (s *Set) CopyBlocks(b *cuda.Batch, stream cuda.Stream, t *Table, pairs []Pair) error {
	dst, src, err := s.blockSides(t)
	if err != nil {
		return err
	}
	return s.copy(b, stream, t, dst, src, pairs)
}

// CopyBlocksAt is [Set.CopyBlocks] for pairs in memory, in a single launch. Nobody
// checks them for conflicts; a block that is written twice, or written and read,
// may end with a mix of both contents.
func (s *Set) CopyBlocksAt(b *cuda.Batch, stream cuda.Stream, t *Table, pairs List) error {
	dst, src, err := s.blockSides(t)
	if err != nil {
		return err
	}
	return s.copyAt(b, stream, t, dst, src, pairs)
}

// GatherBlocks adds copies of blocks into rows of a staging area: a pair's Src is
// a block and its Dst a row. Pairs with a block or a row that does not exist are
// skipped. No row may be written twice: such a list is refused.
func (s *Set) GatherBlocks(b *cuda.Batch, stream cuda.Stream, t *Table, to Staging, pairs []Pair) error {
	dst, src, err := s.gatherSides(t, to)
	if err != nil {
		return err
	}
	return s.copy(b, stream, t, dst, src, pairs)
}

// GatherBlocksAt is [Set.GatherBlocks] for pairs in memory, in a single launch,
// unchecked as in [Set.CopyBlocksAt].
func (s *Set) GatherBlocksAt(b *cuda.Batch, stream cuda.Stream, t *Table, to Staging, pairs List) error {
	dst, src, err := s.gatherSides(t, to)
	if err != nil {
		return err
	}
	return s.copyAt(b, stream, t, dst, src, pairs)
}

// ScatterBlocks is [Set.GatherBlocks] the other way round: a pair's Dst is a block
// and its Src a row. A table whose pages share bytes is refused.
func (s *Set) ScatterBlocks(b *cuda.Batch, stream cuda.Stream, t *Table, from Staging, pairs []Pair) error {
	dst, src, err := s.scatterSides(t, from)
	if err != nil {
		return err
	}
	return s.copy(b, stream, t, dst, src, pairs)
}

// ScatterBlocksAt is [Set.ScatterBlocks] for pairs in memory, in a single launch,
// unchecked as in [Set.CopyBlocksAt].
func (s *Set) ScatterBlocksAt(b *cuda.Batch, stream cuda.Stream, t *Table, from Staging, pairs List) error {
	dst, src, err := s.scatterSides(t, from)
	if err != nil {
		return err
	}
	return s.copyAt(b, stream, t, dst, src, pairs)
}

// blocks is the side of a copy that is blocks of the table.
func (t *Table) blocks() side { return side{Base: t.origin, First: t.first, Span: t.span} }

func (s *Set) blockSides(t *Table) (dst, src side, err error) {
	if err := s.check(t); err != nil {
		return dst, src, err
	}
	return t.blocks(), t.blocks(), t.checkCopy()
}

// checkCopy refuses a copy between blocks that would give a byte two values.
func (t *Table) checkCopy() error {
	if t.uneven {
		return fmt.Errorf("kernels: pool %d: copy of blocks: pages of a block share bytes, at different strides: %w",
			t.layout.Pool, cuda.ErrInvalidValue)
	}
	return nil
}

func (s *Set) gatherSides(t *Table, to Staging) (dst, src side, err error) {
	if err := s.check(t); err != nil {
		return dst, src, err
	}
	dst, err = to.side(t)
	return dst, t.blocks(), err
}

func (s *Set) scatterSides(t *Table, from Staging) (dst, src side, err error) {
	if err := s.check(t); err != nil {
		return dst, src, err
	}
	if t.overlap {
		return dst, src, fmt.Errorf("kernels: pool %d: scatter: pages of a block share bytes: %w", t.layout.Pool, cuda.ErrInvalidValue)
	}
	src, err = from.side(t)
	return t.blocks(), src, err
}

// side checks a staging area for the blocks of a table.
func (g Staging) side(t *Table) (side, error) {
	n := t.layout.Bytes()
	if g.At == 0 || g.Rows < 1 || g.Rows > math.MaxInt32 || g.Stride == 0 || g.Stride < n ||
		g.Stride > (math.MaxUint64-uint64(g.At))/uint64(g.Rows) {
		return side{}, fmt.Errorf("kernels: staging of %d rows, %d bytes apart, at %#x, for blocks of %d bytes of pool %d: %w",
			g.Rows, g.Stride, uint64(g.At), n, t.layout.Pool, cuda.ErrInvalidValue)
	}
	return side{Base: uint64(g.At), Stride: g.Stride, Span: uint32(g.Rows)}, nil
}

// holds reports whether a side has that row.
func (d side) holds(row kv.Block) bool { return uint32(row)-d.First < d.Span }

// copy adds one launch for each 504 pairs.
func (s *Set) copy(b *cuda.Batch, stream cuda.Stream, t *Table, dst, src side, pairs []Pair) error {
	if len(pairs) == 0 || t.resting {
		return nil
	}
	if err := conflict(dst, src, pairs); err != nil {
		return fmt.Errorf("kernels: pool %d: %w", t.layout.Pool, err)
	}
	for len(pairs) > 0 {
		part, v := pairs, inMany
		if len(part) <= fewPairs {
			v = inFew
		} else if len(part) > manyPairs {
			part = part[:manyPairs]
		}
		copy(s.addCopy(b, stream, v, t, dst, src, uint32(len(part))), pairBytes(part))
		pairs = pairs[len(part):]
	}
	return nil
}

func (s *Set) copyAt(b *cuda.Batch, stream cuda.Stream, t *Table, dst, src side, pairs List) error {
	if err := pairs.check(); err != nil || pairs.Max == 0 || t.resting {
		return err
	}
	m := memoryArgs{IDs: pairs.IDs, Count: pairs.Count}
	copy(s.addCopy(b, stream, inMemory, t, dst, src, uint32(pairs.Max)), bytesOf(&m))
	return nil
}

func (s *Set) addCopy(b *cuda.Batch, stream cuda.Stream, v variant, t *Table, dst, src side, count uint32) []byte {
	args := s.launchItems(b, stream, copyBlocks, v, uint64(count)*uint64(t.count))
	head := copyHead{Dst: dst, Src: src, Tiles: t.tiles, TileCount: t.count, Count: count}
	return args[copy(args, bytesOf(&head)):]
}

// rowSets are sets of rows, to be used again.
var rowSets = sync.Pool{New: func() any { return map[kv.Block]struct{}{} }}

// conflict finds a row that is written twice, or that one pair writes and another
// reads.
func conflict(dst, src side, pairs []Pair) error {
	same := dst == src
	live := func(p Pair) bool { return dst.holds(p.Dst) && src.holds(p.Src) && !(same && p.Dst == p.Src) }
	twice := func(row kv.Block) error {
		return fmt.Errorf("row or block %d is written twice: %w", row, cuda.ErrInvalidValue)
	}
	both := func(row kv.Block) error {
		return fmt.Errorf("block %d is written by one pair and read by another: %w", row, cuda.ErrInvalidValue)
	}
	if len(pairs) <= fewPairs {
		for i, p := range pairs {
			for j, q := range pairs {
				switch {
				case i == j || !live(p) || !live(q):
				case p.Dst == q.Dst:
					return twice(p.Dst)
				case same && p.Dst == q.Src:
					return both(p.Dst)
				}
			}
		}
		return nil
	}
	set := rowSets.Get().(map[kv.Block]struct{})
	defer func() {
		clear(set)
		rowSets.Put(set)
	}()
	for _, p := range pairs {
		if !live(p) {
			continue
		}
		if _, ok := set[p.Dst]; ok {
			return twice(p.Dst)
		}
		set[p.Dst] = struct{}{}
	}
	for _, p := range pairs {
		if _, ok := set[p.Src]; ok && same && live(p) {
			return both(p.Src)
		}
	}
	return nil
}
