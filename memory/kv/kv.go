// Package kv holds the plain types that every part of kvgate shares: block
// ids, generations, byte ranges, points on timelines. It has no behaviour
// beyond arithmetic and imports nothing but fmt and math.
package kv

import (
	"fmt"
	"math"
)

// Block is the id of a manager block: the unit that a pool hands out. The id
// space starts at 0. Padding in lists of ids is negative (see [Pad]).
type Block int32

// Pad is the id that lists use for "no block". Every negative id is padding.
const Pad Block = -1

// Null is the id that a KV pool never hands out, frees, loads into or zeroes.
const Null Block = 0

// KernelBlock is the id of the unit that an attention kernel pages by. One
// manager block is Ratio consecutive kernel blocks. The two id spaces are
// distinct types because mixing them up addresses the wrong memory silently.
type KernelBlock int32

// Expand returns the first of the ratio kernel blocks that make up b; those of
// padding are padding. It is an error if ratio is not positive, or if the id of
// one of the kernel blocks does not fit.
func (b Block) Expand(ratio int) (KernelBlock, error) {
	switch {
	case ratio < 1:
		return 0, fmt.Errorf("kv: block %d of %d kernel blocks: want at least 1", b, ratio)
	case b < 0:
		return KernelBlock(Pad), nil
	case ratio > math.MaxInt32 || (int64(b)+1)*int64(ratio)-1 > math.MaxInt32:
		return 0, fmt.Errorf("kv: block %d of %d kernel blocks: their ids go beyond %d", b, ratio, math.MaxInt32)
	}
	return KernelBlock(int64(b) * int64(ratio)), nil
}

// PoolID names a pool of blocks; the blocks of a pool are recycled together.
type PoolID uint16

// Group names a set of layers that share a block table. A group draws its
// blocks from one pool; groups are counted over all pools of a gate, in the
// order of the pools.
type Group uint16

// Generation counts the tenancies of one block. Generation 0 is no tenancy.
type Generation uint32

// Tenancy is one ownership of a block: the block and its generation. A tenancy
// whose block has been handed out again since is stale.
type Tenancy struct {
	Block      Block
	Generation Generation
}

func (t Tenancy) String() string { return fmt.Sprintf("block %d gen %d", t.Block, t.Generation) }

// Range is a run of bytes inside one block. A block's bytes are those of its
// pages laid end to end in the order of the pool's segments.
type Range struct {
	Off, Len uint64
}

// WholeBlock is the range that covers a block of any size.
var WholeBlock = Range{0, math.MaxUint64}

// End returns the first offset behind r. It saturates for [WholeBlock].
func (r Range) End() uint64 {
	if r.Len > math.MaxUint64-r.Off {
		return math.MaxUint64
	}
	return r.Off + r.Len
}

// Overlaps reports whether r and o share a byte.
func (r Range) Overlaps(o Range) bool {
	return r.Len > 0 && o.Len > 0 && r.Off < o.End() && o.Off < r.End()
}

// Contains reports whether every byte of o lies in r.
func (r Range) Contains(o Range) bool {
	return o.Len == 0 || r.Off <= o.Off && o.End() <= r.End()
}

func (r Range) String() string {
	if r == WholeBlock {
		return "[all]"
	}
	return fmt.Sprintf("[%d,%d)", r.Off, r.End())
}

// Timeline names a stream's counted work. Ids start at 1 and are never reused;
// 0 is no timeline.
type Timeline uint32

// Seq is the number of a mark on its timeline. The first mark is 1.
type Seq uint64

// Point is an immutable place on a timeline. The zero Point is always in the
// past.
type Point struct {
	Timeline Timeline
	Seq      Seq
}

func (p Point) String() string {
	if p.Timeline == 0 {
		return "none"
	}
	return fmt.Sprintf("t%d@%d", p.Timeline, p.Seq)
}

// Instant is a reading of the device's clock in nanoseconds since its epoch.
type Instant int64

// Never is later than every instant.
const Never Instant = math.MaxInt64
