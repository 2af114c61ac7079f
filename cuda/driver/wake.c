//go:build cgo && linux

#define _GNU_SOURCE
#include "wake.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

// helper waits for the marks of the streams that are dealt to it, one after the
// other, by blocking synchronisation on events of its own.
typedef struct {
	kvg_wake *w;
	pthread_t thread;
	int running;
	pthread_mutex_t lock;
	pthread_cond_t more;
	CUevent events[KVG_HELPER_EVENTS]; // ring
	uint32_t head, len;
} helper;

struct kvg_wake {
	kvg_table *t;
	CUcontext context;
	int source;
	int fd;      // told of movement
	int kick;    // tells the waiter thread of marks
	int stopping;
	uint64_t activity;
	int64_t refs; // the owner, and host functions that are to come

	// A stream's word counts its marks; it wraps. A word that falls behind what
	// it was is somebody else's doing.
	uint32_t *words;
	uint64_t words_device;
	pthread_mutex_t word_locks[KVG_WORDS];
	uint32_t issued[KVG_WORDS]; // what the last mark writes
	CUstream owners[KVG_WORDS]; // whose marks write it
	uint32_t backwards;         // 1 + the word that fell, 0: none
	int asleep;
	pthread_t waiter;
	int waiting;

	helper *helpers[KVG_HELPERS];
	pthread_mutex_t starting;

	int hook_fd; // tells the hook's thread; used once hooked is set
	int hooked;
	pthread_t hook;
	void (*hook_fn)(void *arg);
	void *hook_arg;
};

static void add(int fd) {
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof one);
	(void)n; // full: it is readable all the same
}

void kvg_wake_touch(kvg_wake *w) {
	__atomic_add_fetch(&w->activity, 1, __ATOMIC_RELEASE);
	if (__atomic_load_n(&w->hooked, __ATOMIC_ACQUIRE)) add(w->hook_fd);
	add(w->fd);
}

uint64_t *kvg_wake_counter(kvg_wake *w) { return &w->activity; }
uint32_t *kvg_wake_backwards(kvg_wake *w) { return &w->backwards; }
int kvg_wake_fd(kvg_wake *w) { return w->fd; }

static void release(kvg_wake *w) {
	if (__atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL)) return;
	close(w->fd);
	close(w->kick);
	close(w->hook_fd);
	free(w);
}

// The host function: no Go, no lock, no call of CUDA.
static void host_fn(void *arg) {
	kvg_wake_touch(arg);
	release(arg);
}

// How long the waiter thread lets pass between two looks at the words while
// marks are outstanding, and when nothing has moved for a hundred looks.
enum { LOOK_NS = 10 * 1000, IDLE_LOOK_NS = 1000 * 1000, PATIENCE = 10000 };

static void sleep_on(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t n;
	if (poll(&p, 1, -1) == 1 && read(fd, &n, sizeof n) < 0) return;
}

// Words start just before they wrap, so that it is an everyday event.
#define WORD_START ((uint32_t)-100)

static void *watch_words(void *arg) {
	kvg_wake *w = arg;
	uint32_t seen[KVG_WORDS];
	int quiet = 0;
	for (int i = 0; i < KVG_WORDS; i++) seen[i] = WORD_START;
	prctl(PR_SET_NAME, "kvgate words");
	prctl(PR_SET_TIMERSLACK, 1);
	while (!__atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE)) {
		int moved = 0, open = 0;
		for (int i = 0; i < KVG_WORDS; i++) {
			uint32_t v = __atomic_load_n(&w->words[i], __ATOMIC_ACQUIRE);
			if ((int32_t)(v - seen[i]) >= 0) {
				moved |= v != seen[i];
				seen[i] = v;
			} else if (!__atomic_load_n(&w->backwards, __ATOMIC_RELAXED)) {
				__atomic_store_n(&w->backwards, i + 1, __ATOMIC_RELEASE);
				moved = 1;
			}
			open |= v != __atomic_load_n(&w->issued[i], __ATOMIC_ACQUIRE);
		}
		if (moved) kvg_wake_touch(w);
		if (!open) {
			// A mark made meanwhile kicks, since it sees that this thread sleeps.
			__atomic_store_n(&w->asleep, 1, __ATOMIC_SEQ_CST);
			for (int i = 0; i < KVG_WORDS && !open; i++)
				open = __atomic_load_n(&w->issued[i], __ATOMIC_SEQ_CST) != seen[i];
			if (!open) sleep_on(w->kick);
			__atomic_store_n(&w->asleep, 0, __ATOMIC_SEQ_CST);
			quiet = 0;
			continue;
		}
		quiet = moved ? 0 : quiet + 1;
		struct timespec ts = {.tv_nsec = quiet > PATIENCE ? IDLE_LOOK_NS : LOOK_NS};
		nanosleep(&ts, NULL);
	}
	return NULL;
}

