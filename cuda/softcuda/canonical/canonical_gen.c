// Code generated from internal/abi/driver.abi by internal/abi/internal/mkabi. DO NOT EDIT.

//go:build cgo && linux

// Declarations of the CUDA driver's C interface as far as this module uses it,
// for 64-bit Linux. Handles are integers as wide as the pointers that they are
// in the vendor's header: nothing here looks behind them.
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUcontext;
typedef uint64_t CUmodule;
typedef uint64_t CUfunction;
typedef uint64_t CUstream;
typedef uint64_t CUevent;
typedef uint64_t CUgraph;
typedef uint64_t CUgraphExec;
typedef uint64_t CUgraphNode;
typedef uint64_t CUlinkState;
typedef struct { char bytes[16]; } CUuuid;
typedef struct { char bytes[64]; } CUipcMemHandle;
typedef void (*CUhostFn)(void *arg);


extern CUresult kvg_soft_cuInit(unsigned int flags);
CUresult cuInit(unsigned int flags) { return kvg_soft_cuInit(flags); }

extern CUresult kvg_soft_cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version) { return kvg_soft_cuDriverGetVersion(version); }

extern CUresult kvg_soft_cuGetErrorName(int error, const char **name);
CUresult cuGetErrorName(int error, const char **name) { return kvg_soft_cuGetErrorName(error, name); }

extern CUresult kvg_soft_cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status);
CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status) { return kvg_soft_cuGetProcAddress_v2(symbol, fn, version, flags, status); }

extern CUresult kvg_soft_cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGet(CUdevice *device, int ordinal) { return kvg_soft_cuDeviceGet(device, ordinal); }

extern CUresult kvg_soft_cuDeviceGetCount(int *count);
CUresult cuDeviceGetCount(int *count) { return kvg_soft_cuDeviceGetCount(count); }

extern CUresult kvg_soft_cuDeviceGetName(char *name, int len, CUdevice device);
CUresult cuDeviceGetName(char *name, int len, CUdevice device) { return kvg_soft_cuDeviceGetName(name, len, device); }

extern CUresult kvg_soft_cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) { return kvg_soft_cuDeviceGetAttribute(value, attribute, device); }

extern CUresult kvg_soft_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) { return kvg_soft_cuDeviceTotalMem_v2(bytes, device); }

extern CUresult kvg_soft_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) { return kvg_soft_cuDeviceGetUuid_v2(uuid, device); }

extern CUresult kvg_soft_cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { return kvg_soft_cuDeviceGetUuid(uuid, device); }

extern CUresult kvg_soft_cuDeviceGetPCIBusId(char *id, int len, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device) { return kvg_soft_cuDeviceGetPCIBusId(id, len, device); }

extern CUresult kvg_soft_cuDeviceComputeCapability(int *major, int *minor, CUdevice device);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) { return kvg_soft_cuDeviceComputeCapability(major, minor, device); }

extern CUresult kvg_soft_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) { return kvg_soft_cuDevicePrimaryCtxRetain(context, device); }

extern CUresult kvg_soft_cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return kvg_soft_cuDevicePrimaryCtxRelease_v2(device); }

extern CUresult kvg_soft_cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return kvg_soft_cuDevicePrimaryCtxRelease(device); }

extern CUresult kvg_soft_cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) { return kvg_soft_cuDevicePrimaryCtxGetState(device, flags, active); }

extern CUresult kvg_soft_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) { return kvg_soft_cuDevicePrimaryCtxSetFlags_v2(device, flags); }

extern CUresult kvg_soft_cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return kvg_soft_cuDevicePrimaryCtxReset_v2(device); }

extern CUresult kvg_soft_cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context) { return kvg_soft_cuCtxPushCurrent_v2(context); }

extern CUresult kvg_soft_cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuCtxPopCurrent_v2(CUcontext *context) { return kvg_soft_cuCtxPopCurrent_v2(context); }

extern CUresult kvg_soft_cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetDevice(CUdevice *device) { return kvg_soft_cuCtxGetDevice(device); }

extern CUresult kvg_soft_cuCtxSynchronize(void);
CUresult cuCtxSynchronize(void) { return kvg_soft_cuCtxSynchronize(); }

