// Waking those who wait for marks. A wake source tells that something may have
// fired: it moves a counter and writes an eventfd. Whether a mark has fired is
// still what its event says.
#ifndef KVG_WAKE_H
#define KVG_WAKE_H

#include <stdint.h>
#include "abi_gen.h"

enum { KVG_WAKE_NONE, KVG_WAKE_HELPER, KVG_WAKE_HOST_FN, KVG_WAKE_WORD };
enum { KVG_WORDS = 1024, KVG_HELPERS = 64, KVG_HELPER_EVENTS = 256 };

typedef struct kvg_wake kvg_wake;

// The caller has the context current where a kvg_table is taken. words is
// mapped memory of KVG_WORDS words; NULL where the source is another.
kvg_wake *kvg_wake_new(kvg_table *t, CUcontext context, int source, uint32_t *words, uint64_t words_device);
// kvg_wake_stop ends the threads; kvg_wake_free gives back the rest, at the
// latest when the last host function has run.
void kvg_wake_stop(kvg_wake *w);
void kvg_wake_free(kvg_wake *w);
// kvg_wake_keep asks for one kvg_wake_free more before all is given back.
void kvg_wake_keep(kvg_wake *w);

int kvg_wake_fd(kvg_wake *w);
uint64_t *kvg_wake_counter(kvg_wake *w);
// kvg_wake_backwards is where it is noted that a word fell: 1 + its index.
uint32_t *kvg_wake_backwards(kvg_wake *w);
void kvg_wake_touch(kvg_wake *w);

// kvg_wake_hook starts a thread that calls fn whenever something moved. 0 where
// there is one already, or no thread can be had.
int kvg_wake_hook(kvg_wake *w, void *fn, void *arg);

// kvg_wake_mark follows a mark that was put into a stream, which has that
// number. It never fails: where the source can not be used it wakes at once,
// and whoever waits asks again after a while.
void kvg_wake_mark(kvg_wake *w, CUstream s, uint32_t number);

#endif
