// Lanes of a warp that part and meet again.
typedef unsigned long long u64;
typedef unsigned int u32;

// trips runs a loop whose count differs from lane to lane.
extern "C" __global__ void trips(const u32* n, u32* out, u32 count) {
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	if (t >= count) return;
	u32 x = t;
	for (u32 i = 0; i < n[t]; i++) {
		if (x & 1) x = 3 * x + 1;
		else x >>= 1;
		if (x == 1 && (i & 7) == 5) break;
	}
	out[t] = x;
}

// nested leaves early from inside nested branches.
extern "C" __global__ void nested(const int* in, int* out, u32 count) {
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	if (t >= count) return;
	int v = in[t], r = 0;
	if (v < 0) {
		if (v < -100) { out[t] = -1; return; }
		r = -v;
		if ((v & 3) == 0) {
			for (int i = 0; i < (v & 15); i++) r += in[(t + i) % count];
		} else if ((v & 3) == 1) r ^= 0x55;
	} else {
		switch (v % 7) {
		case 0: r = v + 1; break;
		case 1: r = v * v; break;
		case 2: r = v / 3; // falls through
		case 3: r += v % 5; break;
		case 4: { int k = v; while (k > 3) { k -= 1 + (k >> 2); r++; } break; }
		default: out[t] = 7; return;
		}
	}
	out[t] = r;
}
