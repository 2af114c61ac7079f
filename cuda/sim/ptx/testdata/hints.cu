// Accesses with cache hints, fences, atomics with a scope, matches of lanes.
typedef unsigned int u32;

extern "C" __global__ void hints(const uint4* a, uint4* b, u32* c, volatile u32* v) {
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	uint4 x = __ldcs(a + t), y = __ldg(a + t + 1), z = __ldcg(a + t + 2), q = __ldca(a + t + 3), w = __ldcv(a + t + 4),
	      u = __ldlu(a + t);
	x.x ^= y.y + z.z - q.w + w.x * u.y;
	__stcs(b + t, x);
	__stwt(b + t + 100, y);
	__stcg(b + t + 200, z);
	__stwb(b + t + 300, q);
	__threadfence();
	__threadfence_block();
	__threadfence_system();
	__syncwarp();
	__nanosleep(100);
	v[t] = v[t] + 1;
	atomicAdd_system(c, 1u);
	atomicAdd_block(c + 1, 2u);
	atomicSub(c + 2, 3u);
	atomicDec(c + 3, 7u);
	int all;
	u32 m = __match_any_sync(__activemask(), t & 3);
	u32 mm = __match_all_sync(0xffffffffu, t >> 5, &all);
	c[4 + t] = m ^ mm ^ (u32)all;
}
