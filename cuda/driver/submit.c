//go:build cgo && linux

#include "driver_internal.h"

// The ops of cuda.Op.
enum {
	OP_NONE, OP_LAUNCH, OP_COPY, OP_FILL, OP_RECORD, OP_WAIT_EVENT, OP_WRITE_WORD, OP_WAIT_WORD, OP_GRAPH, OP_SIGNAL
};

enum { MAX_ARGS = 4096 }; // cuda.MaxArgBytes
enum { WAIT_FLUSH = 1 };  // cuda.WaitFlush

// kvg_covered refuses, with why, n bytes at addr that are not memory of the driver's, one
// allocation or ranges that adjoin: where memory was mapped with cuMemMap the
// attributes name what one call has mapped. The driver itself takes an address that
// it does not know for pageable host memory, and goes there.
kvg_result kvg_covered(kvg_device *d, uint64_t addr, uint64_t n, int why) {
	for (;;) {
		uint64_t base = 0, size = 0;
		int what[2] = {11, 12}; // CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, RANGE_SIZE
		void *where[2] = {&base, &size};
		kvg_result r = kvg_from(d->t.cuPointerGetAttributes(2, what, where, addr));
		if (r.why != KVG_OK) return r;
		if (!base || addr < base || addr - base >= size) return kvg_refuse(why);
		uint64_t left = size - (addr - base);
		if (n <= left) return r;
		n -= left;
		addr += left;
		if (!addr) return kvg_refuse(why); // the end of addresses
	}
}

static kvg_result launch(kvg_device *d, const kvg_command *c, CUstream s, uint8_t *arena, uint64_t arena_len) {
	kvg_entry *f = kvg_find(d, KVG_FUNCTION, c->a);
	if (!f) return kvg_refuse(KVG_BAD_FUNCTION);
	if (c->len > MAX_ARGS || (uint64_t)c->off + c->len > arena_len) return kvg_refuse(KVG_BAD_ARENA);
	if (f->params >= 0 && (uint32_t)f->params != c->len) return kvg_refuse(KVG_BAD_ARGS);
	size_t size = c->len;
	// CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END
	void *extra[] = {(void *)1, arena + c->off, (void *)2, &size, (void *)0};
	return kvg_from(d->t.cuLaunchKernel(f->raw, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
		c->block[2], c->shared, s, NULL, size ? extra : NULL));
}

static kvg_result copy(kvg_device *d, const kvg_command *c, CUstream s) {
	if (!c->c) return kvg_refuse(KVG_OK);
	kvg_result r = kvg_covered(d, c->b, c->c, KVG_BAD_SOURCE);
	if (r.why == KVG_OK) r = kvg_covered(d, c->a, c->c, KVG_BAD_DESTINATION);
	return r.why == KVG_OK ? kvg_from(d->t.cuMemcpyAsync(c->a, c->b, c->c, s)) : r;
}

static kvg_result fill(kvg_device *d, const kvg_command *c, CUstream s) {
	if (c->flags > 2) return kvg_refuse(KVG_BAD_ELEMENT);
	uint64_t size = (uint64_t)1 << c->flags;
	if (c->a % size) return kvg_refuse(KVG_MISALIGNED);
	if (c->b >> (8 * size)) return kvg_refuse(KVG_BAD_VALUE);
	if (!c->c) return kvg_refuse(KVG_OK);
	if (c->c > (uint64_t)1 << 60) return kvg_refuse(KVG_BAD_DESTINATION);
	kvg_result r = kvg_covered(d, c->a, c->c * size, KVG_BAD_DESTINATION);
	if (r.why != KVG_OK) return r;
	switch (c->flags) {
	case 0: return kvg_from(d->t.cuMemsetD8Async(c->a, c->b, c->c, s));
	case 1: return kvg_from(d->t.cuMemsetD16Async(c->a, c->b, c->c, s));
	}
	return kvg_from(d->t.cuMemsetD32Async(c->a, c->b, c->c, s));
}

static kvg_result word(kvg_device *d, const kvg_command *c, CUstream s) {
	int write = c->op == OP_WRITE_WORD;
	if (write ? !d->t.cuStreamWriteValue32_v2 : !d->t.cuStreamWaitValue32_v2) return kvg_refuse(KVG_MISSING);
	if (c->b >> 32) return kvg_refuse(KVG_BAD_VALUE);
	if (c->flags & ~WAIT_FLUSH || (write && c->flags)) return kvg_refuse(KVG_BAD_WORD_FLAGS);
	if (c->flags && !d->can_flush) return kvg_refuse(KVG_NO_FLUSH);
	if (c->a % 4) return kvg_refuse(KVG_MISALIGNED);
	kvg_result r = kvg_covered(d, c->a, 4, write ? KVG_BAD_DESTINATION : KVG_BAD_SOURCE);
	if (r.why != KVG_OK) return r;
	if (write) return kvg_from(d->t.cuStreamWriteValue32_v2(s, c->a, c->b, 0));
	// CU_STREAM_WAIT_VALUE_GEQ, which is cyclic, and CU_STREAM_WAIT_VALUE_FLUSH
	return kvg_from(d->t.cuStreamWaitValue32_v2(s, c->a, c->b, c->flags ? 1u << 30 : 0));
}

static kvg_result captured(kvg_device *d, CUstream s) {
	int status = 0;
	kvg_result r = kvg_from(d->t.cuStreamIsCapturing(s, &status));
	return r.why == KVG_OK && status ? kvg_refuse(KVG_CAPTURING) : r;
}

// What tells of a mark must not be captured with it.
static int in_capture(kvg_device *d, CUstream s) {
	return __atomic_load_n(&d->captures, __ATOMIC_RELAXED) && captured(d, s).why != KVG_OK;
}

