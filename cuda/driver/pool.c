//go:build cgo && linux

#include "driver_internal.h"
#include "pool.h"

// An allocation that is captured would be the graph's, and be made and freed
// with each launch.
static kvg_result not_captured(kvg_device *d, uint64_t stream) {
	int status = 0;
	kvg_result r = kvg_from(d->t.cuStreamIsCapturing(stream, &status));
	return r.why == KVG_OK && status ? kvg_refuse(KVG_CAPTURING) : r;
}

kvg_result kvg_alloc_async(kvg_device *d, uint64_t size, uint64_t pool, uint64_t stream, uint64_t *ptr) {
	if (pool ? !d->t.cuMemAllocFromPoolAsync : !d->t.cuMemAllocAsync) return kvg_refuse(KVG_MISSING);
	WITHIN(d, {
		r = not_captured(d, stream);
		if (r.why == KVG_OK)
			r = kvg_from(pool ? d->t.cuMemAllocFromPoolAsync(ptr, size, pool, stream) : d->t.cuMemAllocAsync(ptr, size, stream));
	});
}

kvg_result kvg_free_async(kvg_device *d, uint64_t ptr, uint64_t stream) {
	if (!d->t.cuMemFreeAsync) return kvg_refuse(KVG_MISSING);
	WITHIN(d, {
		r = not_captured(d, stream);
		if (r.why == KVG_OK) r = kvg_from(d->t.cuMemFreeAsync(ptr, stream));
	});
}

kvg_result kvg_new_pool(kvg_device *d, int device, uint64_t *pool) {
	if (!d->t.cuMemPoolCreate) return kvg_refuse(KVG_MISSING);
	// CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE
	CUmemPoolProps props = {.allocation = 1, .location = {1, device}};
	WITHIN(d, r = kvg_from(d->t.cuMemPoolCreate(pool, &props)));
}

kvg_result kvg_free_pool(kvg_device *d, uint64_t pool) {
	if (!d->t.cuMemPoolDestroy) return kvg_refuse(KVG_MISSING);
	WITHIN(d, r = kvg_from(d->t.cuMemPoolDestroy(pool)));
}

// What follows asks for the current pool within the crossing.
static kvg_result current(kvg_device *d, int device, uint64_t *pool) {
	if (*pool) return kvg_refuse(KVG_OK);
	if (!d->t.cuDeviceGetMemPool) return kvg_refuse(KVG_MISSING);
	return kvg_from(d->t.cuDeviceGetMemPool(pool, device));
}

// Settings that are on or off are an int, the others 64 bits.
enum { LAST_SWITCH = 3 };

kvg_result kvg_pool_get(kvg_device *d, int device, uint64_t pool, int attribute, uint64_t *value) {
	if (!d->t.cuMemPoolGetAttribute) return kvg_refuse(KVG_MISSING);
	int on = 0;
	WITHIN(d, {
		r = current(d, device, &pool);
		if (r.why == KVG_OK)
			r = kvg_from(d->t.cuMemPoolGetAttribute(pool, attribute, attribute <= LAST_SWITCH ? (void *)&on : value));
		if (attribute <= LAST_SWITCH) *value = on;
	});
}

kvg_result kvg_pool_set(kvg_device *d, int device, uint64_t pool, int attribute, uint64_t value) {
	if (!d->t.cuMemPoolSetAttribute) return kvg_refuse(KVG_MISSING);
	int on = value != 0;
	WITHIN(d, {
		r = current(d, device, &pool);
		if (r.why == KVG_OK)
			r = kvg_from(d->t.cuMemPoolSetAttribute(pool, attribute, attribute <= LAST_SWITCH ? (void *)&on : &value));
	});
}

kvg_result kvg_pool_trim(kvg_device *d, int device, uint64_t pool, uint64_t keep) {
	if (!d->t.cuMemPoolTrimTo) return kvg_refuse(KVG_MISSING);
	WITHIN(d, {
		r = current(d, device, &pool);
		if (r.why == KVG_OK) r = kvg_from(d->t.cuMemPoolTrimTo(pool, keep));
	});
}
