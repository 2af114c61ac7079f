// Code generated from internal/abi/driver.abi by internal/abi/internal/mkabi. DO NOT EDIT.

#ifndef KVG_ABI_GEN_H
#define KVG_ABI_GEN_H

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

// The functions of a driver; one that it lacks is NULL. The order is that of
// the list.
typedef struct {
	CUresult (*cuInit)(unsigned int flags);
	CUresult (*cuDriverGetVersion)(int *version);
	CUresult (*cuGetErrorName)(int error, const char **name);
	CUresult (*cuDeviceGet)(CUdevice *device, int ordinal);
	CUresult (*cuDeviceGetCount)(int *count);
	CUresult (*cuDeviceGetName)(char *name, int len, CUdevice device);
	CUresult (*cuDeviceGetAttribute)(int *value, int attribute, CUdevice device);
	CUresult (*cuDeviceTotalMem_v2)(size_t *bytes, CUdevice device);
	CUresult (*cuDeviceGetUuid_v2)(CUuuid *uuid, CUdevice device);
	CUresult (*cuDeviceGetPCIBusId)(char *id, int len, CUdevice device);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *context, CUdevice device);
	CUresult (*cuDevicePrimaryCtxRelease_v2)(CUdevice device);
	CUresult (*cuCtxPushCurrent_v2)(CUcontext context);
	CUresult (*cuCtxPopCurrent_v2)(CUcontext *context);
	CUresult (*cuCtxGetDevice)(CUdevice *device);
	CUresult (*cuCtxSynchronize)(void);
	CUresult (*cuCtxGetStreamPriorityRange)(int *least, int *greatest);
	CUresult (*cuCtxGetFlags)(unsigned int *flags);
	CUresult (*cuCtxSetFlags)(unsigned int flags);
	CUresult (*cuDeviceCanAccessPeer)(int *can, CUdevice device, CUdevice peer);
	CUresult (*cuCtxEnablePeerAccess)(CUcontext peer, unsigned int flags);
	CUresult (*cuCtxDisablePeerAccess)(CUcontext peer);
	CUresult (*cuModuleLoadDataEx)(CUmodule *module, const void *image, unsigned int n, int *options, void **values);
	CUresult (*cuModuleUnload)(CUmodule module);
	CUresult (*cuModuleGetFunction)(CUfunction *function, CUmodule module, const char *name);
	CUresult (*cuFuncGetAttribute)(int *value, int attribute, CUfunction function);
	CUresult (*cuFuncSetAttribute)(CUfunction function, int attribute, int value);
	CUresult (*cuFuncLoad)(CUfunction function);
	CUresult (*cuFuncGetParamInfo)(CUfunction function, size_t index, size_t *offset, size_t *size);
	CUresult (*cuLaunchKernel)(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *ptr, size_t size);
	CUresult (*cuMemFree_v2)(CUdeviceptr ptr);
	CUresult (*cuMemHostAlloc)(void **ptr, size_t size, unsigned int flags);
	CUresult (*cuMemFreeHost)(void *ptr);
	CUresult (*cuMemHostGetDevicePointer_v2)(CUdeviceptr *device, void *host, unsigned int flags);
	CUresult (*cuMemAllocManaged)(CUdeviceptr *ptr, size_t size, unsigned int flags);
	CUresult (*cuMemHostRegister_v2)(void *host, size_t size, unsigned int flags);
	CUresult (*cuMemHostUnregister)(void *host);
	CUresult (*cuMemGetAddressRange_v2)(CUdeviceptr *base, size_t *size, CUdeviceptr ptr);
	CUresult (*cuPointerGetAttributes)(unsigned int n, int *attributes, void **values, CUdeviceptr ptr);
	CUresult (*cuPointerSetAttribute)(const void *value, int attribute, CUdeviceptr ptr);
	CUresult (*cuFlushGPUDirectRDMAWrites)(int target, int scope);
	CUresult (*cuMemcpyAsync)(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
	CUresult (*cuMemcpyHtoDAsync_v2)(CUdeviceptr dst, const void *src, size_t size, CUstream stream);
	CUresult (*cuMemcpyDtoHAsync_v2)(void *dst, CUdeviceptr src, size_t size, CUstream stream);
	CUresult (*cuMemsetD8Async)(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream);
	CUresult (*cuMemsetD16Async)(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream);
	CUresult (*cuMemsetD32Async)(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream);
	CUresult (*cuMemsetD2D32Async)(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream);
	CUresult (*cuIpcGetMemHandle)(CUipcMemHandle *handle, CUdeviceptr ptr);
	CUresult (*cuIpcOpenMemHandle_v2)(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags);
	CUresult (*cuIpcCloseMemHandle)(CUdeviceptr ptr);
	CUresult (*cuStreamCreateWithPriority)(CUstream *stream, unsigned int flags, int priority);
	CUresult (*cuStreamDestroy_v2)(CUstream stream);
	CUresult (*cuStreamSynchronize)(CUstream stream);
	CUresult (*cuStreamIsCapturing)(CUstream stream, int *status);
	CUresult (*cuThreadExchangeStreamCaptureMode)(int *mode);
	CUresult (*cuStreamGetCtx)(CUstream stream, CUcontext *context);
	CUresult (*cuStreamGetPriority)(CUstream stream, int *priority);
	CUresult (*cuStreamWaitEvent)(CUstream stream, CUevent event, unsigned int flags);
	CUresult (*cuStreamWriteValue32_v2)(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
	CUresult (*cuStreamWaitValue32_v2)(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
	CUresult (*cuLaunchHostFunc)(CUstream stream, CUhostFn fn, void *arg);
	CUresult (*cuStreamBeginCapture_v2)(CUstream stream, int mode);
	CUresult (*cuStreamEndCapture)(CUstream stream, CUgraph *graph);
	CUresult (*cuGraphGetNodes)(CUgraph graph, CUgraphNode *nodes, size_t *n);
	CUresult (*cuGraphInstantiateWithFlags)(CUgraphExec *exec, CUgraph graph, uint64_t flags);
	CUresult (*cuGraphLaunch)(CUgraphExec exec, CUstream stream);
	CUresult (*cuGraphDestroy)(CUgraph graph);
	CUresult (*cuGraphExecDestroy)(CUgraphExec exec);
	CUresult (*cuEventCreate)(CUevent *event, unsigned int flags);
	CUresult (*cuEventDestroy_v2)(CUevent event);
	CUresult (*cuEventRecord)(CUevent event, CUstream stream);
	CUresult (*cuEventQuery)(CUevent event);
	CUresult (*cuEventSynchronize)(CUevent event);
	CUresult (*kvgateSimulated)(int *simulated);
} kvg_table;

enum { KVG_SLOTS = 76 };

#endif
