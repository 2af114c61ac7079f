// Code generated from internal/abi/driver.abi by internal/abi/internal/mkabi. DO NOT EDIT.

//go:build cgo && linux

package softcuda

/*
#include "abi_gen.h"
*/
import "C"

import "unsafe"

//export kvg_soft_cuInit
func kvg_soft_cuInit(p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doInit(p_flags)
}

//export kvg_soft_cuDriverGetVersion
func kvg_soft_cuDriverGetVersion(p_version *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDriverGetVersion(p_version)
}

//export kvg_soft_cuGetErrorName
func kvg_soft_cuGetErrorName(p_error C.int, p_name **C.char) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doGetErrorName(p_error, p_name)
}

//export kvg_soft_cuGetProcAddress_v2
func kvg_soft_cuGetProcAddress_v2(p_symbol *C.char, p_fn *unsafe.Pointer, p_version C.int, p_flags C.uint64_t, p_status *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doGetProcAddressV2(p_symbol, p_fn, p_version, p_flags, p_status)
}

//export kvg_soft_cuDeviceGet
func kvg_soft_cuDeviceGet(p_device *C.CUdevice, p_ordinal C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceGet(p_device, p_ordinal)
}

//export kvg_soft_cuDeviceGetCount
func kvg_soft_cuDeviceGetCount(p_count *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceGetCount(p_count)
}

//export kvg_soft_cuDeviceGetName
func kvg_soft_cuDeviceGetName(p_name *C.char, p_len C.int, p_device C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceGetName(p_name, p_len, p_device)
}

//export kvg_soft_cuDeviceGetAttribute
func kvg_soft_cuDeviceGetAttribute(p_value *C.int, p_attribute C.int, p_device C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceGetAttribute(p_value, p_attribute, p_device)
}

//export kvg_soft_cuDeviceTotalMem_v2
func kvg_soft_cuDeviceTotalMem_v2(p_bytes *C.size_t, p_device C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceTotalMemV2(p_bytes, p_device)
}

//export kvg_soft_cuDeviceGetUuid_v2
func kvg_soft_cuDeviceGetUuid_v2(p_uuid *C.CUuuid, p_device C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceGetUuidV2(p_uuid, p_device)
}

//export kvg_soft_cuDeviceGetUuid
func kvg_soft_cuDeviceGetUuid(p_uuid *C.CUuuid, p_device C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceGetUuid(p_uuid, p_device)
}

//export kvg_soft_cuDeviceGetPCIBusId
func kvg_soft_cuDeviceGetPCIBusId(p_id *C.char, p_len C.int, p_device C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceGetPCIBusId(p_id, p_len, p_device)
}

//export kvg_soft_cuDevicePrimaryCtxRetain
func kvg_soft_cuDevicePrimaryCtxRetain(p_context *C.CUcontext, p_device C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDevicePrimaryCtxRetain(p_context, p_device)
}

//export kvg_soft_cuDevicePrimaryCtxRelease_v2
func kvg_soft_cuDevicePrimaryCtxRelease_v2(p_device C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDevicePrimaryCtxReleaseV2(p_device)
}

//export kvg_soft_cuCtxPushCurrent_v2
func kvg_soft_cuCtxPushCurrent_v2(p_context C.CUcontext) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxPushCurrentV2(p_context)
}

//export kvg_soft_cuCtxPopCurrent_v2
func kvg_soft_cuCtxPopCurrent_v2(p_context *C.CUcontext) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxPopCurrentV2(p_context)
}

//export kvg_soft_cuCtxGetDevice
func kvg_soft_cuCtxGetDevice(p_device *C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxGetDevice(p_device)
}

//export kvg_soft_cuCtxSynchronize
func kvg_soft_cuCtxSynchronize() C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxSynchronize()
}

//export kvg_soft_cuCtxGetStreamPriorityRange
func kvg_soft_cuCtxGetStreamPriorityRange(p_least *C.int, p_greatest *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxGetStreamPriorityRange(p_least, p_greatest)
}

