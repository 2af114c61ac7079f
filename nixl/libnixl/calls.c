//go:build cgo && linux

// Calls that are one function of the library each.
#include "shim.h"

int kvg_create_agent(kvg_table *t, const char *name, bool progress, int sync, uint64_t progress_us, bool telemetry,
	kvg_h *agent) {
	struct kvg_agent_config c = {progress, false, 0, sync, 1, progress_us, 10000, telemetry};
	return KVG_CALL(t, create_configured_agent)(name, &c, agent);
}

int kvg_destroy_agent(kvg_table *t, kvg_h a) {
	return KVG_CALL(t, destroy_agent)(a);
}

int kvg_destroy_backend(kvg_table *t, kvg_h b) {
	return KVG_CALL(t, destroy_backend)(b);
}

int kvg_free_options(kvg_table *t, kvg_h o) {
	return KVG_CALL(t, destroy_opt_args)(o);
}

int kvg_local_md(kvg_table *t, kvg_h a, void **p, size_t *n) {
	return KVG_CALL(t, get_local_md)(a, p, n);
}

int kvg_invalidate(kvg_table *t, kvg_h a, const char *p) {
	return KVG_CALL(t, invalidate_remote_md)(a, p);
}

int kvg_connect(kvg_table *t, kvg_h a, const char *p, kvg_h o) {
	return KVG_CALL(t, agent_make_connection)(a, p, o);
}

int kvg_release_list(kvg_table *t, kvg_h a, kvg_h l) {
	return KVG_CALL(t, release_xfer_dlist_handle)(a, l);
}

int kvg_make(kvg_table *t, kvg_h a, int op, kvg_h l, const int *li, size_t ln, kvg_h r, const int *ri, size_t rn, kvg_h o, kvg_h *q) {
	return KVG_CALL(t, make_xfer_req)(a, op, l, li, ln, r, ri, rn, q, o);
}

int kvg_cost(kvg_table *t, kvg_h a, kvg_h q, int64_t *d, int64_t *e) {
	int method = 0;
	return KVG_CALL(t, estimate_xfer_cost)(a, q, NULL, d, e, &method);
}

int kvg_telemetry_of(kvg_table *t, kvg_h a, kvg_h q, struct kvg_telemetry *o) {
	return KVG_CALL(t, get_xfer_telemetry)(a, q, o);
}

int kvg_notify(kvg_table *t, kvg_h a, const char *p, const void *m, size_t n) {
	return KVG_CALL(t, gen_notif)(a, p, n ? m : "", n, NULL);
}

int kvg_release_view(kvg_table *t, kvg_h a, kvg_h v) {
	return KVG_CALL(t, release_mem_view)(a, v);
}
