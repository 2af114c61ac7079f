package kernels

import (
	"fmt"
	"math"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
)

// List is a list of block ids, or of pairs, in memory that the device can read:
// 32-bit ids, as [kv.Block] has them, or a [Pair] each. Pinned host memory does; device memory is faster for
// lists that many tiles read.
type List struct {
	IDs cuda.DevicePtr // a multiple of 4
	// Max is the number of ids or pairs; with a Count it is the most that are used,
	// whatever Count says, and what the launch is sized for.
	Max int
	// Count is the address of the length as a 32-bit word, read when the kernel
	// runs; 0: none, Max it is. A graph that holds the launch can thus be run
	// for lists of any length.
	Count cuda.DevicePtr
}

// ZeroBlocks adds the zeroing of the listed blocks' pages. The ids travel in
// the launch arguments, at most 1,012 in each launch; ids is not kept.
//
// It fails, and adds nothing, when t is nil, closed or of another device than s.
func (s *Set) ZeroBlocks(b *cuda.Batch, stream cuda.Stream, t *Table, ids []kv.Block) error {
	return s.launch(b, stream, zeroBlocks, t, 0, ids)
}

// ZeroBlocksAt is [Set.ZeroBlocks] for ids in memory, in a single launch. The
// list must stay as it is until the launch has run.
func (s *Set) ZeroBlocksAt(b *cuda.Batch, stream cuda.Stream, t *Table, ids List) error {
	return s.launchAt(b, stream, zeroBlocks, t, 0, ids)
}

// FillBlocks adds a fill of the listed blocks' pages with word, from the first byte
// of each page on and lowest byte first. Ids travel as with [Set.ZeroBlocks].
func (s *Set) FillBlocks(b *cuda.Batch, stream cuda.Stream, t *Table, ids []kv.Block, word uint32) error {
	if err := t.checkFill(word); err != nil {
		return err
	}
	return s.launch(b, stream, fillBlocks, t, uint64(word), ids)
}

// FillBlocksAt is [Set.FillBlocks] for ids in memory, in a single launch.
func (s *Set) FillBlocksAt(b *cuda.Batch, stream cuda.Stream, t *Table, ids List, word uint32) error {
	if err := t.checkFill(word); err != nil {
		return err
	}
	return s.launchAt(b, stream, fillBlocks, t, uint64(word), ids)
}

// checkFill refuses a word that would give a byte two values in one launch.
func (t *Table) checkFill(word uint32) error {
	if t != nil && t.overlap && word != word&0xff*0x01010101 {
		return fmt.Errorf("kernels: pool %d: fill with %#x: pages of a block share bytes: %w", t.layout.Pool, word, cuda.ErrInvalidValue)
	}
	return nil
}

// ResetState adds the reset of the listed rows to row, which is all regions of
// one row end to end in the order of t's segments; 0 resets to zeros. Row must
// stay as it is until the launch has run, and must not be one of the rows. It
// is copied fastest when each region lies as far from a 16-byte boundary there
// as in the rows. A table whose regions share bytes can be reset to zeros only.
func (s *Set) ResetState(b *cuda.Batch, stream cuda.Stream, t *Table, ids []kv.Block, row cuda.DevicePtr) error {
	if err := t.checkRow(row); err != nil {
		return err
	}
	return s.launch(b, stream, resetState, t, uint64(row), ids)
}

// ResetStateAt is [Set.ResetState] for ids in memory, in a single launch.
func (s *Set) ResetStateAt(b *cuda.Batch, stream cuda.Stream, t *Table, ids List, row cuda.DevicePtr) error {
	if err := t.checkRow(row); err != nil {
		return err
	}
	return s.launchAt(b, stream, resetState, t, uint64(row), ids)
}

// checkRow refuses a row that would give a byte two values in one launch.
func (t *Table) checkRow(row cuda.DevicePtr) error {
	if row != 0 && t != nil && t.overlap {
		return fmt.Errorf("kernels: pool %d: reset to a row: pages of a block share bytes: %w", t.layout.Pool, cuda.ErrInvalidValue)
	}
	return nil
}

// ChecksumBlocks adds the checksums of the listed blocks: one 64-bit word for
// each id into sums, whose address is a multiple of 8, in the order of the
// list. [Checksum] says what they are; the word of a skipped id is 0.
func (s *Set) ChecksumBlocks(b *cuda.Batch, stream cuda.Stream, t *Table, ids []kv.Block, sums cuda.DevicePtr) error {
	if err := s.checkSums(t, sums); err != nil || len(ids) == 0 {
		return err
	}
	b.Fill32(stream, sums, 0, 2*uint64(len(ids)))
	return s.launch(b, stream, checksumBlocks, t, uint64(sums), ids)
}

