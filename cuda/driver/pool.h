// Memory in stream order.
#ifndef KVG_POOL_H
#define KVG_POOL_H

#include "driver.h"

// Streams and pools are the driver's own handles; pool 0 is the device's
// current one.
kvg_result kvg_alloc_async(kvg_device *d, uint64_t size, uint64_t pool, uint64_t stream, uint64_t *ptr);
kvg_result kvg_free_async(kvg_device *d, uint64_t ptr, uint64_t stream);
kvg_result kvg_new_pool(kvg_device *d, int device, uint64_t *pool);
kvg_result kvg_free_pool(kvg_device *d, uint64_t pool);
kvg_result kvg_pool_get(kvg_device *d, int device, uint64_t pool, int attribute, uint64_t *value);
kvg_result kvg_pool_set(kvg_device *d, int device, uint64_t pool, int attribute, uint64_t value);
kvg_result kvg_pool_trim(kvg_device *d, int device, uint64_t pool, uint64_t keep);

#endif
