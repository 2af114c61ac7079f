// What a transfer costs a C program: reads numbers of descriptors, one a line,
// and answers each with "phase nanoseconds" pairs. The Go program beside it does
// the same through the binding. With "kept" the lists of descriptors are filled and
// cleared, as the binding does it; without, each request has lists of its own.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "table.h"

enum { BYTES = 4096, MOST = 512, BATCHES = 20, MAX_BATCH = 64, ASKS = 32 };

static kvg_table table;
#define LIB(name) KVG_CALL(&table, name)

static void must(int status, const char *what) {
	if (status == 0) return;
	fprintf(stderr, "bench: %s: status %d\n", what, status);
	exit(1);
}

#define NAME(ret, name, args) "nixl_capi_" #name,
static const char *const names[KVG_SYMBOLS] = {KVG_NIXL_SYMBOLS(NAME)};

static void resolve(const char *path) {
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		fprintf(stderr, "bench: %s\n", dlerror());
		exit(1);
	}
	for (int i = 0; i < KVG_SYMBOLS; i++) {
		table.fn[i] = dlsym(lib, names[i]);
		if (!table.fn[i]) {
			fprintf(stderr, "bench: no %s\n", names[i]);
			exit(1);
		}
	}
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static kvg_h agent(const char *name, char *memory) {
	struct kvg_agent_config config = {true, false, 0, 2, 1, 1000, 10000, false};
	kvg_h a, mems, params, backend, list;
	must(LIB(create_configured_agent)(name, &config, &a), "agent");
	must(LIB(get_plugin_params)(a, "UCX", &mems, &params), "parameters");
	must(LIB(create_backend)(a, "UCX", params, &backend), "backend");
	must(LIB(create_reg_dlist)(0, &list), "list");
	must(LIB(reg_dlist_add_desc)(list, (uintptr_t)memory, MOST * BYTES, 0, NULL, 0), "region");
	must(LIB(register_mem)(a, list, NULL), "register");
	return a;
}

static kvg_h a;
static char *local, *remote;

// Lists of descriptors, kept from one request to the next or NULL.
static kvg_h kept_local, kept_remote;

static kvg_h list(kvg_h kept, char *base, int n) {
	kvg_h l = kept;
	if (!l) must(LIB(create_xfer_dlist)(0, &l), "list");
	for (int i = 0; i < n; i++) must(LIB(xfer_dlist_add_desc)(l, (uintptr_t)base + i * BYTES, BYTES, 0), "descriptor");
	return l;
}

static void done_with(kvg_h l, kvg_h kept) {
	must(kept ? LIB(xfer_dlist_clear)(l) : LIB(destroy_xfer_dlist)(l), "list");
}

static kvg_h make(int n) {
	kvg_h l = list(kept_local, local, n), r = list(kept_remote, remote, n), req;
	must(LIB(create_xfer_req)(a, 0, l, r, "c-b", &req, NULL), "request");
	done_with(l, kept_local);
	done_with(r, kept_remote);
	return req;
}

static void post(kvg_h req) {
	int s = LIB(post_xfer_req)(a, req, NULL);
	must(s == 1 ? 0 : s, "post");
}

static void finish(kvg_h req) {
	int s;
	while ((s = LIB(get_xfer_status)(a, req)) == 1)
		;
	must(s, "status");
}

static void release(kvg_h req) {
	must(LIB(release_xfer_req)(a, req), "release");
	must(LIB(destroy_xfer_req)(req), "destroy");
}

static double note(double *best, double from, int count) {
	double v = (now() - from) / count;
	if (*best == 0 || v < *best) *best = v;
	return now();
}

static void measure(int n) {
	double make_ns = 0, post_ns = 0, finish_ns = 0, status_ns = 0, release_ns = 0, repost_ns = 0;
	int batch = 64 / n > 8 ? 64 / n : 8;
	kvg_h all[MAX_BATCH];
	for (int k = 0; k < BATCHES; k++) {
		double t = now();
		for (int i = 0; i < batch; i++) all[i] = make(n);
		t = note(&make_ns, t, batch);
		for (int i = 0; i < batch; i++) post(all[i]);
		t = note(&post_ns, t, batch);
		for (int i = 0; i < batch; i++) finish(all[i]);
		t = note(&finish_ns, t, batch);
		for (int i = 0; i < batch; i++)
			for (int j = 0; j < ASKS; j++) must(LIB(get_xfer_status)(a, all[i]), "status");
		t = note(&status_ns, t, batch * ASKS);
		for (int i = 0; i < batch; i++) release(all[i]);
		note(&release_ns, t, batch);
	}
	kvg_h req = make(n);
	for (int k = 0; k < BATCHES; k++) {
		double t = now();
		for (int i = 0; i < batch; i++) {
			post(req);
			finish(req);
		}
		note(&repost_ns, t, batch);
	}
	release(req);
	printf("make %f post %f finish %f status %f release %f repost %f\n", make_ns, post_ns, finish_ns, status_ns, release_ns, repost_ns);
	fflush(stdout);
}

int main(int argc, char **argv) {
	bool keeps = argc == 3 && strcmp(argv[2], "kept") == 0;
	if (argc != 2 && !keeps) return 2;
	resolve(argv[1]);
	local = mmap(NULL, 2 * MOST * BYTES, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	if (local == MAP_FAILED) return 1;
	remote = local + MOST * BYTES;
	a = agent("c-a", local);
	kvg_h b = agent("c-b", remote);
	void *blob;
	size_t len;
	char *name;
	must(LIB(get_local_md)(b, &blob, &len), "metadata");
	must(LIB(load_remote_md)(a, blob, len, &name), "peer");
	if (keeps) {
		must(LIB(create_xfer_dlist)(0, &kept_local), "list");
		must(LIB(create_xfer_dlist)(0, &kept_remote), "list");
	}
	int n;
	while (scanf("%d", &n) == 1 && n > 0 && n <= MOST) measure(n);
	if (keeps) {
		must(LIB(destroy_xfer_dlist)(kept_local), "list");
		must(LIB(destroy_xfer_dlist)(kept_remote), "list");
	}
	must(LIB(destroy_agent)(a), "end");
	must(LIB(destroy_agent)(b), "end");
	return 0;
}
