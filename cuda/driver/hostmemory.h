// Managed memory, and host memory that the driver has not allocated.
#ifndef KVG_HOSTMEMORY_H
#define KVG_HOSTMEMORY_H

#include "driver.h"

kvg_result kvg_alloc_managed(kvg_device *d, uint64_t size, uint64_t *ptr);
kvg_result kvg_register(kvg_device *d, void *host, uint64_t size, uint64_t *ptr);
kvg_result kvg_unregister(kvg_device *d, void *host);
// wait: host memory may be read after the driver's call.
kvg_result kvg_copy_in(kvg_device *d, uint64_t stream_handle, uint64_t dst, const void *src, uint64_t n, int wait);
kvg_result kvg_copy_out(kvg_device *d, uint64_t stream_handle, void *dst, uint64_t src, uint64_t n);

#endif
