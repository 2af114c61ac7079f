// Integer arithmetic of every width, and what the compiler makes of it.
typedef unsigned long long u64;
typedef long long s64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

extern "C" __global__ void wide(const u64* a, const u64* b, u64* out, u32 n) {
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	if (t >= n) return;
	u64 x = a[t], y = b[t], *o = out + 16ull * t;
	o[0] = x + y;
	o[1] = x - y;
	o[2] = x * y;
	o[3] = y ? x / y : ~0ull;
	o[4] = y ? x % y : x;
	o[5] = __umul64hi(x, y);
	o[6] = (u64)__mul64hi((s64)x, (s64)y);
	o[7] = (y && !((s64)y == -1)) ? (u64)((s64)x / (s64)y) : 0;
	o[8] = x << (y & 63) | x >> (64 - (y & 63)) % 64;
	o[9] = (u64)((s64)x >> (y & 63));
	o[10] = __popcll(x) + 256 * __clzll((s64)x) + 65536 * __ffsll((s64)x);
	o[11] = __brevll(x);
	o[12] = x < y ? (s64)x < (s64)y ? 3 : 2 : (s64)x < (s64)y ? 1 : 0;
	o[13] = (x & y) ^ (~x | y);
	o[14] = (u64)(s64)(signed char)x + (u64)(u16)y + (u64)(s64)(short)y + (u64)(u8)x;
	o[15] = min(x, y) ^ (u64)max((s64)x, (s64)y);
}

extern "C" __global__ void narrow(const u32* a, const u32* b, u32* out, u32 n) {
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	if (t >= n) return;
	u32 x = a[t], y = b[t], *o = out + 16ull * t;
	o[0] = x * y + 7;
	o[1] = y ? x / y : ~0u;
	o[2] = y ? x % y : x;
	o[3] = __umulhi(x, y);
	o[4] = (u32)__mulhi((int)x, (int)y);
	o[5] = __byte_perm(x, y, 0x3715);
	o[6] = __funnelshift_l(x, y, 7) ^ __funnelshift_r(x, y, y);
	o[7] = __brev(x) ^ (u32)__ffs((int)y);
	o[8] = (u32)abs((int)x) ^ (u32)min((int)x, (int)y) ^ max(x, y);
	o[9] = (x >> 5 & 0xff) | (y & 0xff) << 8;
	o[10] = (u32)((int)x >> 3) ^ (u16)(x * 3) ^ (u32)(int)(short)(y + 5);
	o[11] = (u32)((u64)x * y >> 13) ^ (u32)((s64)(int)x * (int)y >> 7);
	o[12] = (u16)((u16)x / (u16)((u16)y | 1)) + (u32)((short)x % (short)(y | 1));
	o[13] = (x < y) + 2 * ((int)x <= (int)y) + 4 * (x == y) + 8 * (x != 3 && y > 9);
	o[14] = (u32)(x * 0.25f) ^ (u32)(int)((double)(int)y * 0.5);
	o[15] = x / 10 + y % 7 + (u32)((int)x / -3);
}
