// zero_words is what zero_blocks is compared with: a thread block for each 4 KiB of
// a page, and 4-byte stores, each with a test of its own. Kernels look like this where the
// compiler does not know how addresses out of a table are aligned.
typedef unsigned int u32;
typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(128) zero_words(u32 *base, u64 stride, u32 words, const int *ids) {
    u32 *page = base + (u64)ids[blockIdx.y] * stride;
    const u32 at = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
    for (u32 j = 0; j < 8; j++)
        if (at + j * 128 < words)
            page[at + j * 128] = 0;
}
