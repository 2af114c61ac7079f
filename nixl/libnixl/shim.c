//go:build cgo && linux

#include "shim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define KVG_NAME(ret, name, args) "nixl_capi_" #name,
static const char *const names[KVG_SYMBOLS] = {KVG_NIXL_SYMBOLS(KVG_NAME)};
#undef KVG_NAME

const char *kvg_symbol_name(int i) { return names[i]; }

static void put(kvg_out *o, const void *data, size_t n) {
	size_t need = o->len + sizeof(uint64_t) + n;
	if (o->oom) return;
	if (need > o->cap) {
		size_t cap = need * 2;
		char *p = realloc(o->data, cap);
		if (!p) {
			o->oom = 1;
			return;
		}
		o->data = p;
		o->cap = cap;
	}
	uint64_t len = n;
	memcpy(o->data + o->len, &len, sizeof len);
	if (n) memcpy(o->data + o->len + sizeof len, data, n);
	o->len = need;
}

static void put_string(kvg_out *o, const char *s) { put(o, s, strlen(s)); }

// first keeps the first failure of a sequence.
static int first(int a, int b) { return a ? a : b; }

bool kvg_is_stub(kvg_table *t) { return KVG_CALL(t, is_stub)(); }

static int put_params(kvg_table *t, kvg_h params, kvg_out *out) {
	kvg_h it = NULL;
	bool more = true;
	// The iterator says after each step whether there is another, and nothing
	// of the first.
	int r = KVG_CALL(t, params_is_empty)(params, &more);
	more = !more;
	if (!r && more) r = KVG_CALL(t, params_create_iterator)(params, &it);
	while (!r && more) {
		const char *k = NULL, *v = NULL;
		r = KVG_CALL(t, params_iterator_next)(it, &k, &v, &more);
		if (!r && k && v) {
			put_string(out, k);
			put_string(out, v);
		}
	}
	if (it) KVG_CALL(t, params_destroy_iterator)(it);
	return r;
}

static int put_mems(kvg_table *t, kvg_h mems, kvg_out *out) {
	size_t n = 0;
	int r = KVG_CALL(t, mem_list_size)(mems, &n);
	for (size_t i = 0; !r && i < n; i++) {
		int m = 0;
		r = KVG_CALL(t, mem_list_get)(mems, i, &m);
		char c = (char)m;
		if (!r) put(out, &c, 1);
	}
	return r;
}

static int describe(kvg_table *t, int r, kvg_h m, kvg_h p, kvg_out *mems, kvg_out *params) {
	if (r) return r;
	r = put_mems(t, m, mems);
	r = first(r, put_params(t, p, params));
	KVG_CALL(t, destroy_mem_list)(m);
	KVG_CALL(t, destroy_params)(p);
	return r;
}

int kvg_plugin_params(kvg_table *t, kvg_h agent, const char *plugin, kvg_out *mems, kvg_out *params) {
	kvg_h m = NULL, p = NULL;
	int r = KVG_CALL(t, get_plugin_params)(agent, plugin, &m, &p);
	return describe(t, r, m, p, mems, params);
}

int kvg_backend_params(kvg_table *t, kvg_h agent, kvg_h backend, kvg_out *mems, kvg_out *params) {
	kvg_h m = NULL, p = NULL;
	int r = KVG_CALL(t, get_backend_params)(agent, backend, &m, &p);
	return describe(t, r, m, p, mems, params);
}

int kvg_create_backend(kvg_table *t, kvg_h agent, const char *plugin, const char *pairs, size_t n, kvg_h *backend) {
	kvg_h p = NULL;
	int r = KVG_CALL(t, create_params)(&p);
	if (r) return r;
	for (size_t i = 0; !r && i < n; i++) {
		const char *key = pairs, *value = key + strlen(key) + 1;
		r = KVG_CALL(t, params_add)(p, key, value);
		pairs = value + strlen(value) + 1;
	}
	if (!r) r = KVG_CALL(t, create_backend)(agent, plugin, p, backend);
	KVG_CALL(t, destroy_params)(p);
	return r;
}

