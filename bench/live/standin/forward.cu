// What stands in for a model's forward pass: check_tokens reads the blocks of a
// step, compares every word with the stamp that belongs there, and takes a set
// time; write_tokens writes the stamps of tokens.
//
// A token of a request has a slot in each of its block's pages, of 2^shift
// 64-bit words. Slots of a block that no token has been written to hold zeros.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// Where pages lie: block b of segment s at base + s * segmentStride + b * page.
// Layout: standin.Pages in Go.
struct Pages {
    char *base;
    u64 segmentStride;
    u32 pageBytes; // a multiple of 16
    u32 segments;
    u32 shift;     // 2^shift words in a slot; at least 1
    u32 reserved;
};

// A block as a request uses it. Layout: standin.Item in Go.
struct Item {
    u32 block;
    u32 request;
    u32 position; // of the token in the block's first slot
    u16 first, end;
};

// No two words of any tokens have a stamp in common, and none is 0.
__device__ inline u64 stamp(u32 request, u32 position, u32 segment, u32 word) {
    return (u64)request << 40 | (u64)position << 20 | (u64)segment << 14 | word;
}

__device__ inline u64 now() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// A thread block of 256 threads on each multiprocessor leaves room for zeroing
// beside it. To read at some TB/s all the same, each thread has this many loads
// in flight.
enum : u32 { ahead = 4 };

// Checks the slots up to each item's end, and that those behind hold zeros. The
// report has a word for each page of each item: the step, and in the lower half
// how many threads saw a wrong word.
extern "C" __global__ void __launch_bounds__(256)
check_tokens(const Pages pages, const Item *items, u32 count, u32 step, u64 *report, u64 ns) {
    const u64 until = now() + ns;
    const u32 vectors = pages.pageBytes / 16;
    const u32 inSlot = (1u << pages.shift) - 1;
#pragma unroll 1
    for (u32 p = blockIdx.x; p < count * pages.segments; p += gridDim.x) {
        const u32 segment = p % pages.segments;
        const Item item = items[p / pages.segments];
        const ulonglong2 *page =
            (const ulonglong2 *)(pages.base + segment * pages.segmentStride + (u64)item.block * pages.pageBytes);
        bool wrong = false;
#pragma unroll 1
        for (u32 first = threadIdx.x; first < vectors; first += ahead * blockDim.x) {
            ulonglong2 seen[ahead];
#pragma unroll
            for (u32 k = 0; k < ahead; k++) {
                if (first + k * blockDim.x < vectors)
                    seen[k] = page[first + k * blockDim.x];
            }
#pragma unroll
            for (u32 k = 0; k < ahead; k++) {
                const u32 v = first + k * blockDim.x;
                const u32 slot = 2 * v >> pages.shift;
                u64 want = 0, more = 0;
                if (slot < item.end) {
                    want = stamp(item.request, item.position + slot, segment, 2 * v & inSlot);
                    more = 1;
                }
                if (v < vectors)
                    wrong |= seen[k].x != want || seen[k].y != want + more;
            }
        }
        const u32 threads = __syncthreads_count(wrong);
        if (threadIdx.x == 0)
            report[p] = (u64)step << 32 | threads;
    }
    // All thread blocks are resident and began together. Sleeps of half the rest
    // do not pass the end: a nanosleep may take twice what it is asked for.
    if (threadIdx.x == 0) {
        for (u64 t = now(); t < until; t = now()) {
            const u64 half = (until - t) / 2;
            __nanosleep(half > 500000 ? 500000 : half < 1 ? 1 : (u32)half);
        }
    }
}

// Writes the stamps of the slots from first to end of each item.
extern "C" __global__ void __launch_bounds__(256)
write_tokens(const Pages pages, const Item *items, u32 count) {
    const u32 inSlot = (1u << pages.shift) - 1;
#pragma unroll 1
    for (u32 p = blockIdx.x; p < count * pages.segments; p += gridDim.x) {
        const u32 segment = p % pages.segments;
        const Item item = items[p / pages.segments];
        ulonglong2 *page = (ulonglong2 *)(pages.base + segment * pages.segmentStride + (u64)item.block * pages.pageBytes);
        const u32 end = ((u32)item.end << pages.shift) / 2;
#pragma unroll 1
        for (u32 v = ((u32)item.first << pages.shift) / 2 + threadIdx.x; v < end; v += blockDim.x) {
            const u64 w = stamp(item.request, item.position + (2 * v >> pages.shift), segment, 2 * v & inSlot);
            page[v] = make_ulonglong2(w, w + 1);
        }
    }
}
