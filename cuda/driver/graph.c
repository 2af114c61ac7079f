//go:build cgo && linux

#include "driver_internal.h"
#include "graph.h"

// CALL makes one call of a symbol that may be missing.
#define CALL(d, symbol, call)                         \
	if (!d->t.symbol) return kvg_refuse(KVG_MISSING); \
	WITHIN(d, r = kvg_from(call))

// The count is raised first and lowered last: it may say that a stream is
// captured when none is, and not the other way round.
kvg_result kvg_begin_capture(kvg_device *d, uint64_t stream, int mode) {
	if (!d->t.cuStreamBeginCapture_v2 || !d->t.cuStreamEndCapture) return kvg_refuse(KVG_MISSING);
	kvg_scope scope;
	kvg_result r = kvg_enter(d, &scope);
	if (r.why != KVG_OK) return r;
	__atomic_add_fetch(&d->captures, 1, __ATOMIC_RELAXED);
	r = kvg_from(d->t.cuStreamBeginCapture_v2(stream, mode));
	if (r.why != KVG_OK) __atomic_sub_fetch(&d->captures, 1, __ATOMIC_RELAXED);
	return kvg_leave(d, &scope, r);
}

kvg_result kvg_end_capture(kvg_device *d, uint64_t stream, uint64_t *graph) {
	if (!d->t.cuStreamEndCapture) return kvg_refuse(KVG_MISSING);
	kvg_scope scope;
	kvg_result r = kvg_enter(d, &scope);
	if (r.why != KVG_OK) return r;
	int before = 0, after = 0;
	CUresult asked = d->t.cuStreamIsCapturing(stream, &before);
	*graph = 0;
	r = kvg_from(d->t.cuStreamEndCapture(stream, graph));
	if (!asked && before && !d->t.cuStreamIsCapturing(stream, &after) && !after)
		__atomic_sub_fetch(&d->captures, 1, __ATOMIC_RELAXED);
	return kvg_leave(d, &scope, r);
}

void kvg_abandon_capture(kvg_device *d, uint64_t stream) {
	uint64_t graph = 0;
	if (__atomic_load_n(&d->captures, __ATOMIC_RELAXED) && kvg_end_capture(d, stream, &graph).why == KVG_OK && graph)
		kvg_free_graph(d, graph);
}

kvg_result kvg_capture_status(kvg_device *d, uint64_t stream, int *status) {
	CALL(d, cuStreamIsCapturing, d->t.cuStreamIsCapturing(stream, status));
}

kvg_result kvg_graph_size(kvg_device *d, uint64_t graph, uint64_t *n) {
	CALL(d, cuGraphGetNodes, d->t.cuGraphGetNodes(graph, NULL, (size_t *)n));
}

kvg_result kvg_instantiate(kvg_device *d, uint64_t graph, uint64_t *exec) {
	CALL(d, cuGraphInstantiateWithFlags, d->t.cuGraphInstantiateWithFlags(exec, graph, 0));
}

kvg_result kvg_free_graph(kvg_device *d, uint64_t graph) {
	CALL(d, cuGraphDestroy, d->t.cuGraphDestroy(graph));
}

kvg_result kvg_free_exec(kvg_device *d, uint64_t exec) {
	CALL(d, cuGraphExecDestroy, d->t.cuGraphExecDestroy(exec));
}
