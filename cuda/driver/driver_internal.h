// What the C files share.
#include <stdlib.h>
#include <string.h>
#include "driver.h"

static inline kvg_result kvg_refuse(int why) { return (kvg_result){.why = why}; }
static inline kvg_result kvg_from(CUresult r) { return (kvg_result){.why = r ? KVG_DRIVER : KVG_OK, .code = r}; }

static inline uint32_t kvg_index(uint64_t handle) { return handle & ((1u << KVG_INDEX_BITS) - 1); }

static inline kvg_entry *kvg_slot(kvg_device *d, uint64_t handle) {
	uint32_t i = kvg_index(handle);
	uint32_t kind = handle >> 56;
	if (kind >= KVG_KINDS) return NULL;
	kvg_entry *chunk = __atomic_load_n(&d->chunks[kind][i / KVG_CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk[i % KVG_CHUNK] : NULL;
}

static inline kvg_entry *kvg_find(kvg_device *d, uint32_t kind, uint64_t handle) {
	if (handle >> 56 != kind) return NULL;
	kvg_entry *e = kvg_slot(d, handle);
	return e && __atomic_load_n(&e->handle, __ATOMIC_ACQUIRE) == handle ? e : NULL;
}

// kvg_scope is what a crossing has to put back: the thread's capture mode. Its
// current context lies on the thread's stack of contexts meanwhile.
typedef struct {
	int mode;
} kvg_scope;

kvg_result kvg_covered(kvg_device *d, uint64_t addr, uint64_t n, int why);
int kvg_pinned_has(kvg_device *d, uint64_t addr, uint64_t size);

// The thread's mode is made CU_STREAM_CAPTURE_MODE_RELAXED: a capture that
// someone began in global mode would else forbid calls of this thread, and be
// spoilt by them.
static inline kvg_result kvg_enter(kvg_device *d, kvg_scope *s) {
	CUresult r = d->t.cuCtxPushCurrent_v2(d->context);
	if (r) return (kvg_result){.why = KVG_CONTEXT, .code = r};
	s->mode = 2;
	r = d->t.cuThreadExchangeStreamCaptureMode(&s->mode);
	if (r) {
		CUcontext old;
		d->t.cuCtxPopCurrent_v2(&old);
		return (kvg_result){.why = KVG_CONTEXT, .code = r};
	}
	return kvg_refuse(KVG_OK);
}

static inline kvg_result kvg_leave(kvg_device *d, kvg_scope *s, kvg_result r) {
	CUcontext old;
	CUresult a = d->t.cuThreadExchangeStreamCaptureMode(&s->mode);
	CUresult b = d->t.cuCtxPopCurrent_v2(&old);
	if (r.why == KVG_OK && (a || b)) return (kvg_result){.why = KVG_CONTEXT, .code = a ? a : b};
	return r;
}

// WITHIN runs statements, which set r, in one crossing, and returns r.
#define WITHIN(d, ...)                                 \
	kvg_scope scope;                                   \
	kvg_result r = kvg_enter(d, &scope);               \
	if (r.why != KVG_OK) return r;                     \
	__VA_ARGS__;                                       \
	return kvg_leave(d, &scope, r)
