//go:build cgo && linux

#include "driver_internal.h"

kvg_device *kvg_new(void) { return calloc(1, sizeof(kvg_device)); }

void kvg_delete(kvg_device *d) {
	for (int k = 0; k < KVG_KINDS; k++)
		for (int i = 0; i < KVG_CHUNKS; i++) free(d->chunks[k][i]);
	free(d->pinned);
	free(d);
}

void kvg_set(kvg_table *t, int slot, void *fn) { ((void **)t)[slot] = fn; }

// Entries are set and dropped under a lock of the caller's.
int kvg_entry_set(kvg_device *d, uint64_t handle, uint64_t raw, uint32_t flags, int32_t params) {
	uint32_t i = kvg_index(handle);
	kvg_entry **at = &d->chunks[handle >> 56][i / KVG_CHUNK];
	if (!*at) {
		kvg_entry *chunk = calloc(KVG_CHUNK, sizeof(kvg_entry));
		if (!chunk) return 0;
		__atomic_store_n(at, chunk, __ATOMIC_RELEASE);
	}
	kvg_entry *e = &(*at)[i % KVG_CHUNK];
	e->raw = raw;
	e->flags = flags;
	e->params = params;
	__atomic_store_n(&e->handle, handle, __ATOMIC_RELEASE);
	return 1;
}

void kvg_entry_drop(kvg_device *d, uint64_t handle) {
	kvg_entry *e = kvg_slot(d, handle);
	if (e) __atomic_store_n(&e->handle, 0, __ATOMIC_RELEASE);
}

static void lock(kvg_device *d) {
	while (__atomic_exchange_n(&d->pinned_lock, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&d->pinned_lock, __ATOMIC_RELAXED)) {}
}
static void unlock(kvg_device *d) { __atomic_store_n(&d->pinned_lock, 0, __ATOMIC_RELEASE); }

