// Threads of a block together: barriers, shuffles, votes, atomics.
typedef unsigned long long u64;
typedef unsigned int u32;

// reduce sums in shared memory with a barrier for each level.
extern "C" __global__ void reduce(const u32* in, u64* out, u32 n) {
	__shared__ u64 part[256];
	u64 s = 0;
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += in[i];
	part[threadIdx.x] = s;
	__syncthreads();
	for (u32 k = blockDim.x / 2; k > 0; k >>= 1) {
		if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
		__syncthreads();
	}
	if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

// shuffle sums with shuffles in a warp, then over the warps.
extern "C" __global__ void shuffle(const u64* in, u64* out, u32 n) {
	extern __shared__ u64 warp[];
	u64 s = 0;
	for (u32 i = threadIdx.x; i < n; i += blockDim.x) s ^= in[i] * (2ull * i + 1);
	for (int k = 16; k > 0; k >>= 1) s ^= __shfl_xor_sync(0xffffffffu, s, k);
	if ((threadIdx.x & 31) == 0) warp[threadIdx.x >> 5] = s;
	__syncthreads();
	if (threadIdx.x < 32) {
		s = threadIdx.x < (blockDim.x >> 5) ? warp[threadIdx.x] : 0;
		for (int k = 16; k > 0; k >>= 1) s ^= __shfl_down_sync(0xffffffffu, s, k);
		if (threadIdx.x == 0) out[0] = s;
	}
}

// votes writes ballots, counts and the first lane's value.
extern "C" __global__ void votes(const int* in, u32* out) {
	u32 t = threadIdx.x;
	int v = in[t];
	u32 b = __ballot_sync(0xffffffffu, v > 0);
	u32 any = __any_sync(0xffffffffu, v > 100), all = __all_sync(0xffffffffu, v > -100);
	u32 up = __shfl_up_sync(0xffffffffu, (u32)v, 1), first = __shfl_sync(0xffffffffu, (u32)v, 0);
	out[4 * t] = b;
	out[4 * t + 1] = any | all << 1 | __popc(b) << 8 | __clz(v) << 16;
	out[4 * t + 2] = up;
	out[4 * t + 3] = first;
}

// histogram counts in shared memory, then adds to global memory.
extern "C" __global__ void histogram(const unsigned char* in, u32* out, u32 n) {
	__shared__ u32 bin[16];
	if (threadIdx.x < 16) bin[threadIdx.x] = 0;
	__syncthreads();
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&bin[in[i] & 15], 1u);
	__syncthreads();
	if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], bin[threadIdx.x]);
}

// atomics tries each operation once a thread.
extern "C" __global__ void atomics(int* s, u32* u, u64* w) {
	int t = threadIdx.x;
	atomicAdd(&s[0], t - 5);
	atomicMin(&s[1], t - 5);
	atomicMax(&s[2], t - 5);
	atomicMin(&u[0], (u32)(t - 5));
	atomicMax(&u[1], (u32)(t - 5));
	atomicAnd(&u[2], ~(1u << (t & 31)));
	atomicOr(&u[3], 1u << (t & 31));
	atomicXor(&u[4], (u32)t * 2654435761u);
	atomicExch(&u[5], 77u);
	atomicCAS(&u[6], 0u, 42u);
	atomicInc(&u[7], 9u);
	atomicAdd(&w[0], (u64)t << 33);
	atomicCAS(&w[1], 0ull, 1ull << 40);
	atomicMax(&w[2], (u64)t << 40);
	atomicExch(&w[3], 5ull);
}