static int registered(kvg_table *t, int type, const kvg_desc *d, size_t n, kvg_h *list) {
	int r = KVG_CALL(t, create_reg_dlist)(type, list);
	if (r) {
		*list = NULL;
		return r;
	}
	for (size_t i = 0; !r && i < n; i++) r = KVG_CALL(t, reg_dlist_add_desc)(*list, d[i].addr, d[i].len, d[i].dev, NULL, 0);
	if (r) {
		KVG_CALL(t, destroy_reg_dlist)(*list);
		*list = NULL;
	}
	return r;
}

// fill puts descriptors into an empty list. On failure the list is gone.
static int fill(kvg_table *t, const kvg_desc *d, size_t n, kvg_h *list) {
	kvg_fn_xfer_dlist_add_desc add = KVG_CALL(t, xfer_dlist_add_desc);
	int r = 0;
	for (size_t i = 0; !r && i < n; i++) r = add(*list, d[i].addr, d[i].len, d[i].dev);
	if (r) {
		KVG_CALL(t, destroy_xfer_dlist)(*list);
		*list = NULL;
	}
	return r;
}

static int plain(kvg_table *t, int type, const kvg_desc *d, size_t n, kvg_h *list) {
	int r = KVG_CALL(t, create_xfer_dlist)(type, list);
	if (r) {
		*list = NULL;
		return r;
	}
	return fill(t, d, n, list);
}

int kvg_nixl_memory(kvg_table *t, kvg_h agent, int op, int type, const kvg_desc *d, size_t n) {
	kvg_h list;
	int r = registered(t, type, d, n, &list);
	if (r) return r;
	r = op ? KVG_CALL(t, deregister_mem)(agent, list, NULL) : KVG_CALL(t, register_mem)(agent, list, NULL);
	KVG_CALL(t, destroy_reg_dlist)(list);
	return r;
}

int kvg_partial_md(kvg_table *t, kvg_h agent, int type, const kvg_desc *d, size_t n, void **data, size_t *len) {
	kvg_h list;
	int r = registered(t, type, d, n, &list);
	if (r) return r;
	r = KVG_CALL(t, get_local_partial_md)(agent, list, data, len, NULL);
	KVG_CALL(t, destroy_reg_dlist)(list);
	return r;
}

int kvg_load_md(kvg_table *t, kvg_h agent, const void *data, size_t len, kvg_out *name) {
	char *s = NULL;
	int r = KVG_CALL(t, load_remote_md)(agent, data, len, &s);
	if (!r && s) put_string(name, s);
	free(s);
	return r;
}

int kvg_check_md(kvg_table *t, kvg_h agent, const char *peer, int type, const kvg_desc *d, size_t n) {
	kvg_h list = NULL;
	if (n) {
		int r = plain(t, type, d, n, &list);
		if (r) return r;
	}
	int r = KVG_CALL(t, check_remote_md)(agent, peer, list);
	if (list) KVG_CALL(t, destroy_xfer_dlist)(list);
	return r;
}

int kvg_prepare(kvg_table *t, kvg_h agent, const char *peer, int type, const kvg_desc *d, size_t n, kvg_h *out) {
	kvg_h list;
	int r = plain(t, type, d, n, &list);
	if (r) return r;
	r = KVG_CALL(t, prep_xfer_dlist)(agent, peer, list, out, NULL);
	KVG_CALL(t, destroy_xfer_dlist)(list);
	return r;
}

// Longer lists are not kept from one request to the next: nobody would give
// their memory back.
enum { KEPT = 4096 };

// borrow is plain with a list that give_back left, if there is one.
static int borrow(kvg_table *t, int side, int type, const kvg_desc *d, size_t n, kvg_h *list) {
	kvg_h l = __atomic_exchange_n(&t->spare[side][type], NULL, __ATOMIC_ACQUIRE);
	if (!l) return plain(t, type, d, n, list);
	*list = l;
	return fill(t, d, n, list);
}

static void give_back(kvg_table *t, int side, int type, size_t n, kvg_h list) {
	if (n <= KEPT && KVG_CALL(t, xfer_dlist_clear)(list) == 0) list = __atomic_exchange_n(&t->spare[side][type], list, __ATOMIC_RELEASE);
	if (list) KVG_CALL(t, destroy_xfer_dlist)(list);
}