//export kvg_soft_cuCtxGetCurrent
func kvg_soft_cuCtxGetCurrent(p_context *C.CUcontext) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxGetCurrent(p_context)
}

//export kvg_soft_cuCtxSetCurrent
func kvg_soft_cuCtxSetCurrent(p_context C.CUcontext) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxSetCurrent(p_context)
}

//export kvg_soft_cuCtxCreate_v2
func kvg_soft_cuCtxCreate_v2(p_context *C.CUcontext, p_flags C.uint, p_device C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxCreateV2(p_context, p_flags, p_device)
}

//export kvg_soft_cuCtxDestroy_v2
func kvg_soft_cuCtxDestroy_v2(p_context C.CUcontext) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxDestroyV2(p_context)
}

//export kvg_soft_cuCtxGetApiVersion
func kvg_soft_cuCtxGetApiVersion(p_context C.CUcontext, p_version *C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxGetApiVersion(p_context, p_version)
}

//export kvg_soft_cuCtxGetFlags
func kvg_soft_cuCtxGetFlags(p_flags *C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxGetFlags(p_flags)
}

//export kvg_soft_cuCtxSetFlags
func kvg_soft_cuCtxSetFlags(p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxSetFlags(p_flags)
}

//export kvg_soft_cuCtxGetLimit
func kvg_soft_cuCtxGetLimit(p_value *C.size_t, p_limit C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxGetLimit(p_value, p_limit)
}

//export kvg_soft_cuCtxSetLimit
func kvg_soft_cuCtxSetLimit(p_limit C.int, p_value C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxSetLimit(p_limit, p_value)
}

//export kvg_soft_cuCtxGetCacheConfig
func kvg_soft_cuCtxGetCacheConfig(p_config *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxGetCacheConfig(p_config)
}

//export kvg_soft_cuCtxSetCacheConfig
func kvg_soft_cuCtxSetCacheConfig(p_config C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxSetCacheConfig(p_config)
}

//export kvg_soft_cuCtxGetSharedMemConfig
func kvg_soft_cuCtxGetSharedMemConfig(p_config *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxGetSharedMemConfig(p_config)
}

//export kvg_soft_cuCtxSetSharedMemConfig
func kvg_soft_cuCtxSetSharedMemConfig(p_config C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxSetSharedMemConfig(p_config)
}

//export kvg_soft_cuDeviceCanAccessPeer
func kvg_soft_cuDeviceCanAccessPeer(p_can *C.int, p_device C.CUdevice, p_peer C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceCanAccessPeer(p_can, p_device, p_peer)
}

//export kvg_soft_cuCtxEnablePeerAccess
func kvg_soft_cuCtxEnablePeerAccess(p_peer C.CUcontext, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxEnablePeerAccess(p_peer, p_flags)
}

//export kvg_soft_cuCtxDisablePeerAccess
func kvg_soft_cuCtxDisablePeerAccess(p_peer C.CUcontext) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doCtxDisablePeerAccess(p_peer)
}

//export kvg_soft_cuDeviceGetP2PAttribute
func kvg_soft_cuDeviceGetP2PAttribute(p_value *C.int, p_attribute C.int, p_from C.CUdevice, p_to C.CUdevice) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doDeviceGetP2PAttribute(p_value, p_attribute, p_from, p_to)
}

//export kvg_soft_cuMemcpyPeer
func kvg_soft_cuMemcpyPeer(p_dst C.CUdeviceptr, p_to C.CUcontext, p_src C.CUdeviceptr, p_from C.CUcontext, p_size C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemcpyPeer(p_dst, p_to, p_src, p_from, p_size)
}

//export kvg_soft_cuMemcpyPeerAsync
func kvg_soft_cuMemcpyPeerAsync(p_dst C.CUdeviceptr, p_to C.CUcontext, p_src C.CUdeviceptr, p_from C.CUcontext, p_size C.size_t, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemcpyPeerAsync(p_dst, p_to, p_src, p_from, p_size, p_stream)
}

