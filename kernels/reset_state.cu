// reset_state brings state rows into their initial state: zeros, or the bytes
// of a template row. A row is all regions of its block (convolution state, SSM
// state, ...): one segment of the table each. The template holds the regions
// of one row end to end, in the order of the segments; a null template is a
// row of zeros.
//
// Which ids are skipped: as in zero_blocks. The template must not lie in a row
// of the list.
#include "tiles.cuh"

// Copies with units of type T. Both addresses are multiples of sizeof(T).
template <typename T> __device__ inline void copyUnits(char *dst, const char *__restrict__ src, u32 units) {
    const u32 lane = threadIdx.x & 31;
    T *d = (T *)dst + lane;
    const T *s = (const T *)src + lane;
    // Four loads in flight a lane before the first store.
#pragma unroll 1
    for (; units >= 4 * 32; units -= 4 * 32, d += 4 * 32, s += 4 * 32) {
        const T a = s[0], b = s[32], c = s[64], e = s[96];
        d[0] = a;
        d[32] = b;
        d[64] = c;
        d[96] = e;
    }
#pragma unroll 1
    for (u32 k = lane; k < units; k += 32, d += 32, s += 32)
        *d = *s;
}

// Copies bytes with one warp: 16 bytes at a time where source and destination
// are the same distance from a 16-byte boundary, else 4, else 1.
__device__ inline void copy(char *dst, const char *__restrict__ src, u32 bytes) {
    const u32 lane = threadIdx.x & 31;
    const u32 apart = (u32)(u64)dst ^ (u32)(u64)src;
    const u32 unit = (apart & 15) == 0 ? 16 : (apart & 3) == 0 ? 4 : 1;
    const u32 head = min(-(u32)(u64)dst & (unit - 1), bytes);
    const u32 tail = (bytes - head) & (unit - 1);
    const u32 body = bytes - head - tail;

    if (lane < head)
        dst[lane] = src[lane];
    if (lane < tail)
        dst[head + body + lane] = src[head + body + lane];
    if (unit == 16)
        copyUnits<uint4>(dst + head, src + head, body >> 4);
    else if (unit == 4)
        copyUnits<u32>(dst + head, src + head, body >> 2);
    else
        copyUnits<char>(dst, src, body);
}

__device__ inline void reset(char *origin, const Tile *__restrict__ tiles, u32 tileCount, u32 first, u32 span,
                             u32 count, const char *__restrict__ row, const int *__restrict__ ids) {
#pragma unroll 1
    for (Cursor c(tileCount); c.position < count; c.next()) {
        const int id = ids[c.position];
        if ((u32)id - first >= span)
            continue;
        const Tile t = tiles[c.tile];
        char *p = origin + t.start + (u64)(u32)id * t.stride;
        if (row)
            copy(p, row + t.offset, t.bytes);
        else
            clear(p, t.bytes);
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
