// fill_blocks writes a pattern of four bytes over the pages of a list of blocks,
// from the first byte of each page on: the lowest byte of word first. It marks
// memory that nothing may read before it is written, with NaNs for one.
//
// Which ids are skipped, and what is not written: as in zero_blocks.
#include "pages.cuh"

__device__ inline void fillBlocks(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count,
                                  u64 word, const int *__restrict__ ids) {
    const Address base = __cvta_generic_to_global(origin);
#pragma unroll 1
    for (Cursor c(tileCount); c.position < count; c.next()) {
        const Tile t = loadTile(tiles, c.tile);
        const int id = ids[c.position];
        if (((u32)id - first >= span) | t.none())
            continue;
        fill<false>(base + t.start + (u64)(u32)id * t.stride, t.bytes(), (u32)word);
    }
}

// Ids and their count in memory that the device can read.
extern "C" __global__ void __launch_bounds__(256, 4)
fill_blocks(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 max, u64 word,
            const int *ids, const u32 *count) {
    fillBlocks(origin, tiles, tileCount, first, span, listLength(count, max), word, ids);
}

// Up to 56 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
fill_blocks_56(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count, u64 word,
               const IDs<56> ids) {
    fillBlocks(origin, tiles, tileCount, first, span, count, word, ids.id);
}

// Up to 1,012 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
fill_blocks_1012(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count, u64 word,
                 const IDs<1012> ids) {
    fillBlocks(origin, tiles, tileCount, first, span, count, word, ids.id);
}
