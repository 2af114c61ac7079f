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
// Tile size, thread blocks per SM and how many SMs' worth of them are launched
// come with the launch; how pages are stored is fixed when this is compiled: see
// pages.cuh.

typedef unsigned int u32;
typedef unsigned long long u64;

enum : u32 { warpsPerBlock = 8 };

// An address in global memory. Kernels compute with numbers: from a pointer out of
// memory the compiler can not tell which space it points to.
typedef u64 Address;

// Part of a page. The tile of block b starts at origin + start + b * stride.
// Layout: kernels.tile in Go.
struct __align__(16) Tile {
    u64 start;
    u64 stride;
    u64 offset; // of its first byte, in the pages of one block laid end to end
    u64 size;

    __device__ u32 bytes() const { return (u32)size; }
    // Never true. Asked beside the test of an id, it keeps both compilers from moving
    // the loads of the tile behind that test, where a warp would wait for memory a
    // second time.
    __device__ bool none() const { return size + stride == 0; }
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

    // Starts at the item of the warp's own number.
    __device__ explicit Cursor(u32 tileCount) : Cursor(tileCount, blockIdx.x + (threadIdx.x >> 5) * gridDim.x) {}

    // Starts at an item.
    __device__ Cursor(u32 tileCount, u32 item) : tiles(tileCount) {
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

// A tile of the list, in two loads. To be called before the id is looked at: see
// Tile.none.
__device__ inline Tile loadTile(const Tile *tiles, u32 i) {
    Tile t;
    const Address at = __cvta_generic_to_global(tiles + i);
    asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2];" : "=l"(t.start), "=l"(t.stride) : "l"(at));
    asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2+16];" : "=l"(t.offset), "=l"(t.size) : "l"(at));
    return t;
}

// The length of a list in memory: what *count says, or max where there is no
// count; never more than max.
__device__ inline u32 listLength(const u32 *count, u32 max) {
    return count ? min(*count, max) : max;
}