extern CUresult kvg_soft_cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) { return kvg_soft_cuCtxGetStreamPriorityRange(least, greatest); }

extern CUresult kvg_soft_cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetCurrent(CUcontext *context) { return kvg_soft_cuCtxGetCurrent(context); }

extern CUresult kvg_soft_cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSetCurrent(CUcontext context) { return kvg_soft_cuCtxSetCurrent(context); }

extern CUresult kvg_soft_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) { return kvg_soft_cuCtxCreate_v2(context, flags, device); }

extern CUresult kvg_soft_cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxDestroy_v2(CUcontext context) { return kvg_soft_cuCtxDestroy_v2(context); }

extern CUresult kvg_soft_cuCtxGetApiVersion(CUcontext context, unsigned int *version);
CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version) { return kvg_soft_cuCtxGetApiVersion(context, version); }

extern CUresult kvg_soft_cuCtxGetFlags(unsigned int *flags);
CUresult cuCtxGetFlags(unsigned int *flags) { return kvg_soft_cuCtxGetFlags(flags); }

extern CUresult kvg_soft_cuCtxSetFlags(unsigned int flags);
CUresult cuCtxSetFlags(unsigned int flags) { return kvg_soft_cuCtxSetFlags(flags); }

extern CUresult kvg_soft_cuCtxGetLimit(size_t *value, int limit);
CUresult cuCtxGetLimit(size_t *value, int limit) { return kvg_soft_cuCtxGetLimit(value, limit); }

extern CUresult kvg_soft_cuCtxSetLimit(int limit, size_t value);
CUresult cuCtxSetLimit(int limit, size_t value) { return kvg_soft_cuCtxSetLimit(limit, value); }

extern CUresult kvg_soft_cuCtxGetCacheConfig(int *config);
CUresult cuCtxGetCacheConfig(int *config) { return kvg_soft_cuCtxGetCacheConfig(config); }

extern CUresult kvg_soft_cuCtxSetCacheConfig(int config);
CUresult cuCtxSetCacheConfig(int config) { return kvg_soft_cuCtxSetCacheConfig(config); }

extern CUresult kvg_soft_cuCtxGetSharedMemConfig(int *config);
CUresult cuCtxGetSharedMemConfig(int *config) { return kvg_soft_cuCtxGetSharedMemConfig(config); }

extern CUresult kvg_soft_cuCtxSetSharedMemConfig(int config);
CUresult cuCtxSetSharedMemConfig(int config) { return kvg_soft_cuCtxSetSharedMemConfig(config); }

extern CUresult kvg_soft_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) { return kvg_soft_cuDeviceCanAccessPeer(can, device, peer); }

extern CUresult kvg_soft_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) { return kvg_soft_cuCtxEnablePeerAccess(peer, flags); }

extern CUresult kvg_soft_cuCtxDisablePeerAccess(CUcontext peer);
CUresult cuCtxDisablePeerAccess(CUcontext peer) { return kvg_soft_cuCtxDisablePeerAccess(peer); }

extern CUresult kvg_soft_cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice from, CUdevice to);
CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice from, CUdevice to) { return kvg_soft_cuDeviceGetP2PAttribute(value, attribute, from, to); }

extern CUresult kvg_soft_cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size);
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size) { return kvg_soft_cuMemcpyPeer(dst, to, src, from, size); }

extern CUresult kvg_soft_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size, CUstream stream);
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size, CUstream stream) { return kvg_soft_cuMemcpyPeerAsync(dst, to, src, from, size, stream); }

extern CUresult kvg_soft_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, int *options, void **values);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, int *options, void **values) { return kvg_soft_cuModuleLoadDataEx(module, image, n, options, values); }

extern CUresult kvg_soft_cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadData(CUmodule *module, const void *image) { return kvg_soft_cuModuleLoadData(module, image); }

extern CUresult kvg_soft_cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleLoad(CUmodule *module, const char *path) { return kvg_soft_cuModuleLoad(module, path); }

