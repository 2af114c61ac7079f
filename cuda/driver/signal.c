//go:build cgo && linux

#include "driver_internal.h"

struct kvg_signal {
	uint64_t count;
	int64_t refs;   // the owner, and calls that are to come
	kvg_wake *wake; // of the device; set before a call that touches it
};

kvg_signal *kvg_signal_new(void) {
	kvg_signal *g = calloc(1, sizeof *g);
	if (g) g->refs = 1;
	return g;
}

void kvg_signal_drop(kvg_signal *g) {
	if (!__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL)) free(g);
}

uint64_t kvg_signal_count(kvg_signal *g) { return __atomic_load_n(&g->count, __ATOMIC_ACQUIRE); }

// The host functions: no Go, no lock, no call of CUDA.
static void count(void *arg) {
	kvg_signal *g = arg;
	__atomic_add_fetch(&g->count, 1, __ATOMIC_RELEASE);
	kvg_signal_drop(g);
}

// A call that is captured comes with each launch of its graph: what it counts in
// stays for the rest of the process.
static void count_captured(void *arg) {
	kvg_signal *g = arg;
	__atomic_add_fetch(&g->count, 1, __ATOMIC_RELEASE);
}

static void count_and_touch(void *arg) {
	kvg_signal *g = arg;
	kvg_wake *w = __atomic_load_n(&g->wake, __ATOMIC_ACQUIRE);
	count(g);
	kvg_wake_touch(w);
	kvg_wake_free(w);
}

// What was counted for a call that never comes, because of a device error, is
// given back with the process.
CUresult kvg_signal_put(kvg_table *t, kvg_signal *g, CUstream s, kvg_wake *wake, int captured) {
	__atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
	if (captured) {
		CUresult r = t->cuLaunchHostFunc(s, count_captured, g);
		if (r) kvg_signal_drop(g);
		return r;
	}
	if (wake) {
		kvg_wake_keep(wake);
		__atomic_store_n(&g->wake, wake, __ATOMIC_RELEASE);
	}
	CUresult r = t->cuLaunchHostFunc(s, wake ? count_and_touch : count, g);
	if (r) {
		if (wake) kvg_wake_free(wake);
		kvg_signal_drop(g);
	}
	return r;
}
