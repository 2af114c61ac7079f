// The state that belongs to a thread, and the symbols by name.
#ifndef KVG_SOFT_H
#define KVG_SOFT_H

#include "abi_gen.h"

enum { KVG_SOFT_DEPTH = 64 };

uint64_t kvg_soft_current(void);
void kvg_soft_set_current(uint64_t context);
int kvg_soft_push(uint64_t context);
int kvg_soft_pop(uint64_t *context);
int kvg_soft_capture_mode(void);
int kvg_soft_exchange_capture_mode(int mode);
uint64_t kvg_soft_thread(void); // tells threads apart while they live

void *kvg_soft_symbol(const char *name);
void kvg_soft_call_host_fn(uint64_t fn, uint64_t arg);
int kvg_soft_in_host_fn(void);

#endif
