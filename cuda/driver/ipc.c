//go:build cgo && linux

#include "driver_internal.h"
#include "ipc.h"

kvg_result kvg_ipc_export(kvg_device *d, uint64_t ptr, char *handle) {
	if (!d->t.cuIpcGetMemHandle) return kvg_refuse(KVG_MISSING);
	WITHIN(d, r = kvg_from(d->t.cuIpcGetMemHandle((CUipcMemHandle *)handle, ptr)));
}

kvg_result kvg_ipc_open(kvg_device *d, const char *handle, uint64_t *ptr) {
	if (!d->t.cuIpcOpenMemHandle_v2) return kvg_refuse(KVG_MISSING);
	CUipcMemHandle h;
	memcpy(&h, handle, sizeof h);
	// CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
	WITHIN(d, r = kvg_from(d->t.cuIpcOpenMemHandle_v2(ptr, h, 1)));
}

// The driver does not say that it waits for work before it unmaps.
kvg_result kvg_ipc_close(kvg_device *d, uint64_t ptr) {
	if (!d->t.cuIpcCloseMemHandle) return kvg_refuse(KVG_MISSING);
	WITHIN(d, {
		r = kvg_from(d->t.cuCtxSynchronize());
		if (r.why == KVG_OK) r = kvg_from(d->t.cuIpcCloseMemHandle(ptr));
	});
}
