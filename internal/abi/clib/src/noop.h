// The functions of the no-op driver that have to answer something. Work put
// into a stream is over at once; memory is the host's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t noop_handles = 0x10000;

static uint64_t noop_handle(void) { return __atomic_add_fetch(&noop_handles, 16, __ATOMIC_RELAXED); }

#ifndef KVG_VERSION
#define KVG_VERSION 12040
#endif
#ifndef KVG_DEVICES
#define KVG_DEVICES 1
#endif
#ifndef KVG_INIT
#define KVG_INIT (KVG_DEVICES ? 0 : 100)
#endif

static CUresult noop_cuInit(unsigned int flags) { return KVG_INIT; }
static CUresult noop_cuDriverGetVersion(int *version) { *version = KVG_VERSION; return 0; }
static CUresult noop_cuDeviceGetCount(int *count) { *count = KVG_DEVICES; return 0; }
static CUresult noop_cuDeviceGet(CUdevice *device, int ordinal) {
	if (ordinal < 0 || ordinal >= KVG_DEVICES) return 101;
	*device = ordinal;
	return 0;
}
static CUresult noop_cuDeviceGetName(char *name, int len, CUdevice device) {
	snprintf(name, len, "no-op device");
	return 0;
}
static CUresult noop_cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
	switch (attribute) {
	case 1: case 2: case 3: *value = 1024; break;                // threads, block x, block y
	case 4: *value = 64; break;                                  // block z
	case 5: *value = 0x7fffffff; break;                          // grid x
	case 6: case 7: *value = 65535; break;                       // grid y, grid z
	case 8: case 97: *value = 48 << 10; break;                   // shared memory, by right and at most
	case 16: *value = 1; break;                                  // multiprocessors
	case 41: *value = 1; break;                                  // unified addressing
	case 75: *value = 7; break;                                  // compute capability
	default: *value = 0;
	}
	return 0;
}
static CUresult noop_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) { *bytes = (size_t)1 << 30; return 0; }

static __thread CUcontext noop_stack[32];
static __thread int noop_depth;

static CUresult noop_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) { *context = 0x1000; return 0; }
static CUresult noop_cuCtxPushCurrent_v2(CUcontext context) {
	if (noop_depth == 32) return 201;
	noop_stack[noop_depth++] = context;
	return 0;
}
static CUresult noop_cuCtxPopCurrent_v2(CUcontext *context) {
	if (!noop_depth) return 201;
	noop_depth--;
	if (context) *context = noop_stack[noop_depth];
	return 0;
}
static CUresult noop_cuCtxGetCurrent(CUcontext *context) { *context = noop_depth ? noop_stack[noop_depth - 1] : 0; return 0; }
static CUresult noop_cuCtxSetCurrent(CUcontext context) {
	if (!noop_depth) noop_depth = 1;
	noop_stack[noop_depth - 1] = context;
	return 0;
}
static CUresult noop_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
	*context = noop_handle();
	return noop_cuCtxPushCurrent_v2(*context);
}
static CUresult noop_cuCtxGetDevice(CUdevice *device) { *device = 0; return 0; }
static CUresult noop_cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return 0; }
static CUresult noop_cuStreamGetCtx(CUstream stream, CUcontext *context) { *context = 0x1000; return 0; }
static CUresult noop_cuStreamIsCapturing(CUstream stream, int *status) { *status = 0; return 0; }
static CUresult noop_cuThreadExchangeStreamCaptureMode(int *mode) {
	static __thread int current;
	int old = current;
	current = *mode;
	*mode = old;
	return 0;
}
static CUresult noop_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, int *options, void **values) {
	*module = noop_handle();
	return 0;
}
static CUresult noop_cuModuleLoadData(CUmodule *module, const void *image) { *module = noop_handle(); return 0; }
static CUresult noop_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
	*function = noop_handle();
	return 0;
}
static CUresult noop_cuFuncGetAttribute(int *value, int attribute, CUfunction function) { *value = 0; return 0; }
// It knows nothing of parameters.
static CUresult noop_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) { return 801; }
static CUresult noop_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
	*stream = noop_handle();
	return 0;
}
static CUresult noop_cuStreamCreate(CUstream *stream, unsigned int flags) { *stream = noop_handle(); return 0; }

#ifndef KVG_DELAY_US
static CUresult noop_cuEventCreate(CUevent *event, unsigned int flags) { *event = noop_handle(); return 0; }
static CUresult noop_cuEventDestroy_v2(CUevent event) { return 0; }
static CUresult noop_cuEventRecord(CUevent event, CUstream stream) { return 0; }
static CUresult noop_cuEventQuery(CUevent event) { return 0; }
static CUresult noop_cuEventSynchronize(CUevent event) { return 0; }
static CUresult noop_cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg) { fn(arg); return 0; }
static CUresult noop_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags) {
	__atomic_store_n((uint32_t *)addr, value, __ATOMIC_RELEASE);
	return 0;
}
static CUresult noop_cuStreamSynchronize(CUstream stream) { return 0; }
#else
#include "timed.h"
#endif

static CUresult noop_cuStreamEndCapture(CUstream stream, CUgraph *graph) { *graph = noop_handle(); return 0; }
static CUresult noop_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n) { *n = 0; return 0; }
static CUresult noop_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags) {
	*exec = noop_handle();
	return 0;
}

// Sizes are kept in front of the memory, for the address ranges.
static CUresult noop_take(uint64_t *ptr, size_t size) {
	if (!size) return 1;
	if (size > ((size_t)1 << 30)) return 2;
	void *p = NULL;
	if (posix_memalign(&p, 256, size + 256)) return 2;
	*(size_t *)p = size;
	*ptr = (uint64_t)p + 256;
	return 0;
}
static CUresult noop_cuMemAlloc_v2(CUdeviceptr *ptr, size_t size) { return noop_take(ptr, size); }
static CUresult noop_cuMemFree_v2(CUdeviceptr ptr) { free((void *)(ptr - 256)); return 0; }
static CUresult noop_cuMemHostAlloc(void **ptr, size_t size, unsigned int flags) {
	uint64_t p;
	CUresult r = noop_take(&p, size);
	if (!r) *ptr = (void *)p;
	return r;
}
static CUresult noop_cuMemFreeHost(void *ptr) { free((char *)ptr - 256); return 0; }
static CUresult noop_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags) {
	*device = (uint64_t)host;
	return 0;
}
static CUresult noop_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr) {
	*base = ptr;
	*size = *(size_t *)(ptr - 256);
	return 0;
}
// Every address counts as the start of a large allocation.
static CUresult noop_cuPointerGetAttributes(unsigned int n, int *attributes, void **values, CUdeviceptr ptr) {
	for (unsigned int i = 0; i < n; i++) {
		if (attributes[i] == 11) *(uint64_t *)values[i] = ptr;
		if (attributes[i] == 12) *(size_t *)values[i] = (size_t)1 << 40;
	}
	return 0;
}
static CUresult noop_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) {
	memmove((void *)dst, (void *)src, size);
	return 0;
}