static void *run_hook(void *arg) {
	kvg_wake *w = arg;
	prctl(PR_SET_NAME, "kvgate hook");
	for (;;) {
		sleep_on(w->hook_fd);
		if (__atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE)) return NULL;
		w->hook_fn(w->hook_arg);
	}
}

int kvg_wake_hook(kvg_wake *w, void *fn, void *arg) {
	pthread_mutex_lock(&w->starting);
	int ok = !w->hooked;
	if (ok) {
		w->hook_fn = (void (*)(void *))fn;
		w->hook_arg = arg;
		ok = !pthread_create(&w->hook, NULL, run_hook, w);
		__atomic_store_n(&w->hooked, ok, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&w->starting);
	return ok;
}

static void *help(void *arg) {
	helper *h = arg;
	kvg_wake *w = h->w;
	CUcontext old;
	prctl(PR_SET_NAME, "kvgate helper");
	if (w->t->cuCtxPushCurrent_v2(w->context)) return NULL;
	pthread_mutex_lock(&h->lock);
	for (;;) {
		while (!h->len && !__atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE)) pthread_cond_wait(&h->more, &h->lock);
		if (__atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE)) break;
		CUevent e = h->events[h->head % KVG_HELPER_EVENTS];
		pthread_mutex_unlock(&h->lock);
		w->t->cuEventSynchronize(e); // an error, too, is something to ask after
		kvg_wake_touch(w);
		pthread_mutex_lock(&h->lock);
		h->head++;
		h->len--;
	}
	pthread_mutex_unlock(&h->lock);
	w->t->cuCtxPopCurrent_v2(&old);
	return NULL;
}

// start makes a helper and its events.
static helper *start(kvg_wake *w) {
	helper *h = calloc(1, sizeof *h);
	if (!h) return NULL;
	h->w = w;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->more, NULL);
	for (int i = 0; i < KVG_HELPER_EVENTS; i++)
		if (w->t->cuEventCreate(&h->events[i], 3)) h->events[i] = 0; // CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING
	h->running = !pthread_create(&h->thread, NULL, help, h);
	return h;
}

static int ask_helper(kvg_wake *w, CUstream s, uint32_t number) {
	helper **at = &w->helpers[number % KVG_HELPERS];
	helper *h = __atomic_load_n(at, __ATOMIC_ACQUIRE);
	if (!h) {
		pthread_mutex_lock(&w->starting);
		if (!(h = *at)) {
			h = start(w);
			__atomic_store_n(at, h, __ATOMIC_RELEASE);
		}
		pthread_mutex_unlock(&w->starting);
	}
	if (!h || !h->running) return 0;
	pthread_mutex_lock(&h->lock);
	int ok = h->len < KVG_HELPER_EVENTS;
	if (ok) {
		CUevent e = h->events[(h->head + h->len) % KVG_HELPER_EVENTS];
		ok = e && !w->t->cuEventRecord(e, s);
		if (ok) h->len++;
	}
	pthread_cond_signal(&h->more);
	pthread_mutex_unlock(&h->lock);
	return ok;
}

