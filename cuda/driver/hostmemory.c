//go:build cgo && linux

#include "driver_internal.h"
#include "hostmemory.h"

kvg_result kvg_alloc_managed(kvg_device *d, uint64_t size, uint64_t *ptr) {
	if (!d->t.cuMemAllocManaged) return kvg_refuse(KVG_MISSING);
	WITHIN(d, r = kvg_from(d->t.cuMemAllocManaged(ptr, size, 1))); // CU_MEM_ATTACH_GLOBAL
}

kvg_result kvg_register(kvg_device *d, void *host, uint64_t size, uint64_t *ptr) {
	if (!d->t.cuMemHostRegister_v2 || !d->t.cuMemHostUnregister) return kvg_refuse(KVG_MISSING);
	// CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP
	WITHIN(d, {
		r = kvg_from(d->t.cuMemHostRegister_v2(host, size, 3));
		if (r.why == KVG_OK) {
			r = kvg_from(d->t.cuMemHostGetDevicePointer_v2(ptr, host, 0));
			if (r.why != KVG_OK) d->t.cuMemHostUnregister(host);
		}
	});
}

kvg_result kvg_unregister(kvg_device *d, void *host) { WITHIN(d, r = kvg_from(d->t.cuMemHostUnregister(host))); }

// A stream that may be copied in, or why not.
static kvg_result stream_of(kvg_device *d, uint64_t handle, CUstream *s) {
	kvg_entry *e = kvg_find(d, KVG_STREAM, handle);
	int status = 0;
	if (!e) return kvg_refuse(KVG_BAD_STREAM);
	*s = e->raw;
	kvg_result r = kvg_refuse(KVG_OK);
	if (e->flags & KVG_FOREIGN || __atomic_load_n(&d->captures, __ATOMIC_RELAXED)) r = kvg_from(d->t.cuStreamIsCapturing(e->raw, &status));
	return r.why == KVG_OK && status ? kvg_refuse(KVG_CAPTURING) : r;
}

// Memory that the driver knows is not pageable: a copy of it would go on after
// the call.
static int known(kvg_device *d, uint64_t host) {
	uint64_t base = 0;
	int what[1] = {11}; // CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
	void *where[1] = {&base};
	return !d->t.cuPointerGetAttributes(1, what, where, host) && base;
}

kvg_result kvg_copy_in(kvg_device *d, uint64_t stream_handle, uint64_t dst, const void *src, uint64_t n, int wait) {
	if (!d->t.cuMemcpyHtoDAsync_v2) return kvg_refuse(KVG_MISSING);
	WITHIN(d, {
		CUstream s;
		r = stream_of(d, stream_handle, &s);
		if (r.why == KVG_OK && n) r = kvg_covered(d, dst, n, KVG_BAD_DESTINATION);
		if (r.why == KVG_OK && n && (known(d, (uint64_t)src) || known(d, (uint64_t)src + n - 1))) r = kvg_refuse(KVG_NOT_PAGEABLE);
		if (r.why == KVG_OK && n) r = kvg_from(d->t.cuMemcpyHtoDAsync_v2(dst, src, n, s));
		if (r.why == KVG_OK && n && wait) r = kvg_from(d->t.cuStreamSynchronize(s));
	});
}

// The driver may return before the copy is over.
kvg_result kvg_copy_out(kvg_device *d, uint64_t stream_handle, void *dst, uint64_t src, uint64_t n) {
	if (!d->t.cuMemcpyDtoHAsync_v2) return kvg_refuse(KVG_MISSING);
	WITHIN(d, {
		CUstream s;
		r = stream_of(d, stream_handle, &s);
		if (r.why == KVG_OK && n) r = kvg_covered(d, src, n, KVG_BAD_SOURCE);
		if (r.why == KVG_OK && n && (known(d, (uint64_t)dst) || known(d, (uint64_t)dst + n - 1))) r = kvg_refuse(KVG_NOT_PAGEABLE);
		if (r.why == KVG_OK && n) r = kvg_from(d->t.cuMemcpyDtoHAsync_v2(dst, src, n, s));
		if (r.why == KVG_OK && n) r = kvg_from(d->t.cuStreamSynchronize(s));
	});
}
