// Memory that processes share. A handle is 64 bytes.
#ifndef KVG_IPC_H
#define KVG_IPC_H

#include "driver.h"

kvg_result kvg_ipc_export(kvg_device *d, uint64_t ptr, char *handle);
kvg_result kvg_ipc_open(kvg_device *d, const char *handle, uint64_t *ptr);
kvg_result kvg_ipc_close(kvg_device *d, uint64_t ptr);

#endif