static int write_word(kvg_wake *w, CUstream s, uint32_t number) {
	if (number >= KVG_WORDS) return 0;
	// Marks of one stream may be made by several threads: the word has to rise in
	// the order in which they are in the stream.
	pthread_mutex_lock(&w->word_locks[number]);
	uint32_t v = w->issued[number];
	// A stream that is destroyed may still write the word that another has now.
	int ok = w->owners[number] == s || __atomic_load_n(&w->words[number], __ATOMIC_ACQUIRE) == v;
	if (ok) {
		w->owners[number] = s;
		ok = !w->t->cuStreamWriteValue32_v2(s, w->words_device + 4 * number, ++v, 0);
	}
	if (ok) __atomic_store_n(&w->issued[number], v, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&w->word_locks[number]);
	if (ok && __atomic_load_n(&w->asleep, __ATOMIC_SEQ_CST)) add(w->kick);
	return ok;
}

void kvg_wake_mark(kvg_wake *w, CUstream s, uint32_t number) {
	int ok = 0;
	switch (w->source) {
	case KVG_WAKE_HOST_FN:
		__atomic_add_fetch(&w->refs, 1, __ATOMIC_RELAXED);
		ok = !w->t->cuLaunchHostFunc(s, host_fn, w);
		if (!ok) release(w);
		break;
	case KVG_WAKE_WORD: ok = write_word(w, s, number); break;
	case KVG_WAKE_HELPER: ok = ask_helper(w, s, number); break;
	}
	if (!ok) kvg_wake_touch(w);
}

kvg_wake *kvg_wake_new(kvg_table *t, CUcontext context, int source, uint32_t *words, uint64_t words_device) {
	kvg_wake *w = calloc(1, sizeof *w);
	if (!w) return NULL;
	w->t = t;
	w->context = context;
	w->source = source;
	w->refs = 1;
	w->words = words;
	w->words_device = words_device;
	for (int i = 0; i < KVG_WORDS && words; i++) {
		pthread_mutex_init(&w->word_locks[i], NULL);
		words[i] = w->issued[i] = WORD_START;
	}
	pthread_mutex_init(&w->starting, NULL);
	w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->hook_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int ok = w->fd >= 0 && w->kick >= 0 && w->hook_fd >= 0;
	if (ok && source == KVG_WAKE_WORD) ok = w->waiting = !pthread_create(&w->waiter, NULL, watch_words, w);
	if (!ok) {
		if (w->fd >= 0) close(w->fd);
		if (w->kick >= 0) close(w->kick);
		if (w->hook_fd >= 0) close(w->hook_fd);
		free(w);
		return NULL;
	}
	return w;
}

// The context is current: helpers may wait for events that are still to fire.
void kvg_wake_stop(kvg_wake *w) {
	__atomic_store_n(&w->stopping, 1, __ATOMIC_RELEASE);
	if (w->waiting) {
		add(w->kick);
		pthread_join(w->waiter, NULL);
		w->waiting = 0;
	}
	if (w->hooked) {
		add(w->hook_fd);
		pthread_join(w->hook, NULL);
		w->hooked = 0;
	}
	for (int i = 0; i < KVG_HELPERS; i++) {
		helper *h = w->helpers[i];
		if (!h) continue;
		pthread_mutex_lock(&h->lock);
		pthread_cond_signal(&h->more);
		pthread_mutex_unlock(&h->lock);
		if (h->running) pthread_join(h->thread, NULL);
		for (int k = 0; k < KVG_HELPER_EVENTS; k++)
			if (h->events[k]) w->t->cuEventDestroy_v2(h->events[k]);
		pthread_cond_destroy(&h->more);
		pthread_mutex_destroy(&h->lock);
		free(h);
		w->helpers[i] = NULL;
	}
}

void kvg_wake_free(kvg_wake *w) { release(w); }
void kvg_wake_keep(kvg_wake *w) { __atomic_add_fetch(&w->refs, 1, __ATOMIC_RELAXED); }