// The number of ranges that start at or below addr.
static int below(kvg_device *d, uint64_t addr) {
	int lo = 0, hi = d->pinned_len;
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (d->pinned[mid].base <= addr) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

int kvg_pinned_add(kvg_device *d, uint64_t base, uint64_t size) {
	lock(d);
	int ok = 1;
	if (d->pinned_len == d->pinned_cap) {
		int cap = d->pinned_cap ? 2 * d->pinned_cap : 16;
		kvg_range *grown = realloc(d->pinned, cap * sizeof *grown);
		ok = grown != NULL;
		if (ok) d->pinned = grown, d->pinned_cap = cap;
	}
	if (ok) {
		int i = below(d, base);
		memmove(&d->pinned[i + 1], &d->pinned[i], (d->pinned_len - i) * sizeof *d->pinned);
		d->pinned[i] = (kvg_range){base, size};
		d->pinned_len++;
	}
	unlock(d);
	return ok;
}

void kvg_pinned_remove(kvg_device *d, uint64_t base) {
	lock(d);
	int i = below(d, base) - 1;
	if (i >= 0 && d->pinned[i].base == base) {
		memmove(&d->pinned[i], &d->pinned[i + 1], (d->pinned_len - i - 1) * sizeof *d->pinned);
		d->pinned_len--;
	}
	unlock(d);
}

int kvg_pinned_has(kvg_device *d, uint64_t addr, uint64_t size) {
	lock(d);
	int i = below(d, addr) - 1;
	int ok = i >= 0 && addr - d->pinned[i].base < d->pinned[i].size && d->pinned[i].size - (addr - d->pinned[i].base) >= size;
	unlock(d);
	return ok;
}

kvg_result kvg_alloc(kvg_device *d, uint64_t size, uint64_t *ptr) {
	WITHIN(d, r = kvg_from(d->t.cuMemAlloc_v2(ptr, size)));
}

kvg_result kvg_free(kvg_device *d, uint64_t ptr) { WITHIN(d, r = kvg_from(d->t.cuMemFree_v2(ptr))); }

kvg_result kvg_alloc_pinned(kvg_device *d, uint64_t size, void **host, uint64_t *ptr) {
	// CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP
	WITHIN(d, {
		r = kvg_from(d->t.cuMemHostAlloc(host, size, 3));
		if (r.why == KVG_OK) {
			r = kvg_from(d->t.cuMemHostGetDevicePointer_v2(ptr, *host, 0));
			if (r.why != KVG_OK) d->t.cuMemFreeHost(*host);
		}
	});
}

kvg_result kvg_free_pinned(kvg_device *d, void *host) { WITHIN(d, r = kvg_from(d->t.cuMemFreeHost(host))); }

kvg_result kvg_range_of(kvg_device *d, uint64_t ptr, uint64_t *base, uint64_t *size) {
	size_t n = 0;
	WITHIN(d, {
		r = kvg_from(d->t.cuMemGetAddressRange_v2(base, &n, ptr));
		*size = n;
	});
}

// One side is staging memory, which needs no check.
kvg_result kvg_copy(kvg_device *d, uint64_t dst, uint64_t src, uint64_t n, int to_device) {
	WITHIN(d, {
		r = to_device ? kvg_covered(d, dst, n, KVG_BAD_DESTINATION) : kvg_covered(d, src, n, KVG_BAD_SOURCE);
		if (r.why == KVG_OK) r = kvg_from(d->t.cuMemcpyAsync(dst, src, n, d->copies));
		if (r.why == KVG_OK) r = kvg_from(d->t.cuStreamSynchronize(d->copies));
	});
}

kvg_result kvg_load(kvg_device *d, const char *image, uint64_t *module, char *log, size_t size) {
	// CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
	int options[2] = {5, 6};
	void *values[2] = {log, (void *)size};
	WITHIN(d, r = kvg_from(d->t.cuModuleLoadDataEx(module, image, 2, options, values)));
}

kvg_result kvg_unload(kvg_device *d, uint64_t module) { WITHIN(d, r = kvg_from(d->t.cuModuleUnload(module))); }

// The function is loaded at once: by cuFuncLoad, or on an older driver by the
// question for an attribute. params is -1 where the driver can not tell.
kvg_result kvg_function(kvg_device *d, uint64_t module, const char *name, uint64_t *function, int32_t *params) {
	*params = -1;
	WITHIN(d, {
		r = kvg_from(d->t.cuModuleGetFunction(function, module, name));
		if (r.why == KVG_OK && d->t.cuFuncLoad) {
			r = kvg_from(d->t.cuFuncLoad(*function));
		} else if (r.why == KVG_OK) {
			int regs = 0;
			r = kvg_from(d->t.cuFuncGetAttribute(&regs, 4, *function)); // CU_FUNC_ATTRIBUTE_NUM_REGS
		}
		if (r.why == KVG_OK && d->t.cuFuncGetParamInfo) {
			size_t off = 0;
			size_t size = 0;
			size_t i = 0;
			CUresult end;
			int32_t total = 0;
			while (!(end = d->t.cuFuncGetParamInfo(*function, i, &off, &size))) total = (int32_t)(off + size), i++;
			if (end == 1) *params = total; // CUDA_ERROR_INVALID_VALUE: behind the last
		}
	});
}

kvg_result kvg_allow_shared(kvg_device *d, uint64_t function, int bytes) {
	if (!d->t.cuFuncSetAttribute) return kvg_refuse(KVG_MISSING);
	// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
	WITHIN(d, r = kvg_from(d->t.cuFuncSetAttribute(function, 8, bytes)));
}

kvg_result kvg_priorities(kvg_device *d, int *least, int *greatest) {
	WITHIN(d, r = kvg_from(d->t.cuCtxGetStreamPriorityRange(least, greatest)));
}

kvg_result kvg_new_stream(kvg_device *d, unsigned int flags, int priority, uint64_t *stream) {
	WITHIN(d, r = kvg_from(d->t.cuStreamCreateWithPriority(stream, flags, priority)));
}

kvg_result kvg_stream_priority(kvg_device *d, uint64_t stream, int *priority) {
	if (!d->t.cuStreamGetPriority) return kvg_refuse(KVG_MISSING);
	WITHIN(d, r = kvg_from(d->t.cuStreamGetPriority(stream, priority)));
}

kvg_result kvg_stream_context(kvg_device *d, uint64_t stream, uint64_t *context) {
	WITHIN(d, r = kvg_from(d->t.cuStreamGetCtx(stream, context)));
}

kvg_result kvg_free_stream(kvg_device *d, uint64_t stream) { WITHIN(d, r = kvg_from(d->t.cuStreamDestroy_v2(stream))); }

kvg_result kvg_sync_stream(kvg_device *d, uint64_t stream) { WITHIN(d, r = kvg_from(d->t.cuStreamSynchronize(stream))); }

kvg_result kvg_new_event(kvg_device *d, int sleep, uint64_t *event) {
	// CU_EVENT_DISABLE_TIMING, CU_EVENT_BLOCKING_SYNC
	WITHIN(d, r = kvg_from(d->t.cuEventCreate(event, 2 | !!sleep)));
}

kvg_result kvg_sync_event(kvg_device *d, uint64_t event) { WITHIN(d, r = kvg_from(d->t.cuEventSynchronize(event))); }

kvg_result kvg_free_event(kvg_device *d, uint64_t event) { WITHIN(d, r = kvg_from(d->t.cuEventDestroy_v2(event))); }

kvg_result kvg_record(kvg_device *d, uint64_t event, uint64_t stream_handle) {
	WITHIN(d, {
		kvg_entry *s = kvg_find(d, KVG_STREAM, stream_handle);
		int status = 0;
		if (!s) r = kvg_refuse(KVG_BAD_STREAM);
		else r = kvg_from(d->t.cuStreamIsCapturing(s->raw, &status));
		// A capture of someone else's is not spoiled; one of our own is, by what
		// spoils it without us.
		if (r.why == KVG_OK && status && s->flags & KVG_FOREIGN) r = kvg_refuse(KVG_CAPTURING);
		else if (r.why == KVG_OK && status) r = kvg_from(d->t.cuStreamSynchronize(s->raw));
		if (r.why == KVG_OK) r = kvg_from(d->t.cuEventRecord(event, s->raw));
	});
}

kvg_result kvg_query(kvg_device *d, uint64_t event) { WITHIN(d, r = kvg_from(d->t.cuEventQuery(event))); }

kvg_result kvg_sync(kvg_device *d) { WITHIN(d, r = kvg_from(d->t.cuCtxSynchronize())); }

// A source that needs a symbol which is not there is refused.
kvg_result kvg_watch(kvg_device *d, int source, uint32_t *words, uint64_t words_device) {
	if (source == KVG_WAKE_HOST_FN && !d->t.cuLaunchHostFunc) return kvg_refuse(KVG_MISSING);
	if (source == KVG_WAKE_WORD && !d->t.cuStreamWriteValue32_v2) return kvg_refuse(KVG_MISSING);
	WITHIN(d, {
		kvg_wake *w = kvg_wake_new(&d->t, d->context, source, words, words_device);
		if (!w) r = (kvg_result){.why = KVG_DRIVER, .code = 2}; // CUDA_ERROR_OUT_OF_MEMORY
		else __atomic_store_n(&d->wake, w, __ATOMIC_RELEASE);
	});
}

kvg_result kvg_unwatch(kvg_device *d) {
	kvg_scope scope;
	kvg_wake *w = d->wake;
	kvg_result r = kvg_enter(d, &scope);
	kvg_wake_stop(w);
	kvg_wake_free(w);
	d->wake = NULL;
	return r.why == KVG_OK ? kvg_leave(d, &scope, r) : r;
}

kvg_result kvg_context_device(kvg_device *d, int *device) { WITHIN(d, r = kvg_from(d->t.cuCtxGetDevice(device))); }

int kvg_init(kvg_table *t) { return t->cuInit(0); }
int kvg_version(kvg_table *t, int *version) { return t->cuDriverGetVersion(version); }
int kvg_count(kvg_table *t, int *count) { return t->cuDeviceGetCount(count); }
int kvg_get(kvg_table *t, int ordinal, int *device) { return t->cuDeviceGet(device, ordinal); }
int kvg_name(kvg_table *t, char *name, int len, int device) { return t->cuDeviceGetName(name, len, device); }
int kvg_attribute(kvg_table *t, int attribute, int device, int *value) {
	return t->cuDeviceGetAttribute(value, attribute, device);
}
int kvg_memory(kvg_table *t, int device, uint64_t *bytes) {
	size_t n = 0;
	int r = t->cuDeviceTotalMem_v2(&n, device);
	*bytes = n;
	return r;
}
int kvg_pci(kvg_table *t, char *id, int len, int device) {
	return t->cuDeviceGetPCIBusId ? t->cuDeviceGetPCIBusId(id, len, device) : 801;
}
int kvg_uuid(kvg_table *t, char *uuid, int device) {
	return t->cuDeviceGetUuid_v2 ? t->cuDeviceGetUuid_v2((CUuuid *)uuid, device) : 801;
}
int kvg_retain(kvg_table *t, int device, uint64_t *context) { return t->cuDevicePrimaryCtxRetain(context, device); }
int kvg_release(kvg_table *t, int device) { return t->cuDevicePrimaryCtxRelease_v2(device); }
int kvg_simulated(kvg_table *t) {
	int yes = 0;
	return t->kvgateSimulated && !t->kvgateSimulated(&yes) && yes;
}
const char *kvg_error_name(kvg_table *t, int code) {
	const char *name = NULL;
	return t->cuGetErrorName && !t->cuGetErrorName(code, &name) ? name : NULL;
}
