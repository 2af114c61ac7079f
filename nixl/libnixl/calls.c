//go:build cgo && linux

// Calls that are one function of the library each.
#include "shim.h"

int kvg_create_agent(kvg_table *t, const char *name, bool progress, int sync, uint64_t progress_us, kvg_h *agent) {
	struct kvg_agent_config c = {progress, false, 0, sync, 1, progress_us, 10000, false};
	return KVG_CALL(t, create_configured_agent)(name, &c, agent);
}

int kvg_destroy_agent(kvg_table *t, kvg_h a) {
	return KVG_CALL(t, destroy_agent)(a);
}

int kvg_destroy_backend(kvg_table *t, kvg_h b) {
	return KVG_CALL(t, destroy_backend)(b);
}

int kvg_local_md(kvg_table *t, kvg_h a, void **p, size_t *n) {
	return KVG_CALL(t, get_local_md)(a, p, n);
}

int kvg_invalidate(kvg_table *t, kvg_h a, const char *p) {
	return KVG_CALL(t, invalidate_remote_md)(a, p);
}

int kvg_connect(kvg_table *t, kvg_h a, const char *p) {
	return KVG_CALL(t, agent_make_connection)(a, p, NULL);
}

int kvg_release_list(kvg_table *t, kvg_h a, kvg_h l) {
	return KVG_CALL(t, release_xfer_dlist_handle)(a, l);
}

int kvg_make(kvg_table *t, kvg_h a, int op, kvg_h l, const int *li, size_t ln, kvg_h r, const int *ri, size_t rn, kvg_h *q) {
	return KVG_CALL(t, make_xfer_req)(a, op, l, li, ln, r, ri, rn, q, NULL);
}

int kvg_notify(kvg_table *t, kvg_h a, const char *p, const void *m, size_t n) {
	return KVG_CALL(t, gen_notif)(a, p, n ? m : "", n, NULL);
}
