// The functions of libnixl_capi.so that this package calls: one line each, with
// the types as the C ABI has them. Handles are opaque pointers, the status and
// the enumerations are ints.
#ifndef KVG_NIXL_TABLE_H
#define KVG_NIXL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Layouts that the ABI fixes.
struct kvg_agent_config {
	bool progress_thread;
	bool listen_thread;
	int listen_port;
	int thread_sync;
	unsigned int workers; // the library does not read it
	uint64_t progress_delay_us;
	uint64_t listen_delay_us;
	bool telemetry;
};

typedef void *kvg_h;

#define KVG_NIXL_SYMBOLS(X) \
	X(bool, is_stub, (void)) \
	X(int, create_configured_agent, (const char *, const struct kvg_agent_config *, kvg_h *)) \
	X(int, destroy_agent, (kvg_h)) \
	X(int, get_plugin_params, (kvg_h, const char *, kvg_h *, kvg_h *)) \
	X(int, destroy_mem_list, (kvg_h)) \
	X(int, mem_list_size, (kvg_h, size_t *)) \
	X(int, mem_list_get, (kvg_h, size_t, int *)) \
	X(int, create_params, (kvg_h *)) \
	X(int, destroy_params, (kvg_h)) \
	X(int, params_add, (kvg_h, const char *, const char *)) \
	X(int, params_is_empty, (kvg_h, bool *)) \
	X(int, params_create_iterator, (kvg_h, kvg_h *)) \
	X(int, params_iterator_next, (kvg_h, const char **, const char **, bool *)) \
	X(int, params_destroy_iterator, (kvg_h)) \
	X(int, create_backend, (kvg_h, const char *, kvg_h, kvg_h *)) \
	X(int, get_backend_params, (kvg_h, kvg_h, kvg_h *, kvg_h *)) \
	X(int, destroy_backend, (kvg_h)) \
	X(int, create_reg_dlist, (int, kvg_h *)) \
	X(int, destroy_reg_dlist, (kvg_h)) \
	X(int, reg_dlist_add_desc, (kvg_h, uintptr_t, size_t, uint64_t, const void *, size_t)) \
	X(int, create_xfer_dlist, (int, kvg_h *)) \
	X(int, destroy_xfer_dlist, (kvg_h)) \
	X(int, xfer_dlist_add_desc, (kvg_h, uintptr_t, size_t, uint64_t)) \
	X(int, xfer_dlist_clear, (kvg_h)) \
	X(int, register_mem, (kvg_h, kvg_h, kvg_h)) \
	X(int, deregister_mem, (kvg_h, kvg_h, kvg_h)) \
	X(int, get_local_md, (kvg_h, void **, size_t *)) \
	X(int, get_local_partial_md, (kvg_h, kvg_h, void **, size_t *, kvg_h)) \
	X(int, load_remote_md, (kvg_h, const void *, size_t, char **)) \
	X(int, invalidate_remote_md, (kvg_h, const char *)) \
	X(int, check_remote_md, (kvg_h, const char *, kvg_h)) \
	X(int, agent_make_connection, (kvg_h, const char *, kvg_h)) \
	X(int, prep_xfer_dlist, (kvg_h, const char *, kvg_h, kvg_h *, kvg_h)) \
	X(int, release_xfer_dlist_handle, (kvg_h, kvg_h)) \
	X(int, make_xfer_req, (kvg_h, int, kvg_h, const int *, size_t, kvg_h, const int *, size_t, kvg_h *, kvg_h)) \
	X(int, create_xfer_req, (kvg_h, int, kvg_h, kvg_h, const char *, kvg_h *, kvg_h)) \
	X(int, post_xfer_req, (kvg_h, kvg_h, kvg_h)) \
	X(int, get_xfer_status, (kvg_h, kvg_h)) \
	X(int, query_xfer_backend, (kvg_h, kvg_h, kvg_h *)) \
	X(int, release_xfer_req, (kvg_h, kvg_h)) \
	X(int, destroy_xfer_req, (kvg_h)) \
	X(int, create_notif_map, (kvg_h *)) \
	X(int, destroy_notif_map, (kvg_h)) \
	X(int, get_notifs, (kvg_h, kvg_h, kvg_h)) \
	X(int, notif_map_size, (kvg_h, size_t *)) \
	X(int, notif_map_get_agent_at, (kvg_h, size_t, const char **)) \
	X(int, notif_map_get_notifs_size, (kvg_h, const char *, size_t *)) \
	X(int, notif_map_get_notif, (kvg_h, const char *, size_t, const void **, size_t *)) \
	X(int, gen_notif, (kvg_h, const char *, const void *, size_t, kvg_h))

#define KVG_ENUM(ret, name, args) KVG_SYM_##name,
enum { KVG_NIXL_SYMBOLS(KVG_ENUM) KVG_SYMBOLS };
#undef KVG_ENUM

#define KVG_TYPE(ret, name, args) typedef ret(*kvg_fn_##name) args;
KVG_NIXL_SYMBOLS(KVG_TYPE)
#undef KVG_TYPE

// kvg_table has the address of each function, or NULL while it is not resolved.
typedef struct {
	void *fn[KVG_SYMBOLS];
	// Empty lists of transfers by memory type, for the next request.
	kvg_h spare[2][5];
} kvg_table;

#define KVG_CALL(t, name) ((kvg_fn_##name)(t)->fn[KVG_SYM_##name])

#endif
