// Calls from Go: one crossing each, however many functions of the library it
// takes. Whatever a shim makes on the way is destroyed again, also on error.
#ifndef KVG_NIXL_SHIM_H
#define KVG_NIXL_SHIM_H

#include "table.h"

// kvg_desc has the layout of nixl.Descriptor.
typedef struct {
	uint64_t addr, len, dev;
} kvg_desc;

// kvg_out is a buffer that a shim fills: records of a 64-bit length and that
// many bytes. The caller frees data.
typedef struct {
	char *data;
	size_t len, cap;
	int oom;
} kvg_out;

// Codes of this package beside those of the library.
enum { KVG_NO_MEMORY = -1000 };

const char *kvg_symbol_name(int i);

bool kvg_is_stub(kvg_table *t);
int kvg_plugin_params(kvg_table *t, kvg_h agent, const char *plugin, kvg_out *mems, kvg_out *params);
int kvg_backend_params(kvg_table *t, kvg_h agent, kvg_h backend, kvg_out *mems, kvg_out *params);
int kvg_create_backend(kvg_table *t, kvg_h agent, const char *plugin, const char *pairs, size_t n, kvg_h *backend);

// op: 0 register, 1 deregister
int kvg_nixl_memory(kvg_table *t, kvg_h agent, int op, int type, const kvg_desc *d, size_t n);
int kvg_partial_md(kvg_table *t, kvg_h agent, int type, const kvg_desc *d, size_t n, void **data, size_t *len);
int kvg_load_md(kvg_table *t, kvg_h agent, const void *data, size_t len, kvg_out *name);
int kvg_check_md(kvg_table *t, kvg_h agent, const char *peer, int type, const kvg_desc *d, size_t n);

int kvg_prepare(kvg_table *t, kvg_h agent, const char *peer, int type, const kvg_desc *d, size_t n, kvg_h *list);

// The calls of every transfer take handles as integers, which spares cgo's look
// at each pointer.
typedef struct {
	kvg_h req;
	int status;
} kvg_made;
kvg_made kvg_create(uintptr_t t, uintptr_t agent, int op, int local_type, const kvg_desc *local, int remote_type,
	const kvg_desc *remote, size_t n, const char *peer);
int kvg_post(uintptr_t t, uintptr_t agent, uintptr_t req);
int kvg_status(uintptr_t t, uintptr_t agent, uintptr_t req);
int kvg_nixl_release(uintptr_t t, uintptr_t agent, uintptr_t req);
int kvg_request_backend(kvg_table *t, kvg_h agent, kvg_h req, kvg_h *backends, size_t n, int *index);

int kvg_notifs(kvg_table *t, kvg_h agent, kvg_out *messages);

// One function of the library each.
int kvg_create_agent(kvg_table *t, const char *name, bool progress, int sync, uint64_t progress_us, kvg_h *agent);
int kvg_destroy_agent(kvg_table *t, kvg_h a);
int kvg_destroy_backend(kvg_table *t, kvg_h b);
int kvg_local_md(kvg_table *t, kvg_h a, void **p, size_t *n);
int kvg_invalidate(kvg_table *t, kvg_h a, const char *p);
int kvg_connect(kvg_table *t, kvg_h a, const char *p);
int kvg_release_list(kvg_table *t, kvg_h a, kvg_h l);
int kvg_make(kvg_table *t, kvg_h a, int op, kvg_h l, const int *li, size_t ln, kvg_h r, const int *ri, size_t rn, kvg_h *q);
int kvg_notify(kvg_table *t, kvg_h a, const char *p, const void *m, size_t n);

// Signal handlers. kvg_signals_save notes the handlers of all signals;
// kvg_signals_restore puts those back that have changed since and returns how
// many, with their numbers as bits.
typedef struct kvg_signals kvg_signals;
kvg_signals *kvg_signals_save(void);
int kvg_signals_restore(kvg_signals *s, uint64_t *which);

#endif
