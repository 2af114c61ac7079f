//go:build cgo && linux

#include "driver_internal.h"
#include "peers.h"

int kvg_can_access(kvg_table *t, int device, int peer, int *can) {
	return t->cuDeviceCanAccessPeer ? t->cuDeviceCanAccessPeer(can, device, peer) : 801; // CUDA_ERROR_NOT_SUPPORTED
}

kvg_result kvg_enable_access(kvg_device *d, uint64_t context) {
	if (!d->t.cuCtxEnablePeerAccess) return kvg_refuse(KVG_MISSING);
	WITHIN(d, r = kvg_from(d->t.cuCtxEnablePeerAccess(context, 0)));
}

kvg_result kvg_disable_access(kvg_device *d, uint64_t context) {
	if (!d->t.cuCtxDisablePeerAccess) return kvg_refuse(KVG_MISSING);
	WITHIN(d, r = kvg_from(d->t.cuCtxDisablePeerAccess(context)));
}
