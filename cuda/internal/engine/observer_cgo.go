//go:build cgo && linux

package engine

/*
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
	uint32_t *word; // of mapped memory
	uint32_t want;  // 0: nothing
	uint32_t found; // the last that was wanted and seen
	int64_t at;     // when
	int stop;
	pthread_t thread;
} observer;

static int64_t observer_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *observe(void *arg) {
	observer *o = arg;
	while (!__atomic_load_n(&o->stop, __ATOMIC_RELAXED)) {
		uint32_t want = __atomic_load_n(&o->want, __ATOMIC_ACQUIRE);
		if (want && __atomic_load_n(o->word, __ATOMIC_ACQUIRE) == want) {
			o->at = observer_now();
			__atomic_store_n(&o->want, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&o->found, want, __ATOMIC_RELEASE);
		}
	}
	return NULL;
}

static observer *observer_new(void *word) {
	observer *o = calloc(1, sizeof *o);
	if (!o) return NULL;
	o->word = word;
	if (pthread_create(&o->thread, NULL, observe, o)) {
		free(o);
		return NULL;
	}
	return o;
}

static void observer_arm(observer *o, uint32_t want) { __atomic_store_n(&o->want, want, __ATOMIC_RELEASE); }
static int64_t observer_at(observer *o, uint32_t want) {
	return __atomic_load_n(&o->found, __ATOMIC_ACQUIRE) == want ? o->at : 0;
}
static void observer_free(observer *o) {
	__atomic_store_n(&o->stop, 1, __ATOMIC_RELAXED);
	pthread_join(o->thread, NULL);
	free(o);
}
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Observer is a thread of the system's that spins on a 32-bit word of mapped
// memory, and keeps when it saw what it waits for. It takes a CPU.
type Observer struct{ c *C.observer }

// NewObserver starts one. The memory outlives it.
func NewObserver(word []byte) (Observer, error) {
	c := C.observer_new(unsafe.Pointer(unsafe.SliceData(word)))
	if c == nil {
		return Observer{}, errors.New("engine: no thread to observe with")
	}
	return Observer{c}, nil
}

// Arm has it wait for a value, which is not 0.
func (o Observer) Arm(v uint32) { C.observer_arm(o.c, C.uint32_t(v)) }

// At returns when the word was seen to be v, on CLOCK_MONOTONIC, or 0.
func (o Observer) At(v uint32) int64 { return int64(C.observer_at(o.c, C.uint32_t(v))) }

// Close ends the thread.
func (o Observer) Close() { C.observer_free(o.c) }
