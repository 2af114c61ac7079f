//go:build cgo && linux

package measure

/*
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static int64_t kit_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

typedef struct {
	uint32_t *word; // of mapped memory
	uint32_t want;  // 0: nothing
	uint32_t found; // the last that was wanted and seen
	int64_t at;     // when
	int stop;
	pthread_t thread;
} kit_observer;

static void *kit_observe(void *arg) {
	kit_observer *o = arg;
	while (!__atomic_load_n(&o->stop, __ATOMIC_RELAXED)) {
		uint32_t want = __atomic_load_n(&o->want, __ATOMIC_ACQUIRE);
		if (want && __atomic_load_n(o->word, __ATOMIC_ACQUIRE) == want) {
			o->at = kit_now();
			__atomic_store_n(&o->want, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&o->found, want, __ATOMIC_RELEASE);
		}
	}
	return NULL;
}

static kit_observer *kit_observer_new(void *word) {
	kit_observer *o = calloc(1, sizeof *o);
	if (!o) return NULL;
	o->word = word;
	if (pthread_create(&o->thread, NULL, kit_observe, o)) {
		free(o);
		return NULL;
	}
	return o;
}

static void kit_observer_arm(kit_observer *o, uint32_t want) { __atomic_store_n(&o->want, want, __ATOMIC_RELEASE); }

static int64_t kit_observer_at(kit_observer *o, uint32_t want) {
	return __atomic_load_n(&o->found, __ATOMIC_ACQUIRE) == want ? o->at : 0;
}

static void kit_observer_free(kit_observer *o) {
	__atomic_store_n(&o->stop, 1, __ATOMIC_RELAXED);
	pthread_join(o->thread, NULL);
	free(o);
}

enum { KIT_STAMPS = 64 };
typedef struct { int64_t at[KIT_STAMPS], calls; } kit_stamp;

static void kit_stamp_fn(void *arg) {
	kit_stamp *s = arg;
	int64_t n = __atomic_load_n(&s->calls, __ATOMIC_RELAXED); // one thread calls
	__atomic_store_n(&s->at[n % KIT_STAMPS], kit_now(), __ATOMIC_RELEASE);
	__atomic_store_n(&s->calls, n + 1, __ATOMIC_RELEASE);
}
static void *kit_stamp_ptr(void) { return (void *)kit_stamp_fn; }
// The first call at or after a time, of the last ones; 0: none.
static int64_t kit_stamp_since(kit_stamp *s, int64_t since) {
	int64_t n = __atomic_load_n(&s->calls, __ATOMIC_ACQUIRE), found = 0;
	for (int64_t i = n - 1; i >= 0 && i > n - KIT_STAMPS; i--) {
		int64_t at = __atomic_load_n(&s->at[i % KIT_STAMPS], __ATOMIC_ACQUIRE);
		if (at < since) break;
		found = at;
	}
	return found;
}
*/
import "C"

import (
	"errors"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// now returns CLOCK_MONOTONIC, which the threads here stamp with.
func now() int64 { return int64(C.kit_now()) }

// observer is a thread of the system's that spins on a word of mapped memory,
// and keeps when it saw what it waits for.
type observer struct{ c *C.kit_observer }

func newObserver(b cuda.PinnedBuffer) (*observer, error) {
	c := C.kit_observer_new(unsafe.Pointer(unsafe.SliceData(b.Host)))
	if c == nil {
		return nil, errors.New("no thread to observe with")
	}
	return &observer{c}, nil
}

func (o *observer) arm(v uint32) { C.kit_observer_arm(o.c, C.uint32_t(v)) }

// at returns when the word was seen to be v, or 0.
func (o *observer) at(v uint32) int64 { return int64(C.kit_observer_at(o.c, C.uint32_t(v))) }

func (o *observer) close() { C.kit_observer_free(o.c) }

// stamp is a C function that keeps when it was called.
type stamp struct{ c *C.kit_stamp }

func newStamp() *stamp { return &stamp{(*C.kit_stamp)(C.calloc(1, C.sizeof_kit_stamp))} }

func (s *stamp) fn() unsafe.Pointer  { return C.kit_stamp_ptr() }
func (s *stamp) arg() unsafe.Pointer { return unsafe.Pointer(s.c) }

// since returns when it was first called at or after t, or 0.
func (s *stamp) since(t int64) int64 { return int64(C.kit_stamp_since(s.c, C.int64_t(t))) }

func (s *stamp) free() { C.free(unsafe.Pointer(s.c)) }
