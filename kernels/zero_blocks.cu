// zero_blocks writes zeros over the pages of a list of blocks and over nothing
// else: gaps between page and stride keep their bytes.
//
// Ids below first or at first + span and beyond are skipped; negative ones are
// thereby skipped too. Duplicates write the same zeros twice.
#include "tiles.cuh"

// Clears bytes at p with one warp: 16-byte stores, single bytes in front of the
// first 16-byte boundary and behind the last. The single bytes of a warp go out
// as one store.
__device__ inline void clear(char *p, u32 bytes) {
    const u32 lane = threadIdx.x & 31;
    const u32 head = min((u32)-(u64)p & 15, bytes);
    const u32 tail = (bytes - head) & 15;
    u32 vectors = (bytes - head) >> 4;
    uint4 *v = (uint4 *)(p + head) + lane;
    const uint4 zero = make_uint4(0, 0, 0, 0);

    if (lane < head)
        p[lane] = 0;
    if (lane < tail)
        p[bytes - tail + lane] = 0;
#pragma unroll 1
    for (; vectors >= 8 * 32; vectors -= 8 * 32, v += 8 * 32) {
#pragma unroll
        for (u32 j = 0; j < 8; j++)
            v[j * 32] = zero;
    }
#pragma unroll 1
    for (u32 k = lane; k < vectors; k += 32, v += 32)
        *v = zero;
}

__device__ inline void zero(char *origin, const Tile *__restrict__ tiles, u32 tileCount, u32 first, u32 span,
                            u32 count, const int *__restrict__ ids) {
#pragma unroll 1
    for (Cursor c(tileCount); c.position < count; c.next()) {
        const int id = ids[c.position];
        if ((u32)id - first >= span)
            continue;
        const Tile t = tiles[c.tile];
        clear(origin + t.start + (u64)(u32)id * t.stride, t.bytes);
    }
}

// Ids and their count in memory that the device can read.
extern "C" __global__ void __launch_bounds__(256, 8)
zero_blocks(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 max, const int *ids, const u32 *count) {
    zero(origin, tiles, tileCount, first, span, listLength(count, max), ids);
}

// Up to 56 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 8)
zero_blocks_56(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count, const IDs<56> ids) {
    zero(origin, tiles, tileCount, first, span, count, ids.id);
}

// Up to 1,016 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 8)
zero_blocks_1016(char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count, const IDs<1016> ids) {
    zero(origin, tiles, tileCount, first, span, count, ids.id);
}
