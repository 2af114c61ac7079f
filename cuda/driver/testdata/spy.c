// A library between the driver and a libcuda: it notes calls and what they are
// passed, and can make them fail.
#include <stddef.h>
#include <stdint.h>

typedef uint64_t handle;

enum { ENTRIES = 1 << 16 };

// One line of the log: a call begins, or ends.
typedef struct {
	const char *name;
	uint64_t value; // of the call: a handle, flags
	int64_t end;
} line;

line spy_log[ENTRIES];
uint32_t spy_len;

static void note(const char *name, uint64_t value, int end) {
	uint32_t i = __atomic_fetch_add(&spy_len, 1, __ATOMIC_SEQ_CST);
	if (i < ENTRIES) spy_log[i] = (line){name, value, end};
}

// With fail set the function returns that in place of the call.
#define SPY(name, value, params, args)                    \
	int(*real_##name) params;                         \
	int fail_##name;                                  \
	int spy_##name params {                           \
		uint64_t v = (uint64_t)(value);           \
		int fail = __atomic_load_n(&fail_##name, __ATOMIC_SEQ_CST); \
		if (fail) {                           \
			note(#name, v, 0);                \
			return fail;                      \
		}                                         \
		note(#name, v, 0);                        \
		int r = real_##name args;                 \
		note(#name, v, 1);                        \
		return r;                                 \
	}

SPY(cuMemHostAlloc, flags, (void **p, size_t n, unsigned flags), (p, n, flags))
SPY(cuFuncLoad, f, (handle f), (f))
SPY(cuPointerSetAttribute, attribute, (const void *v_, int attribute, handle p), (v_, attribute, p))
SPY(cuStreamWaitValue32_v2, flags, (handle s, handle p, unsigned w, unsigned flags), (s, p, w, flags))
SPY(cuEventCreate, flags, (handle * e, unsigned flags), (e, flags))
SPY(cuEventSynchronize, e, (handle e), (e))
SPY(cuEventDestroy_v2, e, (handle e), (e))