//export kvg_soft_cuModuleLoadDataEx
func kvg_soft_cuModuleLoadDataEx(p_module *C.CUmodule, p_image unsafe.Pointer, p_n C.uint, p_options *C.int, p_values *unsafe.Pointer) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doModuleLoadDataEx(p_module, p_image, p_n, p_options, p_values)
}

//export kvg_soft_cuModuleLoadData
func kvg_soft_cuModuleLoadData(p_module *C.CUmodule, p_image unsafe.Pointer) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doModuleLoadData(p_module, p_image)
}

//export kvg_soft_cuModuleLoad
func kvg_soft_cuModuleLoad(p_module *C.CUmodule, p_path *C.char) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doModuleLoad(p_module, p_path)
}

//export kvg_soft_cuLinkCreate_v2
func kvg_soft_cuLinkCreate_v2(p_n C.uint, p_options *C.int, p_values *unsafe.Pointer, p_state *C.CUlinkState) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doLinkCreateV2(p_n, p_options, p_values, p_state)
}

//export kvg_soft_cuLinkAddData_v2
func kvg_soft_cuLinkAddData_v2(p_state C.CUlinkState, p_type C.int, p_data unsafe.Pointer, p_size C.size_t, p_name *C.char, p_n C.uint, p_options *C.int, p_values *unsafe.Pointer) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doLinkAddDataV2(p_state, p_type, p_data, p_size, p_name, p_n, p_options, p_values)
}

//export kvg_soft_cuLinkComplete
func kvg_soft_cuLinkComplete(p_state C.CUlinkState, p_image *unsafe.Pointer, p_size *C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doLinkComplete(p_state, p_image, p_size)
}

//export kvg_soft_cuLinkDestroy
func kvg_soft_cuLinkDestroy(p_state C.CUlinkState) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doLinkDestroy(p_state)
}

//export kvg_soft_cuModuleUnload
func kvg_soft_cuModuleUnload(p_module C.CUmodule) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doModuleUnload(p_module)
}

//export kvg_soft_cuModuleGetFunction
func kvg_soft_cuModuleGetFunction(p_function *C.CUfunction, p_module C.CUmodule, p_name *C.char) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doModuleGetFunction(p_function, p_module, p_name)
}

//export kvg_soft_cuFuncGetAttribute
func kvg_soft_cuFuncGetAttribute(p_value *C.int, p_attribute C.int, p_function C.CUfunction) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doFuncGetAttribute(p_value, p_attribute, p_function)
}

//export kvg_soft_cuFuncSetAttribute
func kvg_soft_cuFuncSetAttribute(p_function C.CUfunction, p_attribute C.int, p_value C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doFuncSetAttribute(p_function, p_attribute, p_value)
}

//export kvg_soft_cuFuncLoad
func kvg_soft_cuFuncLoad(p_function C.CUfunction) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doFuncLoad(p_function)
}

//export kvg_soft_cuFuncGetParamInfo
func kvg_soft_cuFuncGetParamInfo(p_function C.CUfunction, p_index C.size_t, p_offset *C.size_t, p_size *C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doFuncGetParamInfo(p_function, p_index, p_offset, p_size)
}

//export kvg_soft_cuLaunchKernel
func kvg_soft_cuLaunchKernel(p_f C.CUfunction, p_gx C.uint, p_gy C.uint, p_gz C.uint, p_bx C.uint, p_by C.uint, p_bz C.uint, p_shared C.uint, p_stream C.CUstream, p_params *unsafe.Pointer, p_extra *unsafe.Pointer) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doLaunchKernel(p_f, p_gx, p_gy, p_gz, p_bx, p_by, p_bz, p_shared, p_stream, p_params, p_extra)
}

//export kvg_soft_cuMemAlloc_v2
func kvg_soft_cuMemAlloc_v2(p_ptr *C.CUdeviceptr, p_size C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemAllocV2(p_ptr, p_size)
}

//export kvg_soft_cuMemFree_v2
func kvg_soft_cuMemFree_v2(p_ptr C.CUdeviceptr) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemFreeV2(p_ptr)
}

