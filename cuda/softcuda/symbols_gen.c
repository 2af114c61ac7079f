// Code generated from internal/abi/driver.abi by internal/abi/internal/mkabi. DO NOT EDIT.

//go:build cgo && linux

#include <string.h>
#include "abi_gen.h"
#include "soft.h"

extern CUresult kvg_soft_cuInit(unsigned int flags);
extern CUresult kvg_soft_cuDriverGetVersion(int *version);
extern CUresult kvg_soft_cuGetErrorName(int error, const char **name);
extern CUresult kvg_soft_cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status);
extern CUresult kvg_soft_cuDeviceGet(CUdevice *device, int ordinal);
extern CUresult kvg_soft_cuDeviceGetCount(int *count);
extern CUresult kvg_soft_cuDeviceGetName(char *name, int len, CUdevice device);
extern CUresult kvg_soft_cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
extern CUresult kvg_soft_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
extern CUresult kvg_soft_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
extern CUresult kvg_soft_cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
extern CUresult kvg_soft_cuDeviceGetPCIBusId(char *id, int len, CUdevice device);
CUresult kvg_soft_cuDeviceComputeCapability(void) { return 801; }
extern CUresult kvg_soft_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
extern CUresult kvg_soft_cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult kvg_soft_cuDevicePrimaryCtxRelease(void) { return 801; }
CUresult kvg_soft_cuDevicePrimaryCtxGetState(void) { return 801; }
CUresult kvg_soft_cuDevicePrimaryCtxSetFlags_v2(void) { return 801; }
CUresult kvg_soft_cuDevicePrimaryCtxReset_v2(void) { return 801; }
extern CUresult kvg_soft_cuCtxPushCurrent_v2(CUcontext context);
extern CUresult kvg_soft_cuCtxPopCurrent_v2(CUcontext *context);
extern CUresult kvg_soft_cuCtxGetDevice(CUdevice *device);
extern CUresult kvg_soft_cuCtxSynchronize(void);
extern CUresult kvg_soft_cuCtxGetStreamPriorityRange(int *least, int *greatest);
extern CUresult kvg_soft_cuCtxGetCurrent(CUcontext *context);
extern CUresult kvg_soft_cuCtxSetCurrent(CUcontext context);
extern CUresult kvg_soft_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
extern CUresult kvg_soft_cuCtxDestroy_v2(CUcontext context);
extern CUresult kvg_soft_cuCtxGetApiVersion(CUcontext context, unsigned int *version);
extern CUresult kvg_soft_cuCtxGetFlags(unsigned int *flags);
extern CUresult kvg_soft_cuCtxSetFlags(unsigned int flags);
extern CUresult kvg_soft_cuCtxGetLimit(size_t *value, int limit);
extern CUresult kvg_soft_cuCtxSetLimit(int limit, size_t value);
extern CUresult kvg_soft_cuCtxGetCacheConfig(int *config);
extern CUresult kvg_soft_cuCtxSetCacheConfig(int config);
extern CUresult kvg_soft_cuCtxGetSharedMemConfig(int *config);
extern CUresult kvg_soft_cuCtxSetSharedMemConfig(int config);
extern CUresult kvg_soft_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
extern CUresult kvg_soft_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
extern CUresult kvg_soft_cuCtxDisablePeerAccess(CUcontext peer);
extern CUresult kvg_soft_cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice from, CUdevice to);
extern CUresult kvg_soft_cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size);
extern CUresult kvg_soft_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size, CUstream stream);
extern CUresult kvg_soft_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, int *options, void **values);
extern CUresult kvg_soft_cuModuleLoadData(CUmodule *module, const void *image);
extern CUresult kvg_soft_cuModuleLoad(CUmodule *module, const char *path);
extern CUresult kvg_soft_cuLinkCreate_v2(unsigned int n, int *options, void **values, CUlinkState *state);
extern CUresult kvg_soft_cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name, unsigned int n, int *options, void **values);
extern CUresult kvg_soft_cuLinkComplete(CUlinkState state, void **image, size_t *size);
extern CUresult kvg_soft_cuLinkDestroy(CUlinkState state);
extern CUresult kvg_soft_cuModuleUnload(CUmodule module);
extern CUresult kvg_soft_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
extern CUresult kvg_soft_cuFuncGetAttribute(int *value, int attribute, CUfunction function);
extern CUresult kvg_soft_cuFuncSetAttribute(CUfunction function, int attribute, int value);
extern CUresult kvg_soft_cuFuncLoad(CUfunction function);
extern CUresult kvg_soft_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size);
extern CUresult kvg_soft_cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra);
extern CUresult kvg_soft_cuMemAlloc_v2(CUdeviceptr *ptr, size_t size);
extern CUresult kvg_soft_cuMemFree_v2(CUdeviceptr ptr);
extern CUresult kvg_soft_cuMemHostAlloc(void **ptr, size_t size, unsigned int flags);
extern CUresult kvg_soft_cuMemFreeHost(void *ptr);
extern CUresult kvg_soft_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags);
extern CUresult kvg_soft_cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags);
extern CUresult kvg_soft_cuMemHostRegister_v2(void *host, size_t size, unsigned int flags);
extern CUresult kvg_soft_cuMemHostUnregister(void *host);
extern CUresult kvg_soft_cuMemGetInfo_v2(size_t *free, size_t *total);
extern CUresult kvg_soft_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr);
CUresult kvg_soft_cuPointerGetAttribute(void) { return 801; }
extern CUresult kvg_soft_cuPointerGetAttributes(unsigned int n, int *attributes, void **values, CUdeviceptr ptr);
extern CUresult kvg_soft_cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr ptr);
extern CUresult kvg_soft_cuFlushGPUDirectRDMAWrites(int target, int scope);
extern CUresult kvg_soft_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
CUresult kvg_soft_cuMemcpy(void) { return 801; }
extern CUresult kvg_soft_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size);
extern CUresult kvg_soft_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size);
extern CUresult kvg_soft_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size);
extern CUresult kvg_soft_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream);
extern CUresult kvg_soft_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream);
extern CUresult kvg_soft_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
extern CUresult kvg_soft_cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream);
extern CUresult kvg_soft_cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream);
extern CUresult kvg_soft_cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream);
extern CUresult kvg_soft_cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream);
extern CUresult kvg_soft_cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n);
CUresult kvg_soft_cuMemsetD16_v2(void) { return 801; }
extern CUresult kvg_soft_cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n);
extern CUresult kvg_soft_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr);
extern CUresult kvg_soft_cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags);
extern CUresult kvg_soft_cuIpcCloseMemHandle(CUdeviceptr ptr);
extern CUresult kvg_soft_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
extern CUresult kvg_soft_cuStreamCreate(CUstream *stream, unsigned int flags);
extern CUresult kvg_soft_cuStreamDestroy_v2(CUstream stream);
extern CUresult kvg_soft_cuStreamSynchronize(CUstream stream);
CUresult kvg_soft_cuStreamQuery(void) { return 801; }
extern CUresult kvg_soft_cuStreamIsCapturing(CUstream stream, int *status);
extern CUresult kvg_soft_cuThreadExchangeStreamCaptureMode(int *mode);
extern CUresult kvg_soft_cuStreamGetCtx(CUstream stream, CUcontext *context);
extern CUresult kvg_soft_cuStreamGetPriority(CUstream stream, int *priority);
CUresult kvg_soft_cuStreamGetFlags(void) { return 801; }
extern CUresult kvg_soft_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
extern CUresult kvg_soft_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
extern CUresult kvg_soft_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
extern CUresult kvg_soft_cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg);
extern CUresult kvg_soft_cuStreamBeginCapture_v2(CUstream stream, int mode);
extern CUresult kvg_soft_cuStreamEndCapture(CUstream stream, CUgraph *graph);
extern CUresult kvg_soft_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n);
extern CUresult kvg_soft_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags);
extern CUresult kvg_soft_cuGraphLaunch(CUgraphExec exec, CUstream stream);
extern CUresult kvg_soft_cuGraphDestroy(CUgraph graph);
extern CUresult kvg_soft_cuGraphExecDestroy(CUgraphExec exec);
extern CUresult kvg_soft_cuEventCreate(CUevent *event, unsigned int flags);
extern CUresult kvg_soft_cuEventDestroy_v2(CUevent event);
extern CUresult kvg_soft_cuEventRecord(CUevent event, CUstream stream);
extern CUresult kvg_soft_cuEventQuery(CUevent event);
extern CUresult kvg_soft_cuEventSynchronize(CUevent event);
CUresult kvg_soft_cuEventElapsedTime(void) { return 801; }
CUresult kvg_soft_cuEventElapsedTime_v2(void) { return 801; }
CUresult kvg_soft_cuArray3DCreate_v2(void) { return 801; }
CUresult kvg_soft_cuArray3DGetDescriptor_v2(void) { return 801; }
CUresult kvg_soft_cuArrayCreate_v2(void) { return 801; }
CUresult kvg_soft_cuArrayDestroy(void) { return 801; }
CUresult kvg_soft_cuArrayGetDescriptor_v2(void) { return 801; }
CUresult kvg_soft_cuCtxResetPersistingL2Cache(void) { return 801; }
CUresult kvg_soft_cuFuncSetCacheConfig(void) { return 801; }
CUresult kvg_soft_cuFuncSetSharedMemConfig(void) { return 801; }
CUresult kvg_soft_cuGraphAddChildGraphNode(void) { return 801; }
CUresult kvg_soft_cuGraphAddDependencies(void) { return 801; }
CUresult kvg_soft_cuGraphAddEmptyNode(void) { return 801; }
CUresult kvg_soft_cuGraphAddHostNode(void) { return 801; }
CUresult kvg_soft_cuGraphAddKernelNode_v2(void) { return 801; }
CUresult kvg_soft_cuGraphAddMemcpyNode(void) { return 801; }
CUresult kvg_soft_cuGraphAddMemsetNode(void) { return 801; }
CUresult kvg_soft_cuGraphClone(void) { return 801; }
CUresult kvg_soft_cuGraphCreate(void) { return 801; }
CUresult kvg_soft_cuGraphDestroyNode(void) { return 801; }
CUresult kvg_soft_cuGraphGetEdges(void) { return 801; }
CUresult kvg_soft_cuLinkAddFile_v2(void) { return 801; }
CUresult kvg_soft_cuMemAdvise(void) { return 801; }
CUresult kvg_soft_cuMemAllocPitch_v2(void) { return 801; }
CUresult kvg_soft_cuMemPrefetchAsync(void) { return 801; }
CUresult kvg_soft_cuMemcpy2DAsync_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpy2DUnaligned_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpy2D_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpy3DAsync_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpy3DPeer(void) { return 801; }
CUresult kvg_soft_cuMemcpy3DPeerAsync(void) { return 801; }
CUresult kvg_soft_cuMemcpy3D_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpyAtoA_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpyAtoD_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpyAtoHAsync_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpyAtoH_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpyDtoA_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpyHtoAAsync_v2(void) { return 801; }
CUresult kvg_soft_cuMemcpyHtoA_v2(void) { return 801; }
CUresult kvg_soft_cuMemsetD2D16Async(void) { return 801; }
CUresult kvg_soft_cuMemsetD2D16_v2(void) { return 801; }
CUresult kvg_soft_cuMemsetD2D32_v2(void) { return 801; }
CUresult kvg_soft_cuMemsetD2D8Async(void) { return 801; }
CUresult kvg_soft_cuMemsetD2D8_v2(void) { return 801; }
CUresult kvg_soft_cuModuleGetGlobal_v2(void) { return 801; }
CUresult kvg_soft_cuModuleGetSurfRef(void) { return 801; }
CUresult kvg_soft_cuModuleGetTexRef(void) { return 801; }
CUresult kvg_soft_cuModuleLoadFatBinary(void) { return 801; }
CUresult kvg_soft_cuOccupancyMaxActiveBlocksPerMultiprocessor(void) { return 801; }
CUresult kvg_soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(void) { return 801; }
CUresult kvg_soft_cuStreamAttachMemAsync(void) { return 801; }
CUresult kvg_soft_cuSurfRefGetArray(void) { return 801; }
CUresult kvg_soft_cuSurfRefSetArray(void) { return 801; }
CUresult kvg_soft_cuTexRefGetAddressMode(void) { return 801; }
CUresult kvg_soft_cuTexRefGetAddress_v2(void) { return 801; }
CUresult kvg_soft_cuTexRefGetArray(void) { return 801; }
CUresult kvg_soft_cuTexRefGetBorderColor(void) { return 801; }
CUresult kvg_soft_cuTexRefGetFilterMode(void) { return 801; }
CUresult kvg_soft_cuTexRefGetFlags(void) { return 801; }
CUresult kvg_soft_cuTexRefGetFormat(void) { return 801; }
CUresult kvg_soft_cuTexRefGetMaxAnisotropy(void) { return 801; }
CUresult kvg_soft_cuTexRefSetAddress2D_v3(void) { return 801; }
CUresult kvg_soft_cuTexRefSetAddressMode(void) { return 801; }
CUresult kvg_soft_cuTexRefSetAddress_v2(void) { return 801; }
CUresult kvg_soft_cuTexRefSetArray(void) { return 801; }
CUresult kvg_soft_cuTexRefSetBorderColor(void) { return 801; }
CUresult kvg_soft_cuTexRefSetFilterMode(void) { return 801; }
CUresult kvg_soft_cuTexRefSetFlags(void) { return 801; }
CUresult kvg_soft_cuTexRefSetFormat(void) { return 801; }
CUresult kvg_soft_cuTexRefSetMaxAnisotropy(void) { return 801; }
CUresult kvg_soft_cuTexRefSetMipmapFilterMode(void) { return 801; }
CUresult kvg_soft_cuTexRefSetMipmapLevelBias(void) { return 801; }
CUresult kvg_soft_cuTexRefSetMipmapLevelClamp(void) { return 801; }
extern CUresult kvg_soft_kvgateSimulated(int *simulated);

