//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/abi"
)

func doInit(flags C.uint) C.CUresult {
	if flags != 0 {
		return fail(cuda.ErrInvalidValue)
	}
	machine.Lock()
	defer machine.Unlock()
	for _, d := range machine.devices {
		if d != nil {
			machine.started = true
			return 0
		}
	}
	return fail(cuda.ErrNoDevice)
}

func doDriverGetVersion(version *C.int) C.CUresult {
	*version = C.int(machine.version.Load())
	return 0
}

func doKvgateSimulated(yes *C.int) C.CUresult {
	*yes = 1
	return 0
}

// newest returns the newest symbol of that name that a program of that CUDA
// version knows.
func newest(base string, version int) (string, bool) {
	name, since := "", -1
	for _, s := range abi.Symbols() {
		if s.Base() == base && s.Since <= version && s.Since > since {
			name, since = s.Name, s.Since
		}
	}
	return name, since >= 0
}

func doGetProcAddressV2(symbol *C.char, fn *unsafe.Pointer, version C.int, flags C.uint64_t, status *C.int) C.CUresult {
	const found, missing = 0, 1 // CU_GET_PROC_ADDRESS_*
	*fn = nil
	state := C.int(missing)
	if name, ok := newest(C.GoString(symbol), int(version)); ok {
		if p, err := (Library{}).Symbol(name); err == nil {
			*fn, state = p, found
		}
	}
	if status != nil {
		*status = state
	}
	return 0
}

func doDeviceGetCount(count *C.int) C.CUresult {
	if !started() {
		return fail(cuda.ErrNotInitialized)
	}
	machine.RLock()
	defer machine.RUnlock()
	*count = C.int(len(machine.devices))
	return 0
}

func doDeviceGet(device *C.CUdevice, ordinal C.int) C.CUresult {
	if !started() {
		return fail(cuda.ErrNotInitialized)
	}
	if deviceOf(C.CUdevice(ordinal)) == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	*device = C.CUdevice(ordinal)
	return 0
}

// put writes a string and its zero into n bytes, cut where it is longer.
func put(dst *C.char, n C.int, s string) {
	if n <= 0 {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(dst)), int(n))
	b[copy(b[:n-1], s)] = 0
}

func doDeviceGetName(name *C.char, n C.int, device C.CUdevice) C.CUresult {
	d := deviceOf(device)
	if d == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	put(name, n, "kvgate simulated GPU "+d.info.Name)
	return 0
}

// busBits is the width of an H100's memory bus (vendor data); the clock is made
// to give the simulated bandwidth with it.
const busBits = 5120

func doDeviceGetAttribute(value *C.int, attribute C.int, device C.CUdevice) C.CUresult {
	d := deviceOf(device)
	if d == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	i := &d.info
	v := 0
	switch attribute { // CU_DEVICE_ATTRIBUTE_*: numbers of the driver API
	case 1:
		v = i.MaxThreads
	case 2, 3, 4:
		v = int(i.MaxBlock[attribute-2])
	case 5, 6, 7:
		v = int(i.MaxGrid[attribute-5])
	case 8: // shared memory of a block
		v = int(i.SharedMemory)
	case 97: // the same, on request
		v = int(i.SharedOptIn)
	case 92, 98: // writes of words and waits for them, flush of remote writes
		v = 1
	case 9: // constant memory
		v = 64 << 10
	case 10: // warp
		v = 32
	case 12: // registers of a block
		v = 64 << 10
	case 13: // clock, kHz
		v = 1_755_000
	case 16:
		v = i.SMs
	case 19, 31, 41, 83: // can map host memory, concurrent kernels, unified addressing, managed memory
		v = 1
	case 33: // PCI bus
		v = 1 + d.ordinal
	case 36:
		v = int(i.Bandwidth / (1000 * 2 * busBits / 8))
	case 37:
		v = busBits
	case 39: // threads of a multiprocessor
		v = 2048
	case 40: // copy engines
		v = 2
	case 75, 76:
		v = i.Capability[attribute-75]
	case 78, 116, 117: // stream priorities, GPUDirect RDMA, its flush from the host
		v = 1
	case 89: // the host may touch managed memory while the device works
		if i.ConcurrentManaged {
			v = 1
		}
	case 118: // what a NIC writes is visible to all at once, or not until flushed
		if v = 200; d.o.NICWritesLate {
			v = 0
		}
	default:
		if attribute <= 0 || attribute > 200 {
			return fail(cuda.ErrInvalidValue)
		}
	}
	*value = C.int(v)
	return 0
}

func doDeviceTotalMemV2(bytes *C.size_t, device C.CUdevice) C.CUresult {
	d := deviceOf(device)
	if d == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	*bytes = C.size_t(d.info.Memory)
	return 0
}

func doDeviceGetUuidV2(uuid *C.CUuuid, device C.CUdevice) C.CUresult {
	if deviceOf(device) == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	var b [16]byte
	copy(b[:], "kvgate-sim")
	binary.BigEndian.PutUint32(b[12:], uint32(device))
	*uuid = *(*C.CUuuid)(unsafe.Pointer(&b))
	return 0
}

func doDeviceGetUuid(uuid *C.CUuuid, device C.CUdevice) C.CUresult {
	return doDeviceGetUuidV2(uuid, device)
}

func busID(ordinal int) string { return fmt.Sprintf("0000:%02X:00.0", 1+ordinal) }

func doDeviceGetPCIBusId(id *C.char, n C.int, device C.CUdevice) C.CUresult {
	if deviceOf(device) == nil {
		return fail(cuda.ErrInvalidDevice)
	}
	put(id, n, busID(int(device)))
	return 0
}