//export kvg_soft_cuMemHostAlloc
func kvg_soft_cuMemHostAlloc(p_ptr *unsafe.Pointer, p_size C.size_t, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemHostAlloc(p_ptr, p_size, p_flags)
}

//export kvg_soft_cuMemFreeHost
func kvg_soft_cuMemFreeHost(p_ptr unsafe.Pointer) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemFreeHost(p_ptr)
}

//export kvg_soft_cuMemHostGetDevicePointer_v2
func kvg_soft_cuMemHostGetDevicePointer_v2(p_device *C.CUdeviceptr, p_host unsafe.Pointer, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemHostGetDevicePointerV2(p_device, p_host, p_flags)
}

//export kvg_soft_cuMemAllocManaged
func kvg_soft_cuMemAllocManaged(p_ptr *C.CUdeviceptr, p_size C.size_t, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemAllocManaged(p_ptr, p_size, p_flags)
}

//export kvg_soft_cuMemHostRegister_v2
func kvg_soft_cuMemHostRegister_v2(p_host unsafe.Pointer, p_size C.size_t, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemHostRegisterV2(p_host, p_size, p_flags)
}

//export kvg_soft_cuMemHostUnregister
func kvg_soft_cuMemHostUnregister(p_host unsafe.Pointer) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemHostUnregister(p_host)
}

//export kvg_soft_cuMemGetInfo_v2
func kvg_soft_cuMemGetInfo_v2(p_free *C.size_t, p_total *C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemGetInfoV2(p_free, p_total)
}

//export kvg_soft_cuMemGetAddressRange_v2
func kvg_soft_cuMemGetAddressRange_v2(p_base *C.CUdeviceptr, p_size *C.size_t, p_ptr C.CUdeviceptr) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemGetAddressRangeV2(p_base, p_size, p_ptr)
}

//export kvg_soft_cuPointerGetAttributes
func kvg_soft_cuPointerGetAttributes(p_n C.uint, p_attributes *C.int, p_values *unsafe.Pointer, p_ptr C.CUdeviceptr) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doPointerGetAttributes(p_n, p_attributes, p_values, p_ptr)
}

//export kvg_soft_cuPointerSetAttribute
func kvg_soft_cuPointerSetAttribute(p_value unsafe.Pointer, p_attribute C.int, p_ptr C.CUdeviceptr) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doPointerSetAttribute(p_value, p_attribute, p_ptr)
}

//export kvg_soft_cuFlushGPUDirectRDMAWrites
func kvg_soft_cuFlushGPUDirectRDMAWrites(p_target C.int, p_scope C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doFlushGPUDirectRDMAWrites(p_target, p_scope)
}

//export kvg_soft_cuMemcpyAsync
func kvg_soft_cuMemcpyAsync(p_dst C.CUdeviceptr, p_src C.CUdeviceptr, p_size C.size_t, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemcpyAsync(p_dst, p_src, p_size, p_stream)
}

//export kvg_soft_cuMemcpyHtoD_v2
func kvg_soft_cuMemcpyHtoD_v2(p_dst C.CUdeviceptr, p_src unsafe.Pointer, p_size C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemcpyHtoDV2(p_dst, p_src, p_size)
}

//export kvg_soft_cuMemcpyDtoH_v2
func kvg_soft_cuMemcpyDtoH_v2(p_dst unsafe.Pointer, p_src C.CUdeviceptr, p_size C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemcpyDtoHV2(p_dst, p_src, p_size)
}

//export kvg_soft_cuMemcpyDtoD_v2
func kvg_soft_cuMemcpyDtoD_v2(p_dst C.CUdeviceptr, p_src C.CUdeviceptr, p_size C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemcpyDtoDV2(p_dst, p_src, p_size)
}

//export kvg_soft_cuMemcpyHtoDAsync_v2
func kvg_soft_cuMemcpyHtoDAsync_v2(p_dst C.CUdeviceptr, p_src unsafe.Pointer, p_size C.size_t, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemcpyHtoDAsyncV2(p_dst, p_src, p_size, p_stream)
}

