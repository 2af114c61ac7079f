// reset_state brings state rows into their initial state: zeros, or the bytes
// of a template row. A row is all regions of its block (convolution state, SSM
// state, ...): one segment of the table each. The template holds the regions
// of one row end to end, in the order of the segments; a null template is a
// row of zeros.
//
// Which ids are skipped: as in zero_blocks. The template must not lie in a row
// of the list.
#include "pages.cuh"

__device__ inline void reset(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count,
                             const char *row, const int *__restrict__ ids) {
    const Address base = __cvta_generic_to_global(origin), from = __cvta_generic_to_global(row);
#pragma unroll 1
    for (Cursor c(tileCount); c.position < count; c.next()) {
        const Tile t = loadTile(tiles, c.tile);
        const int id = ids[c.position];
        if (((u32)id - first >= span) | t.none())
            continue;
        const Address p = base + t.start + (u64)(u32)id * t.stride;
        if (row)
            copy(p, from + t.offset, t.bytes());
        else
            fill<true>(p, t.bytes(), 0);
    }
}

// Ids and their count in memory that the device can read.
extern "C" __global__ void __launch_bounds__(256, 4)
reset_state(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 max, const char *row,
            const int *ids, const u32 *count) {
    reset(origin, tiles, tileCount, first, span, listLength(count, max), row, ids);
}

// Up to 56 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
reset_state_56(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count, const char *row,
               const IDs<56> ids) {
    reset(origin, tiles, tileCount, first, span, count, row, ids.id);
}

// Up to 1,012 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
reset_state_1012(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count, const char *row,
                 const IDs<1012> ids) {
    reset(origin, tiles, tileCount, first, span, count, row, ids.id);
}
