// copy_blocks copies the pages of blocks: block to block of a pool, block to row of
// a staging area in which the pages of a block lie end to end (gather), or row to
// block (scatter). Which it is the two sides say: see Side in pages.cuh.
//
// A pair of which one side is below its first or at first + span and beyond is
// skipped, as is a block that would be copied to itself. All pairs run at the same time, in no order: no row may be written
// twice, or be written by one pair and read by another.
#include "pages.cuh"

__device__ inline void copyPairs(const Side &dst, const Side &src, const Tile *tiles, u32 tileCount, u32 count,
                                 const Pair *__restrict__ pairs) {
#pragma unroll 1
    for (Cursor c(tileCount); c.position < count; c.next()) {
        const Tile t = loadTile(tiles, c.tile);
        const Pair p = pairs[c.position];
        if (dst.skips(p.dst) | src.skips(p.src) | t.none() | (p.dst == p.src & dst.base == src.base))
            continue;
        copy(dst.at(t, p.dst), src.at(t, p.src), t.bytes());
    }
}

// Pairs and their count in memory that the device can read.
extern "C" __global__ void __launch_bounds__(256, 4)
copy_blocks(u64 dst, u64 dstStride, u32 dstFirst, u32 dstSpan, u64 src, u64 srcStride, u32 srcFirst, u32 srcSpan,
            const Tile *tiles, u32 tileCount, u32 max, const Pair *pairs, const u32 *count) {
    copyPairs(Side{dst, dstStride, dstFirst, dstSpan}, Side{src, srcStride, srcFirst, srcSpan}, tiles, tileCount,
              listLength(count, max), pairs);
}

// Up to 28 pairs in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
copy_blocks_28(u64 dst, u64 dstStride, u32 dstFirst, u32 dstSpan, u64 src, u64 srcStride, u32 srcFirst, u32 srcSpan,
               const Tile *tiles, u32 tileCount, u32 count, const Pairs<28> pairs) {
    copyPairs(Side{dst, dstStride, dstFirst, dstSpan}, Side{src, srcStride, srcFirst, srcSpan}, tiles, tileCount,
              count, pairs.pair);
}

// Up to 504 pairs in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
copy_blocks_504(u64 dst, u64 dstStride, u32 dstFirst, u32 dstSpan, u64 src, u64 srcStride, u32 srcFirst, u32 srcSpan,
                const Tile *tiles, u32 tileCount, u32 count, const Pairs<504> pairs) {
    copyPairs(Side{dst, dstStride, dstFirst, dstSpan}, Side{src, srcStride, srcFirst, srcSpan}, tiles, tileCount,
              count, pairs.pair);
}