//export kvg_soft_cuMemcpyDtoHAsync_v2
func kvg_soft_cuMemcpyDtoHAsync_v2(p_dst unsafe.Pointer, p_src C.CUdeviceptr, p_size C.size_t, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemcpyDtoHAsyncV2(p_dst, p_src, p_size, p_stream)
}

//export kvg_soft_cuMemcpyDtoDAsync_v2
func kvg_soft_cuMemcpyDtoDAsync_v2(p_dst C.CUdeviceptr, p_src C.CUdeviceptr, p_size C.size_t, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemcpyDtoDAsyncV2(p_dst, p_src, p_size, p_stream)
}

//export kvg_soft_cuMemsetD8Async
func kvg_soft_cuMemsetD8Async(p_dst C.CUdeviceptr, p_value C.uchar, p_n C.size_t, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemsetD8Async(p_dst, p_value, p_n, p_stream)
}

//export kvg_soft_cuMemsetD16Async
func kvg_soft_cuMemsetD16Async(p_dst C.CUdeviceptr, p_value C.ushort, p_n C.size_t, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemsetD16Async(p_dst, p_value, p_n, p_stream)
}

//export kvg_soft_cuMemsetD32Async
func kvg_soft_cuMemsetD32Async(p_dst C.CUdeviceptr, p_value C.uint, p_n C.size_t, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemsetD32Async(p_dst, p_value, p_n, p_stream)
}

//export kvg_soft_cuMemsetD2D32Async
func kvg_soft_cuMemsetD2D32Async(p_dst C.CUdeviceptr, p_pitch C.size_t, p_value C.uint, p_width C.size_t, p_height C.size_t, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemsetD2D32Async(p_dst, p_pitch, p_value, p_width, p_height, p_stream)
}

//export kvg_soft_cuMemsetD8_v2
func kvg_soft_cuMemsetD8_v2(p_dst C.CUdeviceptr, p_value C.uchar, p_n C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemsetD8V2(p_dst, p_value, p_n)
}

//export kvg_soft_cuMemsetD32_v2
func kvg_soft_cuMemsetD32_v2(p_dst C.CUdeviceptr, p_value C.uint, p_n C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doMemsetD32V2(p_dst, p_value, p_n)
}

//export kvg_soft_cuIpcGetMemHandle
func kvg_soft_cuIpcGetMemHandle(p_handle *C.CUipcMemHandle, p_ptr C.CUdeviceptr) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doIpcGetMemHandle(p_handle, p_ptr)
}

//export kvg_soft_cuIpcOpenMemHandle_v2
func kvg_soft_cuIpcOpenMemHandle_v2(p_ptr *C.CUdeviceptr, p_handle C.CUipcMemHandle, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doIpcOpenMemHandleV2(p_ptr, p_handle, p_flags)
}

//export kvg_soft_cuIpcCloseMemHandle
func kvg_soft_cuIpcCloseMemHandle(p_ptr C.CUdeviceptr) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doIpcCloseMemHandle(p_ptr)
}

//export kvg_soft_cuStreamCreateWithPriority
func kvg_soft_cuStreamCreateWithPriority(p_stream *C.CUstream, p_flags C.uint, p_priority C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamCreateWithPriority(p_stream, p_flags, p_priority)
}

//export kvg_soft_cuStreamCreate
func kvg_soft_cuStreamCreate(p_stream *C.CUstream, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamCreate(p_stream, p_flags)
}

//export kvg_soft_cuStreamDestroy_v2
func kvg_soft_cuStreamDestroy_v2(p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamDestroyV2(p_stream)
}

//export kvg_soft_cuStreamSynchronize
func kvg_soft_cuStreamSynchronize(p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamSynchronize(p_stream)
}

//export kvg_soft_cuStreamIsCapturing
func kvg_soft_cuStreamIsCapturing(p_stream C.CUstream, p_status *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamIsCapturing(p_stream, p_status)
}

//export kvg_soft_cuThreadExchangeStreamCaptureMode
func kvg_soft_cuThreadExchangeStreamCaptureMode(p_mode *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doThreadExchangeStreamCaptureMode(p_mode)
}