static const struct {
	const char *name;
	void *fn;
} kvg_soft_symbols[] = {
	{"cuInit", (void *)kvg_soft_cuInit},
	{"cuDriverGetVersion", (void *)kvg_soft_cuDriverGetVersion},
	{"cuGetErrorName", (void *)kvg_soft_cuGetErrorName},
	{"cuGetProcAddress_v2", (void *)kvg_soft_cuGetProcAddress_v2},
	{"cuDeviceGet", (void *)kvg_soft_cuDeviceGet},
	{"cuDeviceGetCount", (void *)kvg_soft_cuDeviceGetCount},
	{"cuDeviceGetName", (void *)kvg_soft_cuDeviceGetName},
	{"cuDeviceGetAttribute", (void *)kvg_soft_cuDeviceGetAttribute},
	{"cuDeviceTotalMem_v2", (void *)kvg_soft_cuDeviceTotalMem_v2},
	{"cuDeviceGetUuid_v2", (void *)kvg_soft_cuDeviceGetUuid_v2},
	{"cuDeviceGetUuid", (void *)kvg_soft_cuDeviceGetUuid},
	{"cuDeviceGetPCIBusId", (void *)kvg_soft_cuDeviceGetPCIBusId},
	{"cuDeviceComputeCapability", (void *)kvg_soft_cuDeviceComputeCapability},
	{"cuDevicePrimaryCtxRetain", (void *)kvg_soft_cuDevicePrimaryCtxRetain},
	{"cuDevicePrimaryCtxRelease_v2", (void *)kvg_soft_cuDevicePrimaryCtxRelease_v2},
	{"cuDevicePrimaryCtxRelease", (void *)kvg_soft_cuDevicePrimaryCtxRelease},
	{"cuDevicePrimaryCtxGetState", (void *)kvg_soft_cuDevicePrimaryCtxGetState},
	{"cuDevicePrimaryCtxSetFlags_v2", (void *)kvg_soft_cuDevicePrimaryCtxSetFlags_v2},
	{"cuDevicePrimaryCtxReset_v2", (void *)kvg_soft_cuDevicePrimaryCtxReset_v2},
	{"cuCtxPushCurrent_v2", (void *)kvg_soft_cuCtxPushCurrent_v2},
	{"cuCtxPopCurrent_v2", (void *)kvg_soft_cuCtxPopCurrent_v2},
	{"cuCtxGetDevice", (void *)kvg_soft_cuCtxGetDevice},
	{"cuCtxSynchronize", (void *)kvg_soft_cuCtxSynchronize},
	{"cuCtxGetStreamPriorityRange", (void *)kvg_soft_cuCtxGetStreamPriorityRange},
	{"cuCtxGetCurrent", (void *)kvg_soft_cuCtxGetCurrent},
	{"cuCtxSetCurrent", (void *)kvg_soft_cuCtxSetCurrent},
	{"cuCtxCreate_v2", (void *)kvg_soft_cuCtxCreate_v2},
	{"cuCtxDestroy_v2", (void *)kvg_soft_cuCtxDestroy_v2},
	{"cuCtxGetApiVersion", (void *)kvg_soft_cuCtxGetApiVersion},
	{"cuCtxGetFlags", (void *)kvg_soft_cuCtxGetFlags},
	{"cuCtxSetFlags", (void *)kvg_soft_cuCtxSetFlags},
	{"cuCtxGetLimit", (void *)kvg_soft_cuCtxGetLimit},
	{"cuCtxSetLimit", (void *)kvg_soft_cuCtxSetLimit},
	{"cuCtxGetCacheConfig", (void *)kvg_soft_cuCtxGetCacheConfig},
	{"cuCtxSetCacheConfig", (void *)kvg_soft_cuCtxSetCacheConfig},
	{"cuCtxGetSharedMemConfig", (void *)kvg_soft_cuCtxGetSharedMemConfig},
	{"cuCtxSetSharedMemConfig", (void *)kvg_soft_cuCtxSetSharedMemConfig},
	{"cuDeviceCanAccessPeer", (void *)kvg_soft_cuDeviceCanAccessPeer},
	{"cuCtxEnablePeerAccess", (void *)kvg_soft_cuCtxEnablePeerAccess},
	{"cuCtxDisablePeerAccess", (void *)kvg_soft_cuCtxDisablePeerAccess},
	{"cuDeviceGetP2PAttribute", (void *)kvg_soft_cuDeviceGetP2PAttribute},
	{"cuMemcpyPeer", (void *)kvg_soft_cuMemcpyPeer},
	{"cuMemcpyPeerAsync", (void *)kvg_soft_cuMemcpyPeerAsync},
	{"cuModuleLoadDataEx", (void *)kvg_soft_cuModuleLoadDataEx},
	{"cuModuleLoadData", (void *)kvg_soft_cuModuleLoadData},
	{"cuModuleLoad", (void *)kvg_soft_cuModuleLoad},
	{"cuLinkCreate_v2", (void *)kvg_soft_cuLinkCreate_v2},
	{"cuLinkAddData_v2", (void *)kvg_soft_cuLinkAddData_v2},
	{"cuLinkComplete", (void *)kvg_soft_cuLinkComplete},
	{"cuLinkDestroy", (void *)kvg_soft_cuLinkDestroy},
	{"cuModuleUnload", (void *)kvg_soft_cuModuleUnload},
	{"cuModuleGetFunction", (void *)kvg_soft_cuModuleGetFunction},
	{"cuFuncGetAttribute", (void *)kvg_soft_cuFuncGetAttribute},
	{"cuFuncSetAttribute", (void *)kvg_soft_cuFuncSetAttribute},
	{"cuFuncLoad", (void *)kvg_soft_cuFuncLoad},
	{"cuFuncGetParamInfo", (void *)kvg_soft_cuFuncGetParamInfo},
	{"cuLaunchKernel", (void *)kvg_soft_cuLaunchKernel},
	{"cuMemAlloc_v2", (void *)kvg_soft_cuMemAlloc_v2},
	{"cuMemFree_v2", (void *)kvg_soft_cuMemFree_v2},
	{"cuMemHostAlloc", (void *)kvg_soft_cuMemHostAlloc},
	{"cuMemFreeHost", (void *)kvg_soft_cuMemFreeHost},
	{"cuMemHostGetDevicePointer_v2", (void *)kvg_soft_cuMemHostGetDevicePointer_v2},
	{"cuMemAllocManaged", (void *)kvg_soft_cuMemAllocManaged},
	{"cuMemHostRegister_v2", (void *)kvg_soft_cuMemHostRegister_v2},
	{"cuMemHostUnregister", (void *)kvg_soft_cuMemHostUnregister},
	{"cuMemGetInfo_v2", (void *)kvg_soft_cuMemGetInfo_v2},
	{"cuMemGetAddressRange_v2", (void *)kvg_soft_cuMemGetAddressRange_v2},
	{"cuPointerGetAttribute", (void *)kvg_soft_cuPointerGetAttribute},
	{"cuPointerGetAttributes", (void *)kvg_soft_cuPointerGetAttributes},
	{"cuPointerSetAttribute", (void *)kvg_soft_cuPointerSetAttribute},
	{"cuFlushGPUDirectRDMAWrites", (void *)kvg_soft_cuFlushGPUDirectRDMAWrites},
	{"cuMemcpyAsync", (void *)kvg_soft_cuMemcpyAsync},
	{"cuMemcpy", (void *)kvg_soft_cuMemcpy},
	{"cuMemcpyHtoD_v2", (void *)kvg_soft_cuMemcpyHtoD_v2},
	{"cuMemcpyDtoH_v2", (void *)kvg_soft_cuMemcpyDtoH_v2},
	{"cuMemcpyDtoD_v2", (void *)kvg_soft_cuMemcpyDtoD_v2},
	{"cuMemcpyHtoDAsync_v2", (void *)kvg_soft_cuMemcpyHtoDAsync_v2},
	{"cuMemcpyDtoHAsync_v2", (void *)kvg_soft_cuMemcpyDtoHAsync_v2},
	{"cuMemcpyDtoDAsync_v2", (void *)kvg_soft_cuMemcpyDtoDAsync_v2},
	{"cuMemsetD8Async", (void *)kvg_soft_cuMemsetD8Async},
	{"cuMemsetD16Async", (void *)kvg_soft_cuMemsetD16Async},
	{"cuMemsetD32Async", (void *)kvg_soft_cuMemsetD32Async},
	{"cuMemsetD2D32Async", (void *)kvg_soft_cuMemsetD2D32Async},
	{"cuMemsetD8_v2", (void *)kvg_soft_cuMemsetD8_v2},
	{"cuMemsetD16_v2", (void *)kvg_soft_cuMemsetD16_v2},
	{"cuMemsetD32_v2", (void *)kvg_soft_cuMemsetD32_v2},
	{"cuIpcGetMemHandle", (void *)kvg_soft_cuIpcGetMemHandle},
	{"cuIpcOpenMemHandle_v2", (void *)kvg_soft_cuIpcOpenMemHandle_v2},
	{"cuIpcCloseMemHandle", (void *)kvg_soft_cuIpcCloseMemHandle},
	{"cuStreamCreateWithPriority", (void *)kvg_soft_cuStreamCreateWithPriority},
	{"cuStreamCreate", (void *)kvg_soft_cuStreamCreate},
	{"cuStreamDestroy_v2", (void *)kvg_soft_cuStreamDestroy_v2},
	{"cuStreamSynchronize", (void *)kvg_soft_cuStreamSynchronize},
	{"cuStreamQuery", (void *)kvg_soft_cuStreamQuery},
	{"cuStreamIsCapturing", (void *)kvg_soft_cuStreamIsCapturing},
	{"cuThreadExchangeStreamCaptureMode", (void *)kvg_soft_cuThreadExchangeStreamCaptureMode},
	{"cuStreamGetCtx", (void *)kvg_soft_cuStreamGetCtx},
	{"cuStreamGetPriority", (void *)kvg_soft_cuStreamGetPriority},
	{"cuStreamGetFlags", (void *)kvg_soft_cuStreamGetFlags},
	{"cuStreamWaitEvent", (void *)kvg_soft_cuStreamWaitEvent},
	{"cuStreamWriteValue32_v2", (void *)kvg_soft_cuStreamWriteValue32_v2},
	{"cuStreamWaitValue32_v2", (void *)kvg_soft_cuStreamWaitValue32_v2},
	{"cuLaunchHostFunc", (void *)kvg_soft_cuLaunchHostFunc},
	{"cuStreamBeginCapture_v2", (void *)kvg_soft_cuStreamBeginCapture_v2},
	{"cuStreamEndCapture", (void *)kvg_soft_cuStreamEndCapture},
	{"cuGraphGetNodes", (void *)kvg_soft_cuGraphGetNodes},
	{"cuGraphInstantiateWithFlags", (void *)kvg_soft_cuGraphInstantiateWithFlags},
	{"cuGraphLaunch", (void *)kvg_soft_cuGraphLaunch},
	{"cuGraphDestroy", (void *)kvg_soft_cuGraphDestroy},
	{"cuGraphExecDestroy", (void *)kvg_soft_cuGraphExecDestroy},
	{"cuEventCreate", (void *)kvg_soft_cuEventCreate},
	{"cuEventDestroy_v2", (void *)kvg_soft_cuEventDestroy_v2},
	{"cuEventRecord", (void *)kvg_soft_cuEventRecord},
	{"cuEventQuery", (void *)kvg_soft_cuEventQuery},
	{"cuEventSynchronize", (void *)kvg_soft_cuEventSynchronize},
	{"cuEventElapsedTime", (void *)kvg_soft_cuEventElapsedTime},
	{"cuEventElapsedTime_v2", (void *)kvg_soft_cuEventElapsedTime_v2},
	{"cuArray3DCreate_v2", (void *)kvg_soft_cuArray3DCreate_v2},
	{"cuArray3DGetDescriptor_v2", (void *)kvg_soft_cuArray3DGetDescriptor_v2},
	{"cuArrayCreate_v2", (void *)kvg_soft_cuArrayCreate_v2},
	{"cuArrayDestroy", (void *)kvg_soft_cuArrayDestroy},
	{"cuArrayGetDescriptor_v2", (void *)kvg_soft_cuArrayGetDescriptor_v2},
	{"cuCtxResetPersistingL2Cache", (void *)kvg_soft_cuCtxResetPersistingL2Cache},
	{"cuFuncSetCacheConfig", (void *)kvg_soft_cuFuncSetCacheConfig},
	{"cuFuncSetSharedMemConfig", (void *)kvg_soft_cuFuncSetSharedMemConfig},
	{"cuGraphAddChildGraphNode", (void *)kvg_soft_cuGraphAddChildGraphNode},
	{"cuGraphAddDependencies", (void *)kvg_soft_cuGraphAddDependencies},
	{"cuGraphAddEmptyNode", (void *)kvg_soft_cuGraphAddEmptyNode},
	{"cuGraphAddHostNode", (void *)kvg_soft_cuGraphAddHostNode},
	{"cuGraphAddKernelNode_v2", (void *)kvg_soft_cuGraphAddKernelNode_v2},
	{"cuGraphAddMemcpyNode", (void *)kvg_soft_cuGraphAddMemcpyNode},
	{"cuGraphAddMemsetNode", (void *)kvg_soft_cuGraphAddMemsetNode},
	{"cuGraphClone", (void *)kvg_soft_cuGraphClone},
	{"cuGraphCreate", (void *)kvg_soft_cuGraphCreate},
	{"cuGraphDestroyNode", (void *)kvg_soft_cuGraphDestroyNode},
	{"cuGraphGetEdges", (void *)kvg_soft_cuGraphGetEdges},
	{"cuLinkAddFile_v2", (void *)kvg_soft_cuLinkAddFile_v2},
	{"cuMemAdvise", (void *)kvg_soft_cuMemAdvise},
	{"cuMemAllocPitch_v2", (void *)kvg_soft_cuMemAllocPitch_v2},
	{"cuMemPrefetchAsync", (void *)kvg_soft_cuMemPrefetchAsync},
	{"cuMemcpy2DAsync_v2", (void *)kvg_soft_cuMemcpy2DAsync_v2},
	{"cuMemcpy2DUnaligned_v2", (void *)kvg_soft_cuMemcpy2DUnaligned_v2},
	{"cuMemcpy2D_v2", (void *)kvg_soft_cuMemcpy2D_v2},
	{"cuMemcpy3DAsync_v2", (void *)kvg_soft_cuMemcpy3DAsync_v2},
	{"cuMemcpy3DPeer", (void *)kvg_soft_cuMemcpy3DPeer},
	{"cuMemcpy3DPeerAsync", (void *)kvg_soft_cuMemcpy3DPeerAsync},
	{"cuMemcpy3D_v2", (void *)kvg_soft_cuMemcpy3D_v2},
	{"cuMemcpyAtoA_v2", (void *)kvg_soft_cuMemcpyAtoA_v2},
	{"cuMemcpyAtoD_v2", (void *)kvg_soft_cuMemcpyAtoD_v2},
	{"cuMemcpyAtoHAsync_v2", (void *)kvg_soft_cuMemcpyAtoHAsync_v2},
	{"cuMemcpyAtoH_v2", (void *)kvg_soft_cuMemcpyAtoH_v2},
	{"cuMemcpyDtoA_v2", (void *)kvg_soft_cuMemcpyDtoA_v2},
	{"cuMemcpyHtoAAsync_v2", (void *)kvg_soft_cuMemcpyHtoAAsync_v2},
	{"cuMemcpyHtoA_v2", (void *)kvg_soft_cuMemcpyHtoA_v2},
	{"cuMemsetD2D16Async", (void *)kvg_soft_cuMemsetD2D16Async},
	{"cuMemsetD2D16_v2", (void *)kvg_soft_cuMemsetD2D16_v2},
	{"cuMemsetD2D32_v2", (void *)kvg_soft_cuMemsetD2D32_v2},
	{"cuMemsetD2D8Async", (void *)kvg_soft_cuMemsetD2D8Async},
	{"cuMemsetD2D8_v2", (void *)kvg_soft_cuMemsetD2D8_v2},
	{"cuModuleGetGlobal_v2", (void *)kvg_soft_cuModuleGetGlobal_v2},
	{"cuModuleGetSurfRef", (void *)kvg_soft_cuModuleGetSurfRef},
	{"cuModuleGetTexRef", (void *)kvg_soft_cuModuleGetTexRef},
	{"cuModuleLoadFatBinary", (void *)kvg_soft_cuModuleLoadFatBinary},
	{"cuOccupancyMaxActiveBlocksPerMultiprocessor", (void *)kvg_soft_cuOccupancyMaxActiveBlocksPerMultiprocessor},
	{"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", (void *)kvg_soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags},
	{"cuStreamAttachMemAsync", (void *)kvg_soft_cuStreamAttachMemAsync},
	{"cuSurfRefGetArray", (void *)kvg_soft_cuSurfRefGetArray},
	{"cuSurfRefSetArray", (void *)kvg_soft_cuSurfRefSetArray},
	{"cuTexRefGetAddressMode", (void *)kvg_soft_cuTexRefGetAddressMode},
	{"cuTexRefGetAddress_v2", (void *)kvg_soft_cuTexRefGetAddress_v2},
	{"cuTexRefGetArray", (void *)kvg_soft_cuTexRefGetArray},
	{"cuTexRefGetBorderColor", (void *)kvg_soft_cuTexRefGetBorderColor},
	{"cuTexRefGetFilterMode", (void *)kvg_soft_cuTexRefGetFilterMode},
	{"cuTexRefGetFlags", (void *)kvg_soft_cuTexRefGetFlags},
	{"cuTexRefGetFormat", (void *)kvg_soft_cuTexRefGetFormat},
	{"cuTexRefGetMaxAnisotropy", (void *)kvg_soft_cuTexRefGetMaxAnisotropy},
	{"cuTexRefSetAddress2D_v3", (void *)kvg_soft_cuTexRefSetAddress2D_v3},
	{"cuTexRefSetAddressMode", (void *)kvg_soft_cuTexRefSetAddressMode},
	{"cuTexRefSetAddress_v2", (void *)kvg_soft_cuTexRefSetAddress_v2},
	{"cuTexRefSetArray", (void *)kvg_soft_cuTexRefSetArray},
	{"cuTexRefSetBorderColor", (void *)kvg_soft_cuTexRefSetBorderColor},
	{"cuTexRefSetFilterMode", (void *)kvg_soft_cuTexRefSetFilterMode},
	{"cuTexRefSetFlags", (void *)kvg_soft_cuTexRefSetFlags},
	{"cuTexRefSetFormat", (void *)kvg_soft_cuTexRefSetFormat},
	{"cuTexRefSetMaxAnisotropy", (void *)kvg_soft_cuTexRefSetMaxAnisotropy},
	{"cuTexRefSetMipmapFilterMode", (void *)kvg_soft_cuTexRefSetMipmapFilterMode},
	{"cuTexRefSetMipmapLevelBias", (void *)kvg_soft_cuTexRefSetMipmapLevelBias},
	{"cuTexRefSetMipmapLevelClamp", (void *)kvg_soft_cuTexRefSetMipmapLevelClamp},
	{"kvgateSimulated", (void *)kvg_soft_kvgateSimulated},
};

void *kvg_soft_symbol(const char *name) {
	for (size_t i = 0; i < sizeof kvg_soft_symbols / sizeof *kvg_soft_symbols; i++)
		if (!strcmp(kvg_soft_symbols[i].name, name)) return kvg_soft_symbols[i].fn;
	return NULL;
}