// A handle of a host function is one only where the driver has cuLaunchHostFunc.
static kvg_result call_host(kvg_device *d, const kvg_command *c, CUstream s, kvg_wake *wake) {
	kvg_entry *f = kvg_find(d, KVG_HOST_FN, c->a);
	if (!f) return kvg_refuse(KVG_BAD_HOST_FN);
	if (f->flags & KVG_FOREIGN) return kvg_from(d->t.cuLaunchHostFunc(s, (CUhostFn)f->raw, (void *)c->b));
	return kvg_from(kvg_signal_put(&d->t, (kvg_signal *)f->raw, s, wake, in_capture(d, s)));
}

static kvg_result command(kvg_device *d, const kvg_command *c, CUstream s, uint8_t *arena, uint64_t arena_len, kvg_wake *wake) {
	kvg_entry *e;
	switch (c->op) {
	case OP_LAUNCH: return launch(d, c, s, arena, arena_len);
	case OP_COPY: return copy(d, c, s);
	case OP_FILL: return fill(d, c, s);
	case OP_RECORD:
		if (!(e = kvg_find(d, KVG_EVENT, c->a))) return kvg_refuse(KVG_BAD_EVENT);
		return kvg_from(d->t.cuEventRecord(e->raw, s));
	case OP_WAIT_EVENT:
		if (!(e = kvg_find(d, KVG_EVENT, c->a))) return kvg_refuse(KVG_BAD_EVENT);
		return kvg_from(d->t.cuStreamWaitEvent(s, e->raw, 0));
	case OP_GRAPH:
		if (!d->t.cuGraphLaunch) return kvg_refuse(KVG_MISSING);
		if (!(e = kvg_find(d, KVG_GRAPH_EXEC, c->a))) return kvg_refuse(KVG_BAD_GRAPH);
		return kvg_from(d->t.cuGraphLaunch(e->raw, s));
	case OP_WRITE_WORD:
	case OP_WAIT_WORD: return word(d, c, s);
	case OP_SIGNAL: return call_host(d, c, s, wake);
	}
	return kvg_refuse(KVG_BAD_OP);
}

// Work must not find its way into a capture that someone else has begun on a
// stream of theirs, nor into one of this device's own where that is not wanted.
static kvg_result capturing(kvg_device *d, const uint64_t *streams, uint32_t n, int uncaptured) {
	int own = uncaptured && __atomic_load_n(&d->captures, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n; i++) {
		kvg_entry *s = kvg_find(d, KVG_STREAM, streams[i]);
		if (!s || !(own || s->flags & KVG_FOREIGN)) continue;
		kvg_result r = captured(d, s->raw);
		if (r.why != KVG_OK) return r;
	}
	return kvg_refuse(KVG_OK);
}

kvg_results kvg_submit(uintptr_t device, const kvg_command *cmds, uint32_t n, uint8_t *arena, uint64_t arena_len,
	const uint64_t *streams, uint32_t nstreams, int uncaptured) {
	kvg_device *d = (kvg_device *)device;
	kvg_scope scope;
	kvg_result r = kvg_enter(d, &scope);
	if (r.why != KVG_OK) return (kvg_results){r, 0};
	r = capturing(d, streams, nstreams, uncaptured);
	kvg_wake *wake = __atomic_load_n(&d->wake, __ATOMIC_ACQUIRE);
	uint32_t i = 0;
	for (; r.why == KVG_OK && i < n; i++) {
		const kvg_command *c = &cmds[i];
		kvg_entry *s = c->stream < nstreams ? kvg_find(d, KVG_STREAM, streams[c->stream]) : NULL;
		if (s) {
			r = command(d, c, s->raw, arena, arena_len, wake);
			if (wake && c->op == OP_RECORD && r.why == KVG_OK && !in_capture(d, s->raw))
				kvg_wake_mark(wake, s->raw, kvg_index(streams[c->stream]));
		} else {
			r = kvg_refuse(c->stream < nstreams ? KVG_BAD_STREAM : KVG_BAD_STREAM_INDEX);
		}
	}
	return (kvg_results){kvg_leave(d, &scope, r), i ? i - 1 : 0};
}

static kvg_result mark(kvg_device *d, kvg_mark *m) {
	m->state = 0;
	if (!m->event && !m->word) return kvg_refuse(KVG_EMPTY_MARK);
	if (m->event) {
		kvg_entry *e = kvg_find(d, KVG_EVENT, m->event);
		if (!e) return kvg_refuse(KVG_BAD_EVENT);
		CUresult r = d->t.cuEventQuery(e->raw);
		if (r && r != 600) return kvg_from(r); // CUDA_ERROR_NOT_READY
		m->state = !r;
	}
	if (m->word) {
		if (m->word % 4 || !kvg_pinned_has(d, m->word, 4)) return kvg_refuse(KVG_BAD_WORD);
		m->seen = __atomic_load_n((uint32_t *)m->word, __ATOMIC_ACQUIRE);
		if ((int32_t)(m->seen - m->want) >= 0) m->state = 1;
	}
	return kvg_refuse(KVG_OK);
}

kvg_results kvg_poll(uintptr_t device, kvg_mark *marks, uint32_t n) {
	kvg_device *d = (kvg_device *)device;
	kvg_scope scope;
	kvg_result r = kvg_enter(d, &scope);
	if (r.why != KVG_OK) return (kvg_results){r, 0};
	uint32_t i = 0;
	for (; r.why == KVG_OK && i < n; i++) r = mark(d, &marks[i]);
	return (kvg_results){kvg_leave(d, &scope, r), i ? i - 1 : 0};
}
