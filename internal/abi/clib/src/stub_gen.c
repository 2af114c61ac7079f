// Code generated from internal/abi/driver.abi by internal/abi/internal/mkabi. DO NOT EDIT.
// Each function returns CUDA_ERROR_STUB_LIBRARY, but for those in noop.h.

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

#ifndef KVG_WITHOUT_cuInit
CUresult cuInit(unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDriverGetVersion
CUresult cuDriverGetVersion(int *version) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGetErrorName
CUresult cuGetErrorName(int error, const char **name) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGetProcAddress_v2
CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceGet
CUresult cuDeviceGet(CUdevice *device, int ordinal) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceGetCount
CUresult cuDeviceGetCount(int *count) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceGetName
CUresult cuDeviceGetName(char *name, int len, CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceGetAttribute
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceTotalMem_v2
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceGetUuid_v2
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceGetUuid
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceGetPCIBusId
CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceComputeCapability
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDevicePrimaryCtxRetain
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDevicePrimaryCtxRelease_v2
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDevicePrimaryCtxRelease
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDevicePrimaryCtxGetState
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDevicePrimaryCtxSetFlags_v2
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDevicePrimaryCtxReset_v2
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxPushCurrent_v2
CUresult cuCtxPushCurrent_v2(CUcontext context) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxPopCurrent_v2
CUresult cuCtxPopCurrent_v2(CUcontext *context) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxGetDevice
CUresult cuCtxGetDevice(CUdevice *device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxSynchronize
CUresult cuCtxSynchronize(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxGetStreamPriorityRange
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxGetCurrent
CUresult cuCtxGetCurrent(CUcontext *context) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxSetCurrent
CUresult cuCtxSetCurrent(CUcontext context) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxCreate_v2
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxDestroy_v2
CUresult cuCtxDestroy_v2(CUcontext context) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxGetApiVersion
CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxGetFlags
CUresult cuCtxGetFlags(unsigned int *flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxSetFlags
CUresult cuCtxSetFlags(unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxGetLimit
CUresult cuCtxGetLimit(size_t *value, int limit) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxSetLimit
CUresult cuCtxSetLimit(int limit, size_t value) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxGetCacheConfig
CUresult cuCtxGetCacheConfig(int *config) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxSetCacheConfig
CUresult cuCtxSetCacheConfig(int config) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxGetSharedMemConfig
CUresult cuCtxGetSharedMemConfig(int *config) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxSetSharedMemConfig
CUresult cuCtxSetSharedMemConfig(int config) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceCanAccessPeer
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxEnablePeerAccess
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxDisablePeerAccess
CUresult cuCtxDisablePeerAccess(CUcontext peer) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuDeviceGetP2PAttribute
CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice from, CUdevice to) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyPeer
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyPeerAsync
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuModuleLoadDataEx
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, int *options, void **values) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuModuleLoadData
CUresult cuModuleLoadData(CUmodule *module, const void *image) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuModuleLoad
CUresult cuModuleLoad(CUmodule *module, const char *path) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuLinkCreate_v2
CUresult cuLinkCreate_v2(unsigned int n, int *options, void **values, CUlinkState *state) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuLinkAddData_v2
CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name, unsigned int n, int *options, void **values) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuLinkComplete
CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuLinkDestroy
CUresult cuLinkDestroy(CUlinkState state) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuModuleUnload
CUresult cuModuleUnload(CUmodule module) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuModuleGetFunction
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuFuncGetAttribute
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuFuncSetAttribute
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuFuncLoad
CUresult cuFuncLoad(CUfunction function) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuFuncGetParamInfo
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuLaunchKernel
CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemAlloc_v2
CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemFree_v2
CUresult cuMemFree_v2(CUdeviceptr ptr) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemHostAlloc
CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemFreeHost
CUresult cuMemFreeHost(void *ptr) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemHostGetDevicePointer_v2
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemAllocManaged
CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemHostRegister_v2
CUresult cuMemHostRegister_v2(void *host, size_t size, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemHostUnregister
CUresult cuMemHostUnregister(void *host) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemGetInfo_v2
CUresult cuMemGetInfo_v2(size_t *free, size_t *total) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemGetAddressRange_v2
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuPointerGetAttribute
CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr ptr) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuPointerGetAttributes
CUresult cuPointerGetAttributes(unsigned int n, int *attributes, void **values, CUdeviceptr ptr) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuPointerSetAttribute
CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr ptr) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuFlushGPUDirectRDMAWrites
CUresult cuFlushGPUDirectRDMAWrites(int target, int scope) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyAsync
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpy
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyHtoD_v2
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyDtoH_v2
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyDtoD_v2
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyHtoDAsync_v2
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyDtoHAsync_v2
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyDtoDAsync_v2
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD8Async
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD16Async
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD32Async
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD2D32Async
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD8_v2
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD16_v2
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD32_v2
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuIpcGetMemHandle
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuIpcOpenMemHandle_v2
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuIpcCloseMemHandle
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamCreateWithPriority
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamCreate
CUresult cuStreamCreate(CUstream *stream, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamDestroy_v2
CUresult cuStreamDestroy_v2(CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamSynchronize
CUresult cuStreamSynchronize(CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamQuery
CUresult cuStreamQuery(CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamIsCapturing
CUresult cuStreamIsCapturing(CUstream stream, int *status) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuThreadExchangeStreamCaptureMode
CUresult cuThreadExchangeStreamCaptureMode(int *mode) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamGetCtx
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamGetPriority
CUresult cuStreamGetPriority(CUstream stream, int *priority) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamGetFlags
CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamWaitEvent
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamWriteValue32_v2
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamWaitValue32_v2
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuLaunchHostFunc
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamBeginCapture_v2
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamEndCapture
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphGetNodes
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphInstantiateWithFlags
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphLaunch
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphDestroy
CUresult cuGraphDestroy(CUgraph graph) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphExecDestroy
CUresult cuGraphExecDestroy(CUgraphExec exec) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuEventCreate
CUresult cuEventCreate(CUevent *event, unsigned int flags) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuEventDestroy_v2
CUresult cuEventDestroy_v2(CUevent event) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuEventRecord
CUresult cuEventRecord(CUevent event, CUstream stream) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuEventQuery
CUresult cuEventQuery(CUevent event) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuEventSynchronize
CUresult cuEventSynchronize(CUevent event) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuEventElapsedTime_v2
CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuArray3DCreate_v2
CUresult cuArray3DCreate_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuArray3DGetDescriptor_v2
CUresult cuArray3DGetDescriptor_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuArrayCreate_v2
CUresult cuArrayCreate_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuArrayDestroy
CUresult cuArrayDestroy(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuArrayGetDescriptor_v2
CUresult cuArrayGetDescriptor_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuCtxResetPersistingL2Cache
CUresult cuCtxResetPersistingL2Cache(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuFuncSetCacheConfig
CUresult cuFuncSetCacheConfig(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuFuncSetSharedMemConfig
CUresult cuFuncSetSharedMemConfig(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphAddChildGraphNode
CUresult cuGraphAddChildGraphNode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphAddDependencies
CUresult cuGraphAddDependencies(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphAddEmptyNode
CUresult cuGraphAddEmptyNode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphAddHostNode
CUresult cuGraphAddHostNode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphAddKernelNode_v2
CUresult cuGraphAddKernelNode_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphAddMemcpyNode
CUresult cuGraphAddMemcpyNode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphAddMemsetNode
CUresult cuGraphAddMemsetNode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphClone
CUresult cuGraphClone(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphCreate
CUresult cuGraphCreate(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphDestroyNode
CUresult cuGraphDestroyNode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuGraphGetEdges
CUresult cuGraphGetEdges(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuLinkAddFile_v2
CUresult cuLinkAddFile_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemAdvise
CUresult cuMemAdvise(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemAllocPitch_v2
CUresult cuMemAllocPitch_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemPrefetchAsync
CUresult cuMemPrefetchAsync(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpy2DAsync_v2
CUresult cuMemcpy2DAsync_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpy2DUnaligned_v2
CUresult cuMemcpy2DUnaligned_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpy2D_v2
CUresult cuMemcpy2D_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpy3DAsync_v2
CUresult cuMemcpy3DAsync_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpy3DPeer
CUresult cuMemcpy3DPeer(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpy3DPeerAsync
CUresult cuMemcpy3DPeerAsync(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpy3D_v2
CUresult cuMemcpy3D_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyAtoA_v2
CUresult cuMemcpyAtoA_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyAtoD_v2
CUresult cuMemcpyAtoD_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyAtoHAsync_v2
CUresult cuMemcpyAtoHAsync_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyAtoH_v2
CUresult cuMemcpyAtoH_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyDtoA_v2
CUresult cuMemcpyDtoA_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyHtoAAsync_v2
CUresult cuMemcpyHtoAAsync_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemcpyHtoA_v2
CUresult cuMemcpyHtoA_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD2D16Async
CUresult cuMemsetD2D16Async(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD2D16_v2
CUresult cuMemsetD2D16_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD2D32_v2
CUresult cuMemsetD2D32_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD2D8Async
CUresult cuMemsetD2D8Async(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuMemsetD2D8_v2
CUresult cuMemsetD2D8_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuModuleGetGlobal_v2
CUresult cuModuleGetGlobal_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuModuleGetSurfRef
CUresult cuModuleGetSurfRef(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuModuleGetTexRef
CUresult cuModuleGetTexRef(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuModuleLoadFatBinary
CUresult cuModuleLoadFatBinary(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuOccupancyMaxActiveBlocksPerMultiprocessor
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuStreamAttachMemAsync
CUresult cuStreamAttachMemAsync(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuSurfRefGetArray
CUresult cuSurfRefGetArray(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuSurfRefSetArray
CUresult cuSurfRefSetArray(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefGetAddressMode
CUresult cuTexRefGetAddressMode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefGetAddress_v2
CUresult cuTexRefGetAddress_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefGetArray
CUresult cuTexRefGetArray(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefGetBorderColor
CUresult cuTexRefGetBorderColor(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefGetFilterMode
CUresult cuTexRefGetFilterMode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefGetFlags
CUresult cuTexRefGetFlags(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefGetFormat
CUresult cuTexRefGetFormat(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefGetMaxAnisotropy
CUresult cuTexRefGetMaxAnisotropy(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetAddress2D_v3
CUresult cuTexRefSetAddress2D_v3(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetAddressMode
CUresult cuTexRefSetAddressMode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetAddress_v2
CUresult cuTexRefSetAddress_v2(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetArray
CUresult cuTexRefSetArray(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetBorderColor
CUresult cuTexRefSetBorderColor(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetFilterMode
CUresult cuTexRefSetFilterMode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetFlags
CUresult cuTexRefSetFlags(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetFormat
CUresult cuTexRefSetFormat(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetMaxAnisotropy
CUresult cuTexRefSetMaxAnisotropy(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetMipmapFilterMode
CUresult cuTexRefSetMipmapFilterMode(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetMipmapLevelBias
CUresult cuTexRefSetMipmapLevelBias(void) { return 34; }
#endif

#ifndef KVG_WITHOUT_cuTexRefSetMipmapLevelClamp
CUresult cuTexRefSetMipmapLevelClamp(void) { return 34; }
#endif