extern CUresult kvg_soft_cuLinkCreate_v2(unsigned int n, int *options, void **values, CUlinkState *state);
CUresult cuLinkCreate_v2(unsigned int n, int *options, void **values, CUlinkState *state) { return kvg_soft_cuLinkCreate_v2(n, options, values, state); }

extern CUresult kvg_soft_cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name, unsigned int n, int *options, void **values);
CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name, unsigned int n, int *options, void **values) { return kvg_soft_cuLinkAddData_v2(state, type, data, size, name, n, options, values); }

extern CUresult kvg_soft_cuLinkComplete(CUlinkState state, void **image, size_t *size);
CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size) { return kvg_soft_cuLinkComplete(state, image, size); }

extern CUresult kvg_soft_cuLinkDestroy(CUlinkState state);
CUresult cuLinkDestroy(CUlinkState state) { return kvg_soft_cuLinkDestroy(state); }

extern CUresult kvg_soft_cuModuleUnload(CUmodule module);
CUresult cuModuleUnload(CUmodule module) { return kvg_soft_cuModuleUnload(module); }

extern CUresult kvg_soft_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) { return kvg_soft_cuModuleGetFunction(function, module, name); }

extern CUresult kvg_soft_cuFuncGetAttribute(int *value, int attribute, CUfunction function);
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) { return kvg_soft_cuFuncGetAttribute(value, attribute, function); }

extern CUresult kvg_soft_cuFuncSetAttribute(CUfunction function, int attribute, int value);
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) { return kvg_soft_cuFuncSetAttribute(function, attribute, value); }

extern CUresult kvg_soft_cuFuncLoad(CUfunction function);
CUresult cuFuncLoad(CUfunction function) { return kvg_soft_cuFuncLoad(function); }

extern CUresult kvg_soft_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size);
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) { return kvg_soft_cuFuncGetParamInfo(function, index, offset, size); }

extern CUresult kvg_soft_cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra);
CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra) { return kvg_soft_cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra); }

extern CUresult kvg_soft_cuMemAlloc_v2(CUdeviceptr *ptr, size_t size);
CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size) { return kvg_soft_cuMemAlloc_v2(ptr, size); }

extern CUresult kvg_soft_cuMemFree_v2(CUdeviceptr ptr);
CUresult cuMemFree_v2(CUdeviceptr ptr) { return kvg_soft_cuMemFree_v2(ptr); }

extern CUresult kvg_soft_cuMemHostAlloc(void **ptr, size_t size, unsigned int flags);
CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags) { return kvg_soft_cuMemHostAlloc(ptr, size, flags); }

extern CUresult kvg_soft_cuMemFreeHost(void *ptr);
CUresult cuMemFreeHost(void *ptr) { return kvg_soft_cuMemFreeHost(ptr); }

extern CUresult kvg_soft_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags) { return kvg_soft_cuMemHostGetDevicePointer_v2(device, host, flags); }

extern CUresult kvg_soft_cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags);
CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags) { return kvg_soft_cuMemAllocManaged(ptr, size, flags); }

extern CUresult kvg_soft_cuMemHostRegister_v2(void *host, size_t size, unsigned int flags);
CUresult cuMemHostRegister_v2(void *host, size_t size, unsigned int flags) { return kvg_soft_cuMemHostRegister_v2(host, size, flags); }

extern CUresult kvg_soft_cuMemHostUnregister(void *host);
CUresult cuMemHostUnregister(void *host) { return kvg_soft_cuMemHostUnregister(host); }

extern CUresult kvg_soft_cuMemGetInfo_v2(size_t *free, size_t *total);
CUresult cuMemGetInfo_v2(size_t *free, size_t *total) { return kvg_soft_cuMemGetInfo_v2(free, total); }

extern CUresult kvg_soft_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr) { return kvg_soft_cuMemGetAddressRange_v2(base, size, ptr); }

extern CUresult kvg_soft_cuPointerGetAttribute(void *value, int attribute, CUdeviceptr ptr);
CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr ptr) { return kvg_soft_cuPointerGetAttribute(value, attribute, ptr); }

extern CUresult kvg_soft_cuPointerGetAttributes(unsigned int n, int *attributes, void **values, CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned int n, int *attributes, void **values, CUdeviceptr ptr) { return kvg_soft_cuPointerGetAttributes(n, attributes, values, ptr); }

