// Zeroing with 16-byte stores and scalar heads and tails, in a grid-stride loop.
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

// zero_flat clears n 16-byte words at p.
extern "C" __global__ void zero_flat(uint4* p, u64 n) {
	u64 step = (u64)gridDim.x * blockDim.x;
	for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		p[i] = make_uint4(0, 0, 0, 0);
}

// zero_span clears any n bytes at any address: head, 16-byte body, tail.
extern "C" __global__ void zero_span(u8* p, u64 n) {
	u64 t = (u64)blockIdx.x * blockDim.x + threadIdx.x;
	u64 step = (u64)gridDim.x * blockDim.x;
	u64 head = (16 - ((u64)p & 15)) & 15;
	if (head > n) head = n;
	for (u64 i = t; i < head; i += step) p[i] = 0;
	u64 words = (n - head) / 16;
	uint4* w = (uint4*)(p + head);
	for (u64 i = t; i < words; i += step) w[i] = make_uint4(0, 0, 0, 0);
	for (u64 i = head + words * 16 + t; i < n; i += step) p[i] = 0;
}

struct Segment { u64 base; u64 stride; u64 bytes; };
struct Ids { u32 count; int id[64]; };

// zero_ids clears the pages of the blocks listed in its parameters; a negative
// id is skipped. Grid: x within a page, y segment, z id.
extern "C" __global__ void zero_ids(const Segment* __restrict__ segs, u32 nsegs, const u32* count, Ids ids) {
	u32 n = count ? *count : ids.count;
	for (u32 s = blockIdx.y; s < nsegs; s += gridDim.y) {
		Segment g = segs[s];
		for (u32 k = blockIdx.z; k < n; k += gridDim.z) {
			int id = ids.id[k];
			if (id < 0) continue;
			u8* p = (u8*)(g.base + (u64)id * g.stride);
			for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x); i < g.bytes; i += (u64)gridDim.x * blockDim.x)
				p[i] = 0;
		}
	}
}
