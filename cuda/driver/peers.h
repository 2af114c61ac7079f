// Several devices.
#ifndef KVG_PEERS_H
#define KVG_PEERS_H

#include "driver.h"

int kvg_can_access(kvg_table *t, int device, int peer, int *can);
kvg_result kvg_enable_access(kvg_device *d, uint64_t context);
kvg_result kvg_disable_access(kvg_device *d, uint64_t context);

#endif
