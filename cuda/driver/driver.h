// The C side of the driver: the hot path, and what has to happen within one
// crossing because the current context belongs to the thread.
#ifndef KVG_DRIVER_H
#define KVG_DRIVER_H

#include "abi_gen.h"
#include "wake.h"

// A handle is kind << 56 | generation << 32 | device << 22 | index. Entries never move, so
// that a lookup takes no lock; one whose handle differs is dead.
enum { KVG_STREAM = 1, KVG_EVENT, KVG_MODULE, KVG_FUNCTION, KVG_GRAPH, KVG_GRAPH_EXEC, KVG_HOST_FN, KVG_KINDS };
enum { KVG_CHUNK = 1024, KVG_CHUNKS = 4096, KVG_INDEX_BITS = 22, KVG_DEVICES = 1024 };
enum { KVG_FOREIGN = 1 };

typedef struct {
	uint64_t handle;
	uint64_t raw;
	uint32_t flags;
	int32_t params; // bytes of a function's parameters; -1: not known
} kvg_entry;

// Pinned memory that words may be polled in, sorted by address.
typedef struct {
	uint64_t base, size;
} kvg_range;

typedef struct {
	kvg_table t;
	CUcontext context;
	uint64_t copies; // raw stream of the blocking copies
	kvg_entry *chunks[KVG_KINDS][KVG_CHUNKS];
	kvg_wake *wake; // NULL: nobody is told of marks
	int64_t captures; // of streams of the device's own, under way
	int can_flush;  // writes from outside, behind a wait for a word
	int pinned_lock;
	int pinned_len, pinned_cap;
	kvg_range *pinned;
} kvg_device;

// The layout of cuda.Command and cuda.Mark.
typedef struct {
	uint8_t op, flags;
	uint16_t stream;
	uint32_t shared;
	uint32_t grid[3];
	uint16_t block[3];
	uint16_t pad;
	uint32_t off, len;
	uint64_t a, b, c;
} kvg_command;

typedef struct {
	uint64_t event, word;
	uint32_t want, seen;
	uint8_t state;
	uint8_t pad[7];
} kvg_mark;

// Why a call failed: the driver's result is in code, or the call was refused
// here.
enum {
	KVG_OK, KVG_DRIVER, KVG_CONTEXT, KVG_MISSING, KVG_BAD_STREAM_INDEX, KVG_BAD_STREAM, KVG_BAD_EVENT,
	KVG_BAD_FUNCTION, KVG_BAD_ARGS, KVG_BAD_ARENA, KVG_BAD_OP, KVG_BAD_SOURCE, KVG_BAD_DESTINATION,
	KVG_BAD_VALUE, KVG_BAD_ELEMENT, KVG_MISALIGNED, KVG_CAPTURING, KVG_BAD_WORD, KVG_EMPTY_MARK,
	KVG_BAD_MEMORY, KVG_BAD_GRAPH, KVG_BAD_HOST_FN, KVG_BAD_WORD_FLAGS, KVG_NO_FLUSH,
	KVG_NOT_PAGEABLE
};

// One register holds it: with more in it compilers build it in memory, bit by
// bit, and reading that back took half of a crossing.
typedef struct {
	int32_t why, code;
} kvg_result;

// The result of a list; index is where it ended.
typedef struct {
	kvg_result r;
	uint32_t index;
} kvg_results;

kvg_device *kvg_new(void);
void kvg_delete(kvg_device *d);
void kvg_set(kvg_table *t, int slot, void *fn);

int kvg_entry_set(kvg_device *d, uint64_t handle, uint64_t raw, uint32_t flags, int32_t params);
void kvg_entry_drop(kvg_device *d, uint64_t handle);

int kvg_pinned_add(kvg_device *d, uint64_t base, uint64_t size);
void kvg_pinned_remove(kvg_device *d, uint64_t base);

// With uncaptured set no stream may be captured, else none that is foreign.
// The device is a number, so that cgo need not look at what it points to.
kvg_results kvg_submit(uintptr_t device, const kvg_command *cmds, uint32_t n, uint8_t *arena, uint64_t arena_len,
	const uint64_t *streams, uint32_t nstreams, int uncaptured);
