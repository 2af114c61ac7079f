// zero_blocks writes zeros over the pages of a list of blocks and over nothing
// else: gaps between page and stride keep their bytes.
//
// Ids below first or at first + span and beyond are skipped; negative ones are
// thereby skipped too. Duplicates write the same zeros twice.
#include "pages.cuh"

__device__ inline void zero(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count,
                            const int *__restrict__ ids) {
    const Address base = __cvta_generic_to_global(origin);
#pragma unroll 1
    for (Cursor c(tileCount); c.position < count; c.next()) {
        const Tile t = loadTile(tiles, c.tile);
        const int id = ids[c.position];
        if (((u32)id - first >= span) | t.none())
            continue;
        fill<true>(base + t.start + (u64)(u32)id * t.stride, t.bytes(), 0);
    }
}

// Ids and their count in memory that the device can read.
extern "C" __global__ void __launch_bounds__(256, 4)
zero_blocks(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 max,
            const int *ids, const u32 *count) {
    zero(origin, tiles, tileCount, first, span, listLength(count, max), ids);
}

// Up to 56 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
zero_blocks_56(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count,
               const IDs<56> ids) {
    zero(origin, tiles, tileCount, first, span, count, ids.id);
}

// Up to 1,012 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
zero_blocks_1012(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count,
                 const IDs<1012> ids) {
    zero(origin, tiles, tileCount, first, span, count, ids.id);
}
