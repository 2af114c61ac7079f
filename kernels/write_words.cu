// write_words writes runs of 32-bit words into a table and nothing else: word
// at + i of a run gets value + i * step. Words outside the table are skipped. All
// runs are written at the same time, in no order: no word may be in two of them.
#include "tiles.cuh"

// Layout: kernels.Run in Go.
struct Run {
    u32 at;
    u32 value;
    unsigned short count;
    unsigned short step;
};

// Runs inside the launch arguments.
template <u32 capacity> struct Runs {
    Run run[capacity];
};

// A warp writes a run, its lanes one word each.
__device__ inline void writeRuns(u32 *__restrict__ table, u32 words, u32 count, const Run *__restrict__ runs) {
    const u32 lane = threadIdx.x & 31;
#pragma unroll 1
    for (u32 r = blockIdx.x + (threadIdx.x >> 5) * gridDim.x; r < count; r += gridDim.x * warpsPerBlock) {
        const Run run = runs[r];
#pragma unroll 1
        for (u32 i = lane; i < run.count; i += 32) {
            if (run.at + i < words)
                table[run.at + i] = run.value + i * run.step;
        }
    }
}

// Up to 20 runs in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
write_words_20(u32 *table, u32 words, u32 count, const Runs<20> runs) {
    writeRuns(table, words, count, runs.run);
}

// Up to 340 runs in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4)
write_words_340(u32 *table, u32 words, u32 count, const Runs<340> runs) {
    writeRuns(table, words, count, runs.run);
}