kvg_results kvg_poll(uintptr_t device, kvg_mark *marks, uint32_t n);

// Calls that need the context, one crossing each.
kvg_result kvg_alloc(kvg_device *d, uint64_t size, uint64_t *ptr);
kvg_result kvg_free(kvg_device *d, uint64_t ptr);
kvg_result kvg_alloc_pinned(kvg_device *d, uint64_t size, void **host, uint64_t *ptr);
kvg_result kvg_free_pinned(kvg_device *d, void *host);
kvg_result kvg_range_of(kvg_device *d, uint64_t ptr, uint64_t *base, uint64_t *size);
kvg_result kvg_copy(kvg_device *d, uint64_t dst, uint64_t src, uint64_t n, int to_device);
kvg_result kvg_fill_rows(kvg_device *d, uint64_t stream_handle, uint64_t dst, uint64_t pitch, uint32_t value,
	uint64_t width, uint64_t rows);
kvg_result kvg_load(kvg_device *d, const char *image, uint64_t *module, char *log, size_t size);
kvg_result kvg_unload(kvg_device *d, uint64_t module);
kvg_result kvg_function(kvg_device *d, uint64_t module, const char *name, uint64_t *function, int32_t *params);
kvg_result kvg_allow_shared(kvg_device *d, uint64_t function, int bytes);
kvg_result kvg_priorities(kvg_device *d, int *least, int *greatest);
kvg_result kvg_new_stream(kvg_device *d, unsigned int flags, int priority, uint64_t *stream);
kvg_result kvg_stream_priority(kvg_device *d, uint64_t stream, int *priority);
kvg_result kvg_stream_context(kvg_device *d, uint64_t stream, uint64_t *context);
kvg_result kvg_free_stream(kvg_device *d, uint64_t stream);
kvg_result kvg_sync_stream(kvg_device *d, uint64_t stream);
kvg_result kvg_new_event(kvg_device *d, int sleep, uint64_t *event);
kvg_result kvg_sync_event(kvg_device *d, uint64_t event);
kvg_result kvg_free_event(kvg_device *d, uint64_t event);
kvg_result kvg_record(kvg_device *d, uint64_t event, uint64_t stream_handle);
kvg_result kvg_query(kvg_device *d, uint64_t event);
kvg_result kvg_sync(kvg_device *d);
// sync: the widest means that was needed, as cuda.MemorySync.
kvg_result kvg_sync_context(kvg_device *d);
kvg_result kvg_sync_memops(kvg_device *d, uint64_t ptr, uint64_t size, int *sync);
kvg_result kvg_flush(kvg_device *d);
kvg_result kvg_watch(kvg_device *d, int source, uint32_t *words, uint64_t words_device);
kvg_result kvg_unwatch(kvg_device *d);
kvg_result kvg_context_device(kvg_device *d, int *device);

// A signal is a host function of this module's, which counts its calls. It lives
// until it is dropped and the calls that are in streams have come.
typedef struct kvg_signal kvg_signal;

kvg_signal *kvg_signal_new(void);
void kvg_signal_drop(kvg_signal *g);
uint64_t kvg_signal_count(kvg_signal *g);
// kvg_signal_put puts a call into a stream; wake, where there is one, is touched
// when it comes, unless it is captured.
CUresult kvg_signal_put(kvg_table *t, kvg_signal *g, CUstream s, kvg_wake *wake, int captured);

// Calls without a context, for the time before there is one.
int kvg_init(kvg_table *t);
int kvg_version(kvg_table *t, int *version);
int kvg_count(kvg_table *t, int *count);
int kvg_get(kvg_table *t, int ordinal, int *device);
int kvg_name(kvg_table *t, char *name, int len, int device);
int kvg_attribute(kvg_table *t, int attribute, int device, int *value);
int kvg_memory(kvg_table *t, int device, uint64_t *bytes);
int kvg_pci(kvg_table *t, char *id, int len, int device);
int kvg_uuid(kvg_table *t, char *uuid, int device);
int kvg_retain(kvg_table *t, int device, uint64_t *context);
int kvg_release(kvg_table *t, int device);
int kvg_simulated(kvg_table *t);
const char *kvg_error_name(kvg_table *t, int code);

#endif
