// checksum_blocks adds up a 64-bit checksum of each block of a list into sums,
// one word for each list position. The caller clears sums first. Ids that
// zero_blocks would skip add nothing.
//
// Each page is read as little-endian 64-bit words from its first byte; the last
// word is filled up with zero bytes. The checksum is the sum, modulo 2^64, of
// mix(word, o), with o the offset of the word's first byte in the pages of the
// block laid end to end. Addition commutes, so the shape of the launch does not
// matter; the offset makes words that changed places show.
#include "tiles.cuh"

// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom
// number generators, OOPSLA 2014), on the word plus offset times its increment.
__device__ inline u64 mix(u64 word, u64 offset) {
    u64 z = word + (offset + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// A word of up to 8 bytes at any address.
__device__ inline u64 loadBytes(const char *p, u32 n) {
    u64 w = 0;
#pragma unroll 1
    for (u32 i = 0; i < n; i++)
        w |= (u64)(unsigned char)p[i] << (8 * i);
    return w;
}

// The share of one lane in the checksum of a tile. Tiles of one page are cut at
// multiples of 16 bytes from the page's start.
__device__ inline u64 sumTile(const char *p, u32 bytes, u64 offset) {
    const u32 lane = threadIdx.x & 31;
    u64 sum = 0;
    if (((u64)p & 15) == 0) {
        const u32 pairs = bytes >> 4;
        const ulonglong2 *v = (const ulonglong2 *)p;
#pragma unroll 2
        for (u32 k = lane; k < pairs; k += 32) {
            const ulonglong2 w = v[k];
            sum += mix(w.x, offset + 16 * k) + mix(w.y, offset + 16 * k + 8);
        }
        const u32 done = pairs << 4;
        const u32 at = done + 8 * lane;
        if (at < bytes)
            sum += mix(loadBytes(p + at, min(bytes - at, 8u)), offset + at);
        return sum;
    }
#pragma unroll 1
    for (u32 at = 8 * lane; at < bytes; at += 8 * 32)
        sum += mix(loadBytes(p + at, min(bytes - at, 8u)), offset + at);
    return sum;
}

__device__ inline void checksum(const char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span,
                                u32 count, u64 *sums, const int *__restrict__ ids) {
#pragma unroll 1
    for (Cursor c(tileCount); c.position < count; c.next()) {
        const Tile t = loadTile(tiles, c.tile);
        const int id = ids[c.position];
        if (((u32)id - first >= span) | t.none())
            continue;
        u64 sum = sumTile(origin + t.start + (u64)(u32)id * t.stride, t.bytes(), t.offset);
        for (u32 d = 16; d > 0; d >>= 1)
            sum += __shfl_down_sync(0xffffffff, sum, d);
        if ((threadIdx.x & 31) == 0)
            atomicAdd(&sums[c.position], sum);
    }
}

// Ids and their count in memory that the device can read.
extern "C" __global__ void __launch_bounds__(256, 4)
checksum_blocks(const char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 max, u64 *sums,
                const int *ids, const u32 *count) {
    checksum(origin, tiles, tileCount, first, span, listLength(count, max), sums, ids);
}

// Up to 56 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
checksum_blocks_56(const char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count, u64 *sums,
                   const IDs<56> ids) {
    checksum(origin, tiles, tileCount, first, span, count, sums, ids.id);
}

// Up to 1,012 ids in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
checksum_blocks_1012(const char *origin, const Tile *tiles, u32 tileCount, u32 first, u32 span, u32 count,
                     u64 *sums, const IDs<1012> ids) {
    checksum(origin, tiles, tileCount, first, span, count, sums, ids.id);
}
