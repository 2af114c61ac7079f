// State spaces: local arrays, dynamic parameters, vectors, structures, a jump table.
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

// local_sort sorts eight numbers in local memory.
extern "C" __global__ void local_sort(const u32* in, u32* out, u32 n) {
	u32 v[8];
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	if (t >= n) return;
	for (int i = 0; i < 8; i++) v[i] = in[8 * t + i];
#pragma unroll 1
	for (u32 i = 1; i < 8; i++) {
		u32 x = v[i];
		u32 j = i;
#pragma unroll 1
		while (j > 0 && v[j - 1] > x) { v[j] = v[j - 1]; j--; }
		v[j] = x;
	}
	for (int i = 0; i < 8; i++) out[8 * t + i] = v[i];
}

struct Table { u64 base[8]; short step[8]; u8 kind[8]; };

// table indexes its parameter with a value from memory.
extern "C" __global__ void table(const u32* which, u64* out, Table tab, u32 n) {
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	if (t < n) {
		u32 w = which[t] & 7;
		out[t] = tab.base[w] + tab.step[w] * (u64)t + ((u64)tab.kind[w] << 56);
	}
}

// jump has enough dense cases for a jump table.
extern "C" __global__ void jump(const u32* in, u32* out, u32 n) {
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	if (t >= n) return;
	u32 x = in[t];
	switch (x % 12) {
	case 0: out[t] = x * 3; break;
	case 1: out[t] = in[(t + 1) % n]; break;
	case 2: out[t] = x ^ in[0]; break;
	case 3: x += 7; // falls through
	case 4: out[t] = x >> 1; out[t] += 5; break;
	case 5: for (u32 i = 0; i < (x & 7); i++) x = x * 5 + i; out[t] = x; break;
	case 6: out[t] = __popc(x); break;
	case 7: return;
	case 8: out[t] = __clz(x) + in[1]; break;
	case 9: out[t] = x / 7; break;
	case 10: out[t] = in[x % n]; break;
	default: out[t] = 1; break;
	}
}

// vectors copies with every vector width, through shared memory.
extern "C" __global__ void vectors(const uint4* a, const uint2* b, const ushort4* c, const uchar4* d, const ulonglong2* e,
	uint4* oa, uint2* ob, ushort4* oc, uchar4* od, ulonglong2* oe) {
	__shared__ uint4 s[64];
	u32 t = threadIdx.x;
	s[t] = a[t];
	__syncthreads();
	oa[t] = s[blockDim.x - 1 - t];
	ob[t] = b[t];
	oc[t] = c[t];
	od[t] = d[t];
	oe[t] = e[t];
}

// flags keeps truth values over a loop.
extern "C" __global__ void flags(const int* in, int* out, u32 n) {
	u32 t = threadIdx.x;
	bool first = true, seen = false;
	int last = 0;
	for (u32 i = t; i < n; i += blockDim.x) {
		int v = in[i];
		if (!first && v < last) seen = true;
		if (v == 13) { first = true; seen = !seen; } else first = false;
		last = v;
	}
	int any = __syncthreads_or(seen);
	int count = __syncthreads_count(first);
	out[t] = (seen ? 1 : 0) + (first ? 2 : 0) + 4 * (any != 0) + 8 * count;
}

// generic reads shared, local and global memory through one pointer.
__device__ __noinline__ u32 pick(const u32* p, u32 i) { return p[i & 3]; }
extern "C" __global__ void generic(const u32* in, u32* out) {
	__shared__ u32 s[4];
	volatile u32 l[4];
	u32 t = threadIdx.x;
	if (t < 4) s[t] = in[t] + 100;
	for (int i = 0; i < 4; i++) l[i] = in[i] + t;
	__syncthreads();
	const u32* p = t % 3 == 0 ? in : t % 3 == 1 ? s : (const u32*)l;
	out[t] = p[t & 3];
}