extern CUresult kvg_soft_cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr ptr) { return kvg_soft_cuPointerSetAttribute(value, attribute, ptr); }

extern CUresult kvg_soft_cuFlushGPUDirectRDMAWrites(int target, int scope);
CUresult cuFlushGPUDirectRDMAWrites(int target, int scope) { return kvg_soft_cuFlushGPUDirectRDMAWrites(target, scope); }

extern CUresult kvg_soft_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) { return kvg_soft_cuMemcpyAsync(dst, src, size, stream); }

extern CUresult kvg_soft_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size);
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size) { return kvg_soft_cuMemcpy(dst, src, size); }

extern CUresult kvg_soft_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size) { return kvg_soft_cuMemcpyHtoD_v2(dst, src, size); }

extern CUresult kvg_soft_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size) { return kvg_soft_cuMemcpyDtoH_v2(dst, src, size); }

extern CUresult kvg_soft_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size) { return kvg_soft_cuMemcpyDtoD_v2(dst, src, size); }

extern CUresult kvg_soft_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream) { return kvg_soft_cuMemcpyHtoDAsync_v2(dst, src, size, stream); }

extern CUresult kvg_soft_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream) { return kvg_soft_cuMemcpyDtoHAsync_v2(dst, src, size, stream); }

extern CUresult kvg_soft_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) { return kvg_soft_cuMemcpyDtoDAsync_v2(dst, src, size, stream); }

extern CUresult kvg_soft_cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream) { return kvg_soft_cuMemsetD8Async(dst, value, n, stream); }

extern CUresult kvg_soft_cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream);
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream) { return kvg_soft_cuMemsetD16Async(dst, value, n, stream); }

extern CUresult kvg_soft_cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream);
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream) { return kvg_soft_cuMemsetD32Async(dst, value, n, stream); }

extern CUresult kvg_soft_cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream);
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream) { return kvg_soft_cuMemsetD2D32Async(dst, pitch, value, width, height, stream); }

extern CUresult kvg_soft_cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n) { return kvg_soft_cuMemsetD8_v2(dst, value, n); }

extern CUresult kvg_soft_cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n);
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n) { return kvg_soft_cuMemsetD16_v2(dst, value, n); }

extern CUresult kvg_soft_cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n);
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n) { return kvg_soft_cuMemsetD32_v2(dst, value, n); }

extern CUresult kvg_soft_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr) { return kvg_soft_cuIpcGetMemHandle(handle, ptr); }

extern CUresult kvg_soft_cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags) { return kvg_soft_cuIpcOpenMemHandle_v2(ptr, handle, flags); }

extern CUresult kvg_soft_cuIpcCloseMemHandle(CUdeviceptr ptr);
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr) { return kvg_soft_cuIpcCloseMemHandle(ptr); }

extern CUresult kvg_soft_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) { return kvg_soft_cuStreamCreateWithPriority(stream, flags, priority); }

extern CUresult kvg_soft_cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags) { return kvg_soft_cuStreamCreate(stream, flags); }

extern CUresult kvg_soft_cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream) { return kvg_soft_cuStreamDestroy_v2(stream); }

extern CUresult kvg_soft_cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream) { return kvg_soft_cuStreamSynchronize(stream); }

extern CUresult kvg_soft_cuStreamQuery(CUstream stream);
CUresult cuStreamQuery(CUstream stream) { return kvg_soft_cuStreamQuery(stream); }

extern CUresult kvg_soft_cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuStreamIsCapturing(CUstream stream, int *status) { return kvg_soft_cuStreamIsCapturing(stream, status); }

extern CUresult kvg_soft_cuThreadExchangeStreamCaptureMode(int *mode);
CUresult cuThreadExchangeStreamCaptureMode(int *mode) { return kvg_soft_cuThreadExchangeStreamCaptureMode(mode); }

extern CUresult kvg_soft_cuStreamGetCtx(CUstream stream, CUcontext *context);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) { return kvg_soft_cuStreamGetCtx(stream, context); }

