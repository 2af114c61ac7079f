package kernels

import (
	"slices"
	"unsafe"

	"github.com/kvgate/kvgate/memory/layout"
)

// tile is part of a page, as tiles.cuh has it. The tile of block b starts at
// the table's origin + start + b*stride.
type tile struct {
	start  uint64
	stride uint64
	offset uint64 // of its first byte in the bytes of its block
	bytes  uint64
}

const (
	// tileBytes: at 8 KiB a lane has 16 stores to do, and reading the tile costs
	// 0.4 % of what it writes. A block of 2 MiB makes 256 tiles: enough for the
	// SMs of any GPU so far. A Tuning may say otherwise.
	tileBytes = 8 << 10
	// maxTiles keeps a table within 2 MiB, small beside the L2 cache that every
	// launch reads it from. Tables of larger blocks get larger tiles.
	maxTiles = 1 << 16
	// maxTileBytes keeps offsets within a tile in 32 bits.
	maxTileBytes = 1 << 29
	// tileAlign: tiles after the first of a page begin at full cache lines where
	// base and stride allow it.
	tileAlign = 128
)

// tileSize returns the size of tiles for a table: size, or more for large blocks.
func tileSize(t *layout.Table, size uint64) uint64 {
	for size < maxTileBytes && tileCount(t, size) > maxTiles {
		size *= 2
	}
	return size
}

// firstCut returns how many bytes short the first tile of a page is, so that
// the next one begins at a cache line. It is a multiple of 16: all cuts are, as
// checksum_blocks wants them.
func firstCut(s layout.Segment) uint64 { return s.Base % tileAlign &^ 15 }

func tileCount(t *layout.Table, size uint64) uint64 {
	var n uint64
	for _, s := range t.Segments {
		n += (s.Page-1)/size + 1
		if (s.Page-1)%size+firstCut(s) >= size {
			n++
		}
	}
	return n
}

// cut divides the pages of a block into tiles of at most size bytes, a multiple
// of tileAlign. A table of pages so large that even tiles of maxTileBytes are
// too many for a launch is the caller's to refuse.
func cut(t *layout.Table, origin, size uint64) []tile {
	tiles := make([]tile, 0, tileCount(t, size))
	var offset uint64
	for _, s := range t.Segments {
		for at, n := uint64(0), size-firstCut(s); at < s.Page; n = size {
			n = min(n, s.Page-at)
			tiles = append(tiles, tile{
				start: s.Base - origin + at, stride: s.Stride, offset: offset + at, bytes: n,
			})
			at += n
		}
		offset += s.Page
	}
	return tiles
}

// origin returns the lowest base of a table with segments.
func origin(t *layout.Table) uint64 {
	return slices.MinFunc(t.Segments, func(a, b layout.Segment) int {
		if a.Base < b.Base {
			return -1
		}
		return 1
	}).Base
}

// tileBytesOf returns the memory of tiles.
func tileBytesOf(tiles []tile) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(tiles))), len(tiles)*int(unsafe.Sizeof(tile{})))
}