kvg_made kvg_create(uintptr_t table, uintptr_t agent, int op, int local_type, const kvg_desc *local, int remote_type,
	const kvg_desc *remote, size_t n, const char *peer) {
	kvg_table *t = (kvg_table *)table;
	kvg_made made = {NULL, 0};
	kvg_h l, r;
	made.status = borrow(t, 0, local_type, local, n, &l);
	if (made.status) return made;
	made.status = borrow(t, 1, remote_type, remote, n, &r);
	if (!made.status) {
		made.status = KVG_CALL(t, create_xfer_req)((kvg_h)agent, op, l, r, peer, &made.req, NULL);
		give_back(t, 1, remote_type, n, r);
	}
	give_back(t, 0, local_type, n, l);
	return made;
}

int kvg_post(uintptr_t t, uintptr_t agent, uintptr_t req) {
	return KVG_CALL((kvg_table *)t, post_xfer_req)((kvg_h)agent, (kvg_h)req, NULL);
}

int kvg_status(uintptr_t t, uintptr_t agent, uintptr_t req) {
	return KVG_CALL((kvg_table *)t, get_xfer_status)((kvg_h)agent, (kvg_h)req);
}

// The handle of a request is two objects: releasing ends the inner one, and on
// failure leaves it with the library; the outer one is ours to free.
int kvg_nixl_release(uintptr_t table, uintptr_t agent, uintptr_t req) {
	kvg_table *t = (kvg_table *)table;
	int r = KVG_CALL(t, release_xfer_req)((kvg_h)agent, (kvg_h)req);
	if (!r) r = KVG_CALL(t, destroy_xfer_req)((kvg_h)req);
	return r;
}

// A backend handle is a box around the backend's own address, and the library
// makes a new box for each question: the contents are compared.
int kvg_request_backend(kvg_table *t, kvg_h agent, kvg_h req, kvg_h *backends, size_t n, int *index) {
	kvg_h box = NULL;
	int r = KVG_CALL(t, query_xfer_backend)(agent, req, &box);
	if (r) return r;
	*index = -1;
	for (size_t i = 0; i < n; i++)
		if (*(void **)box == *(void **)backends[i]) *index = (int)i;
	KVG_CALL(t, destroy_backend)(box);
	return 0;
}

int kvg_notifs(kvg_table *t, kvg_h agent, kvg_out *out) {
	kvg_h map = NULL;
	size_t agents = 0;
	int r = KVG_CALL(t, create_notif_map)(&map);
	if (r) return r;
	// On an error of one backend the messages of the others are there.
	r = KVG_CALL(t, get_notifs)(agent, map, NULL);
	int s = KVG_CALL(t, notif_map_size)(map, &agents);
	for (size_t i = 0; !s && i < agents; i++) {
		const char *from = NULL;
		size_t n = 0;
		s = KVG_CALL(t, notif_map_get_agent_at)(map, i, &from);
		if (!s) s = KVG_CALL(t, notif_map_get_notifs_size)(map, from, &n);
		for (size_t k = 0; !s && k < n; k++) {
			const void *data = NULL;
			size_t len = 0;
			s = KVG_CALL(t, notif_map_get_notif)(map, from, k, &data, &len);
			if (!s) {
				put_string(out, from);
				put(out, data, len);
			}
		}
	}
	KVG_CALL(t, destroy_notif_map)(map);
	return first(r, s);
}

enum { SIGNALS = 65 };

struct kvg_signals {
	struct sigaction was[SIGNALS];
	char known[SIGNALS];
};

kvg_signals *kvg_signals_save(void) {
	kvg_signals *s = calloc(1, sizeof *s);
	for (int i = 1; s && i < SIGNALS; i++) s->known[i] = sigaction(i, NULL, &s->was[i]) == 0;
	return s;
}

static int same(const struct sigaction *a, const struct sigaction *b) {
	return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags;
}

int kvg_signals_restore(kvg_signals *s, uint64_t *which) {
	int n = 0;
	*which = 0;
	for (int i = 1; s && i < SIGNALS; i++) {
		struct sigaction now;
		if (!s->known[i] || sigaction(i, NULL, &now) || same(&now, &s->was[i])) continue;
		// Go has a handler of its own for every signal that it relies on; one
		// that was at its default is the library's to take.
		if (!(s->was[i].sa_flags & SA_SIGINFO) && s->was[i].sa_handler == SIG_DFL) continue;
		if (sigaction(i, &s->was[i], NULL) == 0) {
			*which |= 1ull << (i - 1);
			n++;
		}
	}
	free(s);
	return n;
}