extern CUresult kvg_soft_cuStreamGetPriority(CUstream stream, int *priority);
CUresult cuStreamGetPriority(CUstream stream, int *priority) { return kvg_soft_cuStreamGetPriority(stream, priority); }

extern CUresult kvg_soft_cuStreamGetFlags(CUstream stream, unsigned int *flags);
CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags) { return kvg_soft_cuStreamGetFlags(stream, flags); }

extern CUresult kvg_soft_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) { return kvg_soft_cuStreamWaitEvent(stream, event, flags); }

extern CUresult kvg_soft_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags) { return kvg_soft_cuStreamWriteValue32_v2(stream, addr, value, flags); }

extern CUresult kvg_soft_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags) { return kvg_soft_cuStreamWaitValue32_v2(stream, addr, value, flags); }

extern CUresult kvg_soft_cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg) { return kvg_soft_cuLaunchHostFunc(stream, fn, arg); }

extern CUresult kvg_soft_cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) { return kvg_soft_cuStreamBeginCapture_v2(stream, mode); }

extern CUresult kvg_soft_cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) { return kvg_soft_cuStreamEndCapture(stream, graph); }

extern CUresult kvg_soft_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n) { return kvg_soft_cuGraphGetNodes(graph, nodes, n); }

extern CUresult kvg_soft_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags) { return kvg_soft_cuGraphInstantiateWithFlags(exec, graph, flags); }

extern CUresult kvg_soft_cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return kvg_soft_cuGraphLaunch(exec, stream); }

extern CUresult kvg_soft_cuGraphDestroy(CUgraph graph);
CUresult cuGraphDestroy(CUgraph graph) { return kvg_soft_cuGraphDestroy(graph); }

extern CUresult kvg_soft_cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphExecDestroy(CUgraphExec exec) { return kvg_soft_cuGraphExecDestroy(exec); }

extern CUresult kvg_soft_cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventCreate(CUevent *event, unsigned int flags) { return kvg_soft_cuEventCreate(event, flags); }

extern CUresult kvg_soft_cuEventDestroy_v2(CUevent event);
CUresult cuEventDestroy_v2(CUevent event) { return kvg_soft_cuEventDestroy_v2(event); }

extern CUresult kvg_soft_cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecord(CUevent event, CUstream stream) { return kvg_soft_cuEventRecord(event, stream); }

extern CUresult kvg_soft_cuEventQuery(CUevent event);
CUresult cuEventQuery(CUevent event) { return kvg_soft_cuEventQuery(event); }

extern CUresult kvg_soft_cuEventSynchronize(CUevent event);
CUresult cuEventSynchronize(CUevent event) { return kvg_soft_cuEventSynchronize(event); }

extern CUresult kvg_soft_cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) { return kvg_soft_cuEventElapsedTime(ms, start, end); }

extern CUresult kvg_soft_cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end) { return kvg_soft_cuEventElapsedTime_v2(ms, start, end); }

extern CUresult kvg_soft_cuArray3DCreate_v2(void);
CUresult cuArray3DCreate_v2(void) { return kvg_soft_cuArray3DCreate_v2(); }

extern CUresult kvg_soft_cuArray3DGetDescriptor_v2(void);
CUresult cuArray3DGetDescriptor_v2(void) { return kvg_soft_cuArray3DGetDescriptor_v2(); }

extern CUresult kvg_soft_cuArrayCreate_v2(void);
CUresult cuArrayCreate_v2(void) { return kvg_soft_cuArrayCreate_v2(); }

extern CUresult kvg_soft_cuArrayDestroy(void);
CUresult cuArrayDestroy(void) { return kvg_soft_cuArrayDestroy(); }

extern CUresult kvg_soft_cuArrayGetDescriptor_v2(void);
CUresult cuArrayGetDescriptor_v2(void) { return kvg_soft_cuArrayGetDescriptor_v2(); }

extern CUresult kvg_soft_cuCtxResetPersistingL2Cache(void);
CUresult cuCtxResetPersistingL2Cache(void) { return kvg_soft_cuCtxResetPersistingL2Cache(); }

extern CUresult kvg_soft_cuFuncSetCacheConfig(void);
CUresult cuFuncSetCacheConfig(void) { return kvg_soft_cuFuncSetCacheConfig(); }