//export kvg_soft_cuStreamGetCtx
func kvg_soft_cuStreamGetCtx(p_stream C.CUstream, p_context *C.CUcontext) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamGetCtx(p_stream, p_context)
}

//export kvg_soft_cuStreamGetPriority
func kvg_soft_cuStreamGetPriority(p_stream C.CUstream, p_priority *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamGetPriority(p_stream, p_priority)
}

//export kvg_soft_cuStreamWaitEvent
func kvg_soft_cuStreamWaitEvent(p_stream C.CUstream, p_event C.CUevent, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamWaitEvent(p_stream, p_event, p_flags)
}

//export kvg_soft_cuStreamWriteValue32_v2
func kvg_soft_cuStreamWriteValue32_v2(p_stream C.CUstream, p_addr C.CUdeviceptr, p_value C.uint, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamWriteValue32V2(p_stream, p_addr, p_value, p_flags)
}

//export kvg_soft_cuStreamWaitValue32_v2
func kvg_soft_cuStreamWaitValue32_v2(p_stream C.CUstream, p_addr C.CUdeviceptr, p_value C.uint, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamWaitValue32V2(p_stream, p_addr, p_value, p_flags)
}

//export kvg_soft_cuLaunchHostFunc
func kvg_soft_cuLaunchHostFunc(p_stream C.CUstream, p_fn C.CUhostFn, p_arg unsafe.Pointer) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doLaunchHostFunc(p_stream, p_fn, p_arg)
}

//export kvg_soft_cuStreamBeginCapture_v2
func kvg_soft_cuStreamBeginCapture_v2(p_stream C.CUstream, p_mode C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamBeginCaptureV2(p_stream, p_mode)
}

//export kvg_soft_cuStreamEndCapture
func kvg_soft_cuStreamEndCapture(p_stream C.CUstream, p_graph *C.CUgraph) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doStreamEndCapture(p_stream, p_graph)
}

//export kvg_soft_cuGraphGetNodes
func kvg_soft_cuGraphGetNodes(p_graph C.CUgraph, p_nodes *C.CUgraphNode, p_n *C.size_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doGraphGetNodes(p_graph, p_nodes, p_n)
}

//export kvg_soft_cuGraphInstantiateWithFlags
func kvg_soft_cuGraphInstantiateWithFlags(p_exec *C.CUgraphExec, p_graph C.CUgraph, p_flags C.uint64_t) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doGraphInstantiateWithFlags(p_exec, p_graph, p_flags)
}

//export kvg_soft_cuGraphLaunch
func kvg_soft_cuGraphLaunch(p_exec C.CUgraphExec, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doGraphLaunch(p_exec, p_stream)
}

//export kvg_soft_cuGraphDestroy
func kvg_soft_cuGraphDestroy(p_graph C.CUgraph) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doGraphDestroy(p_graph)
}

//export kvg_soft_cuGraphExecDestroy
func kvg_soft_cuGraphExecDestroy(p_exec C.CUgraphExec) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doGraphExecDestroy(p_exec)
}

//export kvg_soft_cuEventCreate
func kvg_soft_cuEventCreate(p_event *C.CUevent, p_flags C.uint) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doEventCreate(p_event, p_flags)
}

//export kvg_soft_cuEventDestroy_v2
func kvg_soft_cuEventDestroy_v2(p_event C.CUevent) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doEventDestroyV2(p_event)
}

//export kvg_soft_cuEventRecord
func kvg_soft_cuEventRecord(p_event C.CUevent, p_stream C.CUstream) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doEventRecord(p_event, p_stream)
}

//export kvg_soft_cuEventQuery
func kvg_soft_cuEventQuery(p_event C.CUevent) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doEventQuery(p_event)
}

//export kvg_soft_cuEventSynchronize
func kvg_soft_cuEventSynchronize(p_event C.CUevent) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doEventSynchronize(p_event)
}

//export kvg_soft_kvgateSimulated
func kvg_soft_kvgateSimulated(p_simulated *C.int) C.CUresult {
	if r := forbidden(); r != 0 {
		return r
	}
	return doKvgateSimulated(p_simulated)
}
