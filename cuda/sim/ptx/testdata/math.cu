// Functions of one number, and a softmax of rows.
extern "C" __global__ void functions(const float *in, float *out, const double *din, double *dout, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	float x = in[i];
	float *o = out + 12 * i;
	o[0] = expf(x); o[1] = logf(fabsf(x)); o[2] = sinf(x); o[3] = cosf(x * 1000.0f); o[4] = tanhf(x); o[5] = powf(fabsf(x), 1.7f);
	o[6] = erff(x); o[7] = rsqrtf(fabsf(x)); o[8] = cbrtf(x); o[9] = fmodf(x, 0.37f); o[10] = __expf(x); o[11] = x / 3.3f;
	double d = din[i];
	double *p = dout + 6 * i;
	p[0] = exp(d); p[1] = log(fabs(d)); p[2] = sin(d * 1e6);
	p[3] = sqrt(fabs(d)); p[4] = 1.0 / d; p[5] = rint(d * 7) + floor(d);
}
extern "C" __global__ void softmax(const float *in, float *out, int cols) {
	__shared__ float red[32];
	const float *row = in + (size_t)blockIdx.x * cols;
	float m = -1e30f;
	for (int c = threadIdx.x; c < cols; c += blockDim.x) m = fmaxf(m, row[c]);
	for (int s = 16; s; s >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, s));
	if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = m;
	__syncthreads();
	m = red[0];
	for (int w = 1; w < blockDim.x / 32; w++) m = fmaxf(m, red[w]);
	__syncthreads();
	float sum = 0;
	for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += __expf(row[c] - m);
	for (int s = 16; s; s >>= 1) sum += __shfl_down_sync(~0u, sum, s);
	if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = sum;
	__syncthreads();
	sum = 0;
	for (int w = 0; w < blockDim.x / 32; w++) sum += red[w];
	for (int c = threadIdx.x; c < cols; c += blockDim.x) out[(size_t)blockIdx.x * cols + c] = __fdividef(__expf(row[c] - m), sum);
}