extern CUresult kvg_soft_cuFuncSetSharedMemConfig(void);
CUresult cuFuncSetSharedMemConfig(void) { return kvg_soft_cuFuncSetSharedMemConfig(); }

extern CUresult kvg_soft_cuGraphAddChildGraphNode(void);
CUresult cuGraphAddChildGraphNode(void) { return kvg_soft_cuGraphAddChildGraphNode(); }

extern CUresult kvg_soft_cuGraphAddDependencies(void);
CUresult cuGraphAddDependencies(void) { return kvg_soft_cuGraphAddDependencies(); }

extern CUresult kvg_soft_cuGraphAddEmptyNode(void);
CUresult cuGraphAddEmptyNode(void) { return kvg_soft_cuGraphAddEmptyNode(); }

extern CUresult kvg_soft_cuGraphAddHostNode(void);
CUresult cuGraphAddHostNode(void) { return kvg_soft_cuGraphAddHostNode(); }

extern CUresult kvg_soft_cuGraphAddKernelNode_v2(void);
CUresult cuGraphAddKernelNode_v2(void) { return kvg_soft_cuGraphAddKernelNode_v2(); }

extern CUresult kvg_soft_cuGraphAddMemcpyNode(void);
CUresult cuGraphAddMemcpyNode(void) { return kvg_soft_cuGraphAddMemcpyNode(); }

extern CUresult kvg_soft_cuGraphAddMemsetNode(void);
CUresult cuGraphAddMemsetNode(void) { return kvg_soft_cuGraphAddMemsetNode(); }

extern CUresult kvg_soft_cuGraphClone(void);
CUresult cuGraphClone(void) { return kvg_soft_cuGraphClone(); }

extern CUresult kvg_soft_cuGraphCreate(void);
CUresult cuGraphCreate(void) { return kvg_soft_cuGraphCreate(); }

extern CUresult kvg_soft_cuGraphDestroyNode(void);
CUresult cuGraphDestroyNode(void) { return kvg_soft_cuGraphDestroyNode(); }

extern CUresult kvg_soft_cuGraphGetEdges(void);
CUresult cuGraphGetEdges(void) { return kvg_soft_cuGraphGetEdges(); }

extern CUresult kvg_soft_cuLinkAddFile_v2(void);
CUresult cuLinkAddFile_v2(void) { return kvg_soft_cuLinkAddFile_v2(); }

extern CUresult kvg_soft_cuMemAdvise(void);
CUresult cuMemAdvise(void) { return kvg_soft_cuMemAdvise(); }

extern CUresult kvg_soft_cuMemAllocPitch_v2(void);
CUresult cuMemAllocPitch_v2(void) { return kvg_soft_cuMemAllocPitch_v2(); }

extern CUresult kvg_soft_cuMemPrefetchAsync(void);
CUresult cuMemPrefetchAsync(void) { return kvg_soft_cuMemPrefetchAsync(); }

extern CUresult kvg_soft_cuMemcpy2DAsync_v2(void);
CUresult cuMemcpy2DAsync_v2(void) { return kvg_soft_cuMemcpy2DAsync_v2(); }

extern CUresult kvg_soft_cuMemcpy2DUnaligned_v2(void);
CUresult cuMemcpy2DUnaligned_v2(void) { return kvg_soft_cuMemcpy2DUnaligned_v2(); }

extern CUresult kvg_soft_cuMemcpy2D_v2(void);
CUresult cuMemcpy2D_v2(void) { return kvg_soft_cuMemcpy2D_v2(); }

extern CUresult kvg_soft_cuMemcpy3DAsync_v2(void);
CUresult cuMemcpy3DAsync_v2(void) { return kvg_soft_cuMemcpy3DAsync_v2(); }

extern CUresult kvg_soft_cuMemcpy3DPeer(void);
CUresult cuMemcpy3DPeer(void) { return kvg_soft_cuMemcpy3DPeer(); }

extern CUresult kvg_soft_cuMemcpy3DPeerAsync(void);
CUresult cuMemcpy3DPeerAsync(void) { return kvg_soft_cuMemcpy3DPeerAsync(); }

