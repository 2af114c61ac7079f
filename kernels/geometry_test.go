package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/layout"
)

// walk visits the items of each warp of a launch, with the 32-bit arithmetic
// of Cursor in tiles.cuh.
func walk(g cuda.Geometry, count, tiles uint32, visit func(warp, position, tile uint32)) {
	grid := g.Grid[0]
	step := grid * warpsPerBlock
	for block := range grid {
		for warp := range uint32(warpsPerBlock) {
			item := block + warp*grid
			position, tile := item/tiles, item%tiles
			for position < count {
				visit(block*warpsPerBlock+warp, position, tile)
				position += step / tiles
				tile += step % tiles
				if tile >= tiles {
					tile -= tiles
					position++
				}
			}
		}
	}
}

func checkGeometry(t require.TestingT, g cuda.Geometry) {
	require.Positive(t, g.Grid[0])
	require.LessOrEqual(t, g.Grid[0], uint32(math.MaxInt32))
	require.Equal(t, [2]uint32{1, 1}, [2]uint32(g.Grid[1:]))
	require.Equal(t, [3]uint16{256, 1, 1}, g.Block)
}

func checkWalk(t require.TestingT, count, tiles uint32, sms int) {
	g := geometry(uint64(count)*uint64(tiles), sms, blocksPerSM)
	checkGeometry(t, g)
	seen := make([]uint8, uint64(count)*uint64(tiles))
	perWarp := make([]int, g.Grid[0]*warpsPerBlock)
	walk(g, count, tiles, func(warp, position, tile uint32) {
		seen[uint64(position)*uint64(tiles)+uint64(tile)]++
		perWarp[warp]++
	})
	for i, n := range seen {
		if n != 1 {
			require.Failf(t, "item", "position %d tile %d of %d x %d visited %d times",
				i/int(tiles), i%int(tiles), count, tiles, n)
		}
	}
	most, least := 0, math.MaxInt
	for _, n := range perWarp {
		most, least = max(most, n), min(least, n)
	}
	require.LessOrEqual(t, most-least, 1, "work of a warp")
}

func TestGeometryVisitsEachItemOnce(t *testing.T) {
	for _, c := range [][2]uint32{
		{1, 1}, {1, 65535}, {1, 65536}, {1, 65537}, {2, 65537}, {65537, 1}, {1_000_000, 1}, {1_000_000, 2},
		{3000, 400}, {4096, 257}, {1055, 1}, {1056, 1}, {1057, 1}, {8447, 1}, {8448, 1}, {8449, 1}, {7, 8448},
	} {
		checkWalk(t, c[0], c[1], 132)
	}
	rapid.Check(t, func(t *rapid.T) {
		checkWalk(t, rapid.Uint32Range(1, 300).Draw(t, "count"), rapid.Uint32Range(1, 300).Draw(t, "tiles"),
			rapid.IntRange(0, 40).Draw(t, "SMs"))
	})
}

// Limits of a grid: 2^31-1, 65,535, 65,535.
func TestGeometryStaysWithinLaunchLimits(t *testing.T) {
	for _, sms := range []int{0, 1, 132, 148, 10000} {
		for _, items := range []uint64{1, 2, 131, 132, 133, 1 << 31, math.MaxInt32 * (1 << 30)} {
			g := geometry(items, sms, blocksPerSM)
			checkGeometry(t, g)
			require.LessOrEqual(t, uint64(g.Grid[0]), items)
		}
	}
	require.EqualValues(t, 132, geometry(1056, 132, blocksPerSM).Grid[0], "few items: one thread block an SM")
	require.EqualValues(t, 1056, geometry(1<<40, 132, blocksPerSM).Grid[0], "many items: every SM full")
}

// A step of the cursor must not wrap: places and tiles are 32-bit.
func TestCursorArithmeticFits(t *testing.T) {
	step := uint64(geometry(math.MaxUint64, maxSMs, maxBlocksPerSM).Grid[0]) * warpsPerBlock
	require.Less(t, uint64(math.MaxInt32)+step+1, uint64(math.MaxUint32))
	require.Less(t, uint64(maxLaunchTiles)*2, uint64(math.MaxUint32))
}

func checkTiles(t require.TestingT, table *layout.Table, size uint64) {
	low := origin(table)
	tiles := cut(table, low, size)
	require.EqualValues(t, tileCount(table, size), len(tiles))
	i, offset := 0, uint64(0)
	for n, s := range table.Segments {
		for at := uint64(0); at < s.Page; i++ {
			if i == len(tiles) {
				require.Failf(t, "tiles", "segment %d ends at %d of %d", n, at, s.Page)
			}
			c := tiles[i]
			if c.start+low != s.Base+at || c.stride != s.Stride || c.offset != offset+at ||
				c.bytes == 0 || uint64(c.bytes) > size || uint64(c.bytes) > s.Page-at || at%16 != 0 {
				require.Failf(t, "tiles", "segment %d at %d: %+v", n, at, c)
			}
			at += uint64(c.bytes)
		}
		offset += s.Page
	}
	require.Equal(t, len(tiles), i)
}

func TestTilesCoverEachPageOnce(t *testing.T) {
	mixed := func(n int) *layout.Table {
		table := &layout.Table{Blocks: 2}
		at := uint64(1 << 20)
		for i := range n {
			page := []uint64{8448, 73728, 1168, 41984, 1380, 1, 16 << 10}[i%7]
			table.Segments = append(table.Segments, layout.Segment{Base: at, Stride: page + uint64(i%3), Page: page})
			at += 2*page + 100
		}
		return table
	}
	for _, n := range []int{1, 7, 300, 65535, 65536, 65537} {
		table := mixed(n)
		checkTiles(t, table, tileSize(table, tileBytes))
	}
	rapid.Check(t, func(t *rapid.T) {
		table := &layout.Table{Blocks: 1}
		for range rapid.IntRange(1, 5).Draw(t, "segments") {
			table.Segments = append(table.Segments, layout.Segment{
				Base: rapid.Uint64Range(1, 1000).Draw(t, "base"), Page: rapid.Uint64Range(1, 2000).Draw(t, "page"),
			})
		}
		checkTiles(t, table, 128<<rapid.IntRange(0, 3).Draw(t, "size"))
	})
}

func TestTileSizeGrowsWithTheBlock(t *testing.T) {
	for _, c := range []struct{ page, size uint64 }{
		{64 << 10, tileBytes},
		{1 << 30, 16 << 10},
		{1 << 40, 16 << 20},
		{1 << 50, maxTileBytes},
	} {
		table := &layout.Table{Blocks: 1, Segments: []layout.Segment{{Base: 4096, Page: c.page}}}
		require.Equal(t, c.size, tileSize(table, tileBytes), fmt.Sprintf("page of %d bytes", c.page))
	}
}

func TestTilesBeginAtCacheLines(t *testing.T) {
	table := &layout.Table{Blocks: 1, Segments: []layout.Segment{{Base: 4096 + 48, Page: 100_000}}}
	for i, c := range cut(table, 0, tileBytes) {
		if i > 0 {
			require.Zero(t, c.start%128)
		}
	}
}
