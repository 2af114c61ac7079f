// Calls, pointers to functions and variables of a module.

typedef unsigned int u32;
typedef unsigned long long u64;
extern "C" __device__ int printf(const char *, ...);

__constant__ u32 primes[5] = {2, 3, 5, 7, 11};
__constant__ float scale = 1.5f;
__device__ u32 visits = 7;
__device__ u32 table[2][3] = {{1, 2, 3}, {40, 50}};
__device__ u32 *const where[2] = {&table[1][0], &visits};

struct pair {
	u64 a;
	u32 b, c;
};

static __noinline__ __device__ u32 gcd(u32 a, u32 b) { return b ? gcd(b, a % b) : a; }

static __noinline__ __device__ u32 ackermann(u32 m, u32 n) {
	if (m == 0)
		return n + 1;
	if (n == 0)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

static __noinline__ __device__ pair swap(pair p, u32 by) {
	pair q;
	q.a = p.a + p.b * by;
	q.b = p.c ^ by;
	q.c = (u32)p.a;
	return q;
}

typedef u32 (*binary)(u32, u32);
static __device__ u32 plus(u32 a, u32 b) { return a + b; }
static __device__ u32 minus(u32 a, u32 b) { return a - b; }
static __device__ u32 times(u32 a, u32 b) { return a * b; }
__device__ binary ops[4] = {plus, minus, times, gcd};

extern "C" __global__ void calls(const u32 *in, u32 *out, u32 n) {
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	u32 x = in[2 * i], y = in[2 * i + 1];
	pair p = {((u64)x << 32) | y, x, y};
	p = swap(p, i + 1);
	u32 r = gcd(x, y);
	if (i & 1)
		r += ackermann(2, i & 3);
	out[4 * i] = r;
	out[4 * i + 1] = ops[x & 3](x, y);
	out[4 * i + 2] = (u32)(p.a >> 32) + (u32)p.a + p.b + p.c;
	out[4 * i + 3] = primes[i % 5] * 1000 + where[0][i % 3] + (u32)(scale * 2);
}

extern "C" __global__ void count(u32 *out) {
	atomicAdd(where[1], 1u);
	if (threadIdx.x == 0)
		out[blockIdx.x] = visits;
}

extern "C" __global__ void speak(int n, float f, const char *s) {
	if (threadIdx.x < 2)
		printf("%d of %5.2f: %s|%-4u|%04x|%lld|%c%%\n", (int)threadIdx.x - n, f, s, 7u, 255, -5ll, 'z');
}

static __noinline__ __device__ u32 deep(u32 n, volatile u32 *p) {
	u32 room[64];
	for (u32 i = 0; i < 64; i++)
		room[i] = *p + i;
	return n ? deep(n - 1, p) + room[n & 63] : room[0];
}

extern "C" __global__ void stack(u32 *out, u32 n) { out[threadIdx.x] = deep(n, out); }