extern CUresult kvg_soft_cuMemcpy3D_v2(void);
CUresult cuMemcpy3D_v2(void) { return kvg_soft_cuMemcpy3D_v2(); }

extern CUresult kvg_soft_cuMemcpyAtoA_v2(void);
CUresult cuMemcpyAtoA_v2(void) { return kvg_soft_cuMemcpyAtoA_v2(); }

extern CUresult kvg_soft_cuMemcpyAtoD_v2(void);
CUresult cuMemcpyAtoD_v2(void) { return kvg_soft_cuMemcpyAtoD_v2(); }

extern CUresult kvg_soft_cuMemcpyAtoHAsync_v2(void);
CUresult cuMemcpyAtoHAsync_v2(void) { return kvg_soft_cuMemcpyAtoHAsync_v2(); }

extern CUresult kvg_soft_cuMemcpyAtoH_v2(void);
CUresult cuMemcpyAtoH_v2(void) { return kvg_soft_cuMemcpyAtoH_v2(); }

extern CUresult kvg_soft_cuMemcpyDtoA_v2(void);
CUresult cuMemcpyDtoA_v2(void) { return kvg_soft_cuMemcpyDtoA_v2(); }

extern CUresult kvg_soft_cuMemcpyHtoAAsync_v2(void);
CUresult cuMemcpyHtoAAsync_v2(void) { return kvg_soft_cuMemcpyHtoAAsync_v2(); }

extern CUresult kvg_soft_cuMemcpyHtoA_v2(void);
CUresult cuMemcpyHtoA_v2(void) { return kvg_soft_cuMemcpyHtoA_v2(); }

extern CUresult kvg_soft_cuMemsetD2D16Async(void);
CUresult cuMemsetD2D16Async(void) { return kvg_soft_cuMemsetD2D16Async(); }

extern CUresult kvg_soft_cuMemsetD2D16_v2(void);
CUresult cuMemsetD2D16_v2(void) { return kvg_soft_cuMemsetD2D16_v2(); }

extern CUresult kvg_soft_cuMemsetD2D32_v2(void);
CUresult cuMemsetD2D32_v2(void) { return kvg_soft_cuMemsetD2D32_v2(); }

extern CUresult kvg_soft_cuMemsetD2D8Async(void);
CUresult cuMemsetD2D8Async(void) { return kvg_soft_cuMemsetD2D8Async(); }

extern CUresult kvg_soft_cuMemsetD2D8_v2(void);
CUresult cuMemsetD2D8_v2(void) { return kvg_soft_cuMemsetD2D8_v2(); }

extern CUresult kvg_soft_cuModuleGetGlobal_v2(void);
CUresult cuModuleGetGlobal_v2(void) { return kvg_soft_cuModuleGetGlobal_v2(); }

extern CUresult kvg_soft_cuModuleGetSurfRef(void);
CUresult cuModuleGetSurfRef(void) { return kvg_soft_cuModuleGetSurfRef(); }

extern CUresult kvg_soft_cuModuleGetTexRef(void);
CUresult cuModuleGetTexRef(void) { return kvg_soft_cuModuleGetTexRef(); }

extern CUresult kvg_soft_cuModuleLoadFatBinary(void);
CUresult cuModuleLoadFatBinary(void) { return kvg_soft_cuModuleLoadFatBinary(); }

extern CUresult kvg_soft_cuOccupancyMaxActiveBlocksPerMultiprocessor(void);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(void) { return kvg_soft_cuOccupancyMaxActiveBlocksPerMultiprocessor(); }

extern CUresult kvg_soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(void);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(void) { return kvg_soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(); }

extern CUresult kvg_soft_cuStreamAttachMemAsync(void);
CUresult cuStreamAttachMemAsync(void) { return kvg_soft_cuStreamAttachMemAsync(); }

extern CUresult kvg_soft_cuSurfRefGetArray(void);
CUresult cuSurfRefGetArray(void) { return kvg_soft_cuSurfRefGetArray(); }

extern CUresult kvg_soft_cuSurfRefSetArray(void);
CUresult cuSurfRefSetArray(void) { return kvg_soft_cuSurfRefSetArray(); }