// ChecksumBlocksAt is [Set.ChecksumBlocks] for ids in memory, in a single
// launch. Sums has Max words.
func (s *Set) ChecksumBlocksAt(b *cuda.Batch, stream cuda.Stream, t *Table, ids List, sums cuda.DevicePtr) error {
	if err := s.checkSums(t, sums); err != nil {
		return err
	}
	if err := ids.check(); err != nil || ids.Max == 0 {
		return err
	}
	b.Fill32(stream, sums, 0, 2*uint64(ids.Max))
	return s.launchAt(b, stream, checksumBlocks, t, uint64(sums), ids)
}

func (s *Set) checkSums(t *Table, sums cuda.DevicePtr) error {
	if sums%8 != 0 || sums == 0 {
		return fmt.Errorf("kernels: sums at %#x, want a multiple of 8: %w", uint64(sums), cuda.ErrInvalidValue)
	}
	return s.check(t)
}

func (s *Set) check(t *Table) error {
	switch {
	case t == nil:
		return fmt.Errorf("kernels: no table: %w", cuda.ErrInvalidValue)
	case s.modules == nil:
		return fmt.Errorf("kernels: set: %w", cuda.ErrClosed)
	case t.closed:
		return fmt.Errorf("kernels: table of pool %d: %w", t.layout.Pool, cuda.ErrClosed)
	case t.dev != s.dev:
		return fmt.Errorf("kernels: table of pool %d is of another device: %w", t.layout.Pool, cuda.ErrInvalidValue)
	}
	return nil
}

func (l List) check() error {
	if l.Max < 0 || l.Max > math.MaxInt32 || l.IDs%4 != 0 || l.Count%4 != 0 || l.IDs == 0 && l.Max > 0 {
		return fmt.Errorf("kernels: list of %d ids at %#x with its count at %#x: %w",
			l.Max, uint64(l.IDs), uint64(l.Count), cuda.ErrInvalidValue)
	}
	return nil
}

// launch adds one launch for each 1,012 ids. own is the kernel's own argument: see
// ownArgs.
func (s *Set) launch(b *cuda.Batch, stream cuda.Stream, k kernel, t *Table, own uint64, ids []kv.Block) error {
	if err := s.check(t); err != nil || t.resting {
		return err
	}
	for len(ids) > 0 {
		part, v := ids, inMany
		if len(part) <= fewIDs {
			v = inFew
		} else if len(part) > manyIDs {
			part = part[:manyIDs]
		}
		copy(s.add(b, stream, k, v, t, own, uint32(len(part))), idBytes(part))
		ids = ids[len(part):]
		if k == checksumBlocks {
			own += uint64(8 * len(part))
		}
	}
	return nil
}

func (s *Set) launchAt(b *cuda.Batch, stream cuda.Stream, k kernel, t *Table, own uint64, ids List) error {
	if err := s.check(t); err != nil {
		return err
	}
	if err := ids.check(); err != nil || ids.Max == 0 || t.resting {
		return err
	}
	m := memoryArgs{IDs: ids.IDs, Count: ids.Count}
	copy(s.add(b, stream, k, inMemory, t, own, uint32(ids.Max)), bytesOf(&m))
	return nil
}

// add adds a launch and returns the place of the arguments that end with the
// ids.
func (s *Set) add(b *cuda.Batch, stream cuda.Stream, k kernel, v variant, t *Table, own uint64, count uint32) []byte {
	args := s.launchItems(b, stream, k, v, uint64(count)*uint64(t.count))
	head := headArgs{Origin: t.origin, Tiles: t.tiles, TileCount: t.count, First: t.first, Span: t.span, Count: count}
	n := copy(args, bytesOf(&head))
	if k != zeroBlocks {
		n += copy(args[n:], bytesOf(&own))
	}
	return args[n:]
}

// launchItems adds a launch for that many work items and returns the place of its
// arguments.
func (s *Set) launchItems(b *cuda.Batch, stream cuda.Stream, k kernel, v variant, items uint64) []byte {
	return b.Launch(stream, s.functions[k][v], geometry(items, s.sms, s.tuning.BlocksPerSM), images[k].size[v])
}
