//go:build cgo && linux

#include "driver_internal.h"

// The values of cuda.MemorySync.
enum { SYNC_NOT_NEEDED, SYNC_RANGE, SYNC_CONTEXT };

static kvg_result sync_context(kvg_device *d) {
	enum { SYNC_MEMOPS = 0x80 }; // CU_CTX_SYNC_MEMOPS
	if (!d->t.cuCtxGetFlags || !d->t.cuCtxSetFlags) return kvg_refuse(KVG_MISSING);
	unsigned int flags = 0;
	kvg_result r = kvg_from(d->t.cuCtxGetFlags(&flags));
	if (r.why == KVG_OK && !(flags & SYNC_MEMOPS)) r = kvg_from(d->t.cuCtxSetFlags(flags | SYNC_MEMOPS));
	return r;
}

static kvg_result sync_memops(kvg_device *d, uint64_t ptr, uint64_t size, int *sync) {
	uint64_t end = ptr + size;
	*sync = SYNC_NOT_NEEDED;
	if (end < ptr) return kvg_refuse(KVG_BAD_MEMORY);
	for (uint64_t at = ptr; at < end;) {
		uint64_t base = 0, length = 0;
		unsigned int type = 0;
		int what[3] = {2, 11, 12}; // CU_POINTER_ATTRIBUTE_MEMORY_TYPE, RANGE_START_ADDR, RANGE_SIZE
		void *where[3] = {&type, &base, &length};
		kvg_result r = kvg_from(d->t.cuPointerGetAttributes(3, what, where, at));
		if (r.why != KVG_OK) return r;
		if (!base || at < base || at - base >= length) return kvg_refuse(KVG_BAD_MEMORY);
		if (type != 1) { // CU_MEMORYTYPE_HOST
			unsigned int yes = 1;
			int means = SYNC_RANGE;
			// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
			CUresult x = d->t.cuPointerSetAttribute ? d->t.cuPointerSetAttribute(&yes, 6, at) : 801;
			if (x == 801 || x == 1) { // CUDA_ERROR_NOT_SUPPORTED, _INVALID_VALUE
				r = sync_context(d);
				means = SYNC_CONTEXT;
			} else {
				r = kvg_from(x);
			}
			if (r.why != KVG_OK) return r;
			if (means > *sync) *sync = means;
		}
		if (length - (at - base) >= end - at) break;
		at = base + length;
	}
	return kvg_refuse(KVG_OK);
}

kvg_result kvg_sync_context(kvg_device *d) {
	kvg_scope scope;
	kvg_result r = kvg_enter(d, &scope);
	if (r.why != KVG_OK) return r;
	return kvg_leave(d, &scope, sync_context(d));
}

kvg_result kvg_sync_memops(kvg_device *d, uint64_t ptr, uint64_t size, int *sync) {
	kvg_scope scope;
	kvg_result r = kvg_enter(d, &scope);
	if (r.why != KVG_OK) return r;
	return kvg_leave(d, &scope, sync_memops(d, ptr, size, sync));
}

kvg_result kvg_flush(kvg_device *d) {
	if (!d->t.cuFlushGPUDirectRDMAWrites) return kvg_refuse(KVG_MISSING);
	kvg_scope scope;
	kvg_result r = kvg_enter(d, &scope);
	if (r.why != KVG_OK) return r;
	// CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, _TO_OWNER
	return kvg_leave(d, &scope, kvg_from(d->t.cuFlushGPUDirectRDMAWrites(0, 100)));
}
