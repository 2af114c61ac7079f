// Work items of the block kernels. Included by every .cu of this folder.
//
// The host cuts a table's pages into tiles of a few KiB. A work item is a place
// in the id list together with a tile, and a warp does one item at a time, so
// that small pages leave no warps idle beside large ones. The loop needs no
// division: a warp's next item is a fixed number of places and tiles further
// on, with one carry.
//
// Items are dealt to thread blocks first and to the warps inside them second,
// so that a short list still spreads over all SMs. The grid is bounded by the
// number of SMs (kernels.geometry in Go) and walks on from there. 256 threads
// at 20 to 38 registers leave 48 to 64 warps resident on an SM of compute
// capability 7.0, 8.0, 9.0 or 10.0. To hide some 700 ns of memory latency an
// H100 needs 18 KB in flight per SM (3.35 TB/s over 132 SMs), a B200 38 KB
// (8 TB/s over 148); 64 warps with a single 512-byte store each have 32 KB, and
// zeroing issues up to 16 of them a tile before it looks at anything again.

typedef unsigned int u32;
typedef unsigned long long u64;

enum : u32 { warpsPerBlock = 8 };

// Part of a page. The tile of block b starts at origin + start + b * stride,
// where origin is a kernel argument: only from an argument does the compiler
// know that an address is in global memory. Layout: kernels.tile in Go.
struct __align__(16) Tile {
    u64 start;
    u64 stride;
    u64 offset; // of its first byte, in the pages of one block laid end to end
    u32 bytes;
    u32 reserved;
};

// Ids inside the launch arguments.
template <u32 capacity> struct IDs {
    int id[capacity];
};

// The item of a warp. It walks (position, tile) in steps of all warps of the
// launch.
struct Cursor {
    u32 position, tile;
    u32 stepPosition, stepTile, tiles;

    __device__ Cursor(u32 tileCount) : tiles(tileCount) {
        const u32 item = blockIdx.x + (threadIdx.x >> 5) * gridDim.x;
        const u32 step = gridDim.x * warpsPerBlock;
        position = item / tiles;
        tile = item - position * tiles;
        stepPosition = step / tiles;
        stepTile = step - stepPosition * tiles;
    }

    __device__ void next() {
        position += stepPosition;
        tile += stepTile;
        if (tile >= tiles) {
            tile -= tiles;
            position++;
        }
    }
};

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

// The length of a list in memory: what *count says, or max where there is no
// count; never more than max.
__device__ inline u32 listLength(const u32 *count, u32 max) {
    return count ? min(*count, max) : max;
}
