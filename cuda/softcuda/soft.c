//go:build cgo && linux

#include "soft.h"

// The stack of contexts; its top is the current one.
static __thread uint64_t contexts[KVG_SOFT_DEPTH];
static __thread int depth;
static __thread int capture_mode;

uint64_t kvg_soft_current(void) { return depth ? contexts[depth - 1] : 0; }

void kvg_soft_set_current(uint64_t context) {
	if (!context) {
		if (depth) depth--;
		return;
	}
	if (!depth) depth = 1;
	contexts[depth - 1] = context;
}

int kvg_soft_push(uint64_t context) {
	if (depth == KVG_SOFT_DEPTH) return 0;
	contexts[depth++] = context;
	return 1;
}

int kvg_soft_pop(uint64_t *context) {
	if (!depth) return 0;
	*context = contexts[--depth];
	return 1;
}

int kvg_soft_capture_mode(void) { return capture_mode; }

uint64_t kvg_soft_thread(void) { return (uint64_t)&capture_mode; }

int kvg_soft_exchange_capture_mode(int mode) {
	int old = capture_mode;
	capture_mode = mode;
	return old;
}

static __thread int in_host_fn;

void kvg_soft_call_host_fn(uint64_t fn, uint64_t arg) {
	in_host_fn = 1;
	((CUhostFn)fn)((void *)arg);
	in_host_fn = 0;
}

int kvg_soft_in_host_fn(void) { return in_host_fn; }