extern CUresult kvg_soft_cuTexRefGetAddressMode(void);
CUresult cuTexRefGetAddressMode(void) { return kvg_soft_cuTexRefGetAddressMode(); }

extern CUresult kvg_soft_cuTexRefGetAddress_v2(void);
CUresult cuTexRefGetAddress_v2(void) { return kvg_soft_cuTexRefGetAddress_v2(); }

extern CUresult kvg_soft_cuTexRefGetArray(void);
CUresult cuTexRefGetArray(void) { return kvg_soft_cuTexRefGetArray(); }

extern CUresult kvg_soft_cuTexRefGetBorderColor(void);
CUresult cuTexRefGetBorderColor(void) { return kvg_soft_cuTexRefGetBorderColor(); }

extern CUresult kvg_soft_cuTexRefGetFilterMode(void);
CUresult cuTexRefGetFilterMode(void) { return kvg_soft_cuTexRefGetFilterMode(); }

extern CUresult kvg_soft_cuTexRefGetFlags(void);
CUresult cuTexRefGetFlags(void) { return kvg_soft_cuTexRefGetFlags(); }

extern CUresult kvg_soft_cuTexRefGetFormat(void);
CUresult cuTexRefGetFormat(void) { return kvg_soft_cuTexRefGetFormat(); }

extern CUresult kvg_soft_cuTexRefGetMaxAnisotropy(void);
CUresult cuTexRefGetMaxAnisotropy(void) { return kvg_soft_cuTexRefGetMaxAnisotropy(); }

extern CUresult kvg_soft_cuTexRefSetAddress2D_v3(void);
CUresult cuTexRefSetAddress2D_v3(void) { return kvg_soft_cuTexRefSetAddress2D_v3(); }

extern CUresult kvg_soft_cuTexRefSetAddressMode(void);
CUresult cuTexRefSetAddressMode(void) { return kvg_soft_cuTexRefSetAddressMode(); }

extern CUresult kvg_soft_cuTexRefSetAddress_v2(void);
CUresult cuTexRefSetAddress_v2(void) { return kvg_soft_cuTexRefSetAddress_v2(); }

extern CUresult kvg_soft_cuTexRefSetArray(void);
CUresult cuTexRefSetArray(void) { return kvg_soft_cuTexRefSetArray(); }

extern CUresult kvg_soft_cuTexRefSetBorderColor(void);
CUresult cuTexRefSetBorderColor(void) { return kvg_soft_cuTexRefSetBorderColor(); }

extern CUresult kvg_soft_cuTexRefSetFilterMode(void);
CUresult cuTexRefSetFilterMode(void) { return kvg_soft_cuTexRefSetFilterMode(); }

extern CUresult kvg_soft_cuTexRefSetFlags(void);
CUresult cuTexRefSetFlags(void) { return kvg_soft_cuTexRefSetFlags(); }

extern CUresult kvg_soft_cuTexRefSetFormat(void);
CUresult cuTexRefSetFormat(void) { return kvg_soft_cuTexRefSetFormat(); }

extern CUresult kvg_soft_cuTexRefSetMaxAnisotropy(void);
CUresult cuTexRefSetMaxAnisotropy(void) { return kvg_soft_cuTexRefSetMaxAnisotropy(); }

extern CUresult kvg_soft_cuTexRefSetMipmapFilterMode(void);
CUresult cuTexRefSetMipmapFilterMode(void) { return kvg_soft_cuTexRefSetMipmapFilterMode(); }

extern CUresult kvg_soft_cuTexRefSetMipmapLevelBias(void);
CUresult cuTexRefSetMipmapLevelBias(void) { return kvg_soft_cuTexRefSetMipmapLevelBias(); }

extern CUresult kvg_soft_cuTexRefSetMipmapLevelClamp(void);
CUresult cuTexRefSetMipmapLevelClamp(void) { return kvg_soft_cuTexRefSetMipmapLevelClamp(); }

extern CUresult kvg_soft_kvgateSimulated(int *simulated);
CUresult kvgateSimulated(int *simulated) { return kvg_soft_kvgateSimulated(simulated); }
