// Fills and copies of page bytes, by one warp each. Included by the kernels that
// write pages.
//
// How they store is fixed here, and a build chooses:
//
//   KVG_STREAMING  1: stores, and the loads of copies, are marked as used once
//                  (.cs, evicted first). Pages are zeroed by the gigabyte, and
//                  must not push weights and KV that steps read out of L2.
//                  0: they take their place in the cache as any other.
//   KVG_UNROLL     16-byte stores a lane issues in a row: 1 to 16.
//
// Wider stores (32 bytes, compute_100) and policies of L2 (compute_80) would be
// further choices of this kind. They wait until they were seen on a GPU.
#pragma once
#include "tiles.cuh"

#ifndef KVG_STREAMING
#define KVG_STREAMING 1
#endif
#ifndef KVG_UNROLL
#define KVG_UNROLL 8
#endif

#if KVG_STREAMING
#define KVG_HOW ".cs"
#else
#define KVG_HOW ""
#endif

__device__ inline void storeByte(Address p, u32 v) {
    asm volatile("st.global" KVG_HOW ".u8 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ inline u32 loadByte(Address p) {
    u32 v;
    asm volatile("ld.global" KVG_HOW ".u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

// Offsets are part of the instruction, so that several accesses share a register.
template <u32 offset> __device__ inline void storeAt(Address p, uint4 v) {
    asm volatile("st.global" KVG_HOW ".v4.u32 [%0+%5], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w), "n"(offset)
                 : "memory");
}
template <u32 offset> __device__ inline void storeAt(Address p, u32 v) {
    asm volatile("st.global" KVG_HOW ".u32 [%0+%2], %1;" ::"l"(p), "r"(v), "n"(offset) : "memory");
}
template <u32 offset> __device__ inline void storeAt(Address p, unsigned char v) {
    asm volatile("st.global" KVG_HOW ".u8 [%0+%2], %1;" ::"l"(p), "r"((u32)v), "n"(offset) : "memory");
}
template <u32 offset> __device__ inline void loadAt(Address p, uint4 &v) {
    asm volatile("ld.global" KVG_HOW ".v4.u32 {%0, %1, %2, %3}, [%4+%5];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p), "n"(offset)
                 : "memory");
}
template <u32 offset> __device__ inline void loadAt(Address p, u32 &v) {
    asm volatile("ld.global" KVG_HOW ".u32 %0, [%1+%2];" : "=r"(v) : "l"(p), "n"(offset) : "memory");
}
template <u32 offset> __device__ inline void loadAt(Address p, unsigned char &v) {
    u32 w;
    asm volatile("ld.global" KVG_HOW ".u8 %0, [%1+%2];" : "=r"(w) : "l"(p), "n"(offset) : "memory");
    v = (unsigned char)w;
}

// n stores of v, 512 bytes apart.
template <u32 n> struct Row {
    __device__ static inline void store(Address p, uint4 v) {
        Row<n - 1>::store(p, v);
        storeAt<(n - 1) * 512>(p, v);
    }
};
template <> struct Row<0> {
    __device__ static inline void store(Address, uint4) {}
};

// Fills bytes at p with a word of four, the first of which is the lowest: 16-byte
// stores, single bytes in front of the first 16-byte boundary and behind the
// last. The single bytes of a warp go out as one store.
template <bool zeros> __device__ inline void fill(Address p, u32 bytes, u32 word) {
    const u32 lane = threadIdx.x & 31;
    const u32 head = min(-(u32)p & 15, bytes);
    const u32 tail = (bytes - head) & 15;
    u32 vectors = (bytes - head) >> 4;
    Address v = p + head + 16 * lane;

    if (lane < head)
        storeByte(p + lane, word >> (8 * (lane & 3)));
    if (lane < tail) {
        const u32 at = bytes - tail + lane;
        storeByte(p + at, word >> (8 * (at & 3)));
    }
    const u32 turn = 8 * head & 31;
    const u32 w = word >> turn | word << (32 - turn & 31);
    // No tile has 2^30 bytes, which ptxas does not know: it keeps four registers in a
    // row for what it takes for four values, and would else make them anew for each
    // store. Zeros need no registers.
    const u32 nothing = zeros ? 0 : bytes >> 30;
    const uint4 four = make_uint4(w, w + nothing, w + 2 * nothing, w + 3 * nothing);
#pragma unroll 1
    for (; vectors >= KVG_UNROLL * 32; vectors -= KVG_UNROLL * 32, v += KVG_UNROLL * 512)
        Row<KVG_UNROLL>::store(v, four);
#pragma unroll 1
    for (u32 k = lane; k < vectors; k += 32, v += 512)
        storeAt<0>(v, four);
}

// Copies units of type T. Both addresses are multiples of sizeof(T).
template <typename T> __device__ inline void copyUnits(Address d, Address s, u32 units) {
    const u32 lane = threadIdx.x & 31;
    const u32 size = sizeof(T), row = 32 * sizeof(T);
    d += lane * size;
    s += lane * size;
    // Four loads in flight a lane before the first store.
#pragma unroll 1
    for (; units >= 4 * 32; units -= 4 * 32, d += 4 * row, s += 4 * row) {
        T a, b, c, e;
        loadAt<0>(s, a);
        loadAt<row>(s, b);
        loadAt<2 * row>(s, c);
        loadAt<3 * row>(s, e);
        storeAt<0>(d, a);
        storeAt<row>(d, b);
        storeAt<2 * row>(d, c);
        storeAt<3 * row>(d, e);
    }
#pragma unroll 1
    for (u32 k = lane; k < units; k += 32, d += row, s += row) {
        T a;
        loadAt<0>(s, a);
        storeAt<0>(d, a);
    }
}

// Copies bytes: 16 at a time where source and destination are the same distance
// from a 16-byte boundary, else 4, else 1.
__device__ inline void copy(Address dst, Address src, u32 bytes) {
    const u32 lane = threadIdx.x & 31;
    const u32 apart = (u32)dst ^ (u32)src;
    const u32 unit = (apart & 15) == 0 ? 16 : (apart & 3) == 0 ? 4 : 1;
    const u32 head = min(-(u32)dst & (unit - 1), bytes);
    const u32 tail = (bytes - head) & (unit - 1);
    const u32 body = bytes - head - tail;

    if (lane < head)
        storeByte(dst + lane, loadByte(src + lane));
    if (lane < tail)
        storeByte(dst + head + body + lane, loadByte(src + head + body + lane));
    if (unit == 16)
        copyUnits<uint4>(dst + head, src + head, body >> 4);
    else if (unit == 4)
        copyUnits<u32>(dst + head, src + head, body >> 2);
    else
        copyUnits<unsigned char>(dst, src, body);
}

// One side of a copy. Row r of tile t lies at base + t.start + r * t.stride where
// the side is blocks of the pool, and at base + t.offset + r * stride where it is
// rows that hold the pages of a block end to end, stride bytes apart.
struct Side {
    Address base;
    u64 stride; // 0: blocks
    u32 first, span;

    __device__ bool skips(int row) const { return (u32)row - first >= span; }
    __device__ Address at(const Tile &t, int row) const {
        return base + (stride ? t.offset : t.start) + (u64)(u32)row * (stride ? stride : t.stride);
    }
};

// What a copy does: the rows are written and read.
struct Pair {
    int dst, src;
};

// Pairs inside the launch arguments.
template <u32 capacity> struct Pairs {
    Pair pair[capacity];
};
