//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import (
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// place is one side of a copy: memory of a context, or plain host memory.
type place struct {
	addr uint64
	host unsafe.Pointer // nil: the address is a context's
}

// at makes a place of a pointer that may be either.
func at(p unsafe.Pointer) place {
	if _, ok := find(uint64(uintptr(p))); ok {
		return place{addr: uint64(uintptr(p))}
	}
	return place{addr: uint64(uintptr(p)), host: p}
}

func onDevice(p C.CUdeviceptr) place { return place{addr: uint64(p)} }

func (p place) bytes(n C.size_t) []byte { return unsafe.Slice((*byte)(p.host), int(n)) }

// copyIn puts a copy into a stream.
func copyIn(h C.CUstream, dst, src place, n C.size_t) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	if n == 0 {
		return 0
	}
	if dst.host == nil && src.host == nil {
		return s.submit(func(b *cuda.Batch, h cuda.Stream) {
			b.Copy(h, cuda.DevicePtr(dst.addr), cuda.DevicePtr(src.addr), uint64(n))
		})
	}
	return s.copyPageable(dst, src, n)
}

// copyNow is a blocking copy: it is in the legacy stream, and over when it
// returns.
func copyNow(dst, src place, n C.size_t) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	if r := c.safe(); r != 0 {
		return r
	}
	if r := copyIn(0, dst, src, n); r != 0 || n == 0 {
		return r
	}
	return doStreamSynchronize(0)
}

// anywhere tells memory of a context from plain host memory by its address.
func anywhere(p C.CUdeviceptr) place {
	if _, ok := find(uint64(p)); ok {
		return place{addr: uint64(p)}
	}
	return place{addr: uint64(p), host: *(*unsafe.Pointer)(unsafe.Pointer(&p))}
}

func doMemcpyAsync(dst, src C.CUdeviceptr, n C.size_t, h C.CUstream) C.CUresult {
	return copyIn(h, anywhere(dst), anywhere(src), n)
}

func doMemcpyHtoDV2(dst C.CUdeviceptr, src unsafe.Pointer, n C.size_t) C.CUresult {
	return copyNow(onDevice(dst), at(src), n)
}

func doMemcpyDtoHV2(dst unsafe.Pointer, src C.CUdeviceptr, n C.size_t) C.CUresult {
	return copyNow(at(dst), onDevice(src), n)
}

func doMemcpyDtoDV2(dst, src C.CUdeviceptr, n C.size_t) C.CUresult {
	return copyNow(onDevice(dst), onDevice(src), n)
}

func doMemcpyHtoDAsyncV2(dst C.CUdeviceptr, src unsafe.Pointer, n C.size_t, h C.CUstream) C.CUresult {
	return copyIn(h, onDevice(dst), at(src), n)
}

func doMemcpyDtoHAsyncV2(dst unsafe.Pointer, src C.CUdeviceptr, n C.size_t, h C.CUstream) C.CUresult {
	return copyIn(h, at(dst), onDevice(src), n)
}

func doMemcpyDtoDAsyncV2(dst, src C.CUdeviceptr, n C.size_t, h C.CUstream) C.CUresult {
	return copyIn(h, onDevice(dst), onDevice(src), n)
}

// fill puts n elements of 1, 2 or 4 bytes, given as their log2, into a stream.
func fill(h C.CUstream, dst C.CUdeviceptr, log2 uint8, value uint32, n C.size_t) C.CUresult {
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	return s.submit(func(b *cuda.Batch, h cuda.Stream) {
		b.Fill8(h, cuda.DevicePtr(dst), uint8(value), uint64(n))
		last := &b.Commands()[b.Len()-1]
		last.Flags, last.B = log2, uint64(value)
	})
}

func doMemsetD8Async(dst C.CUdeviceptr, v C.uchar, n C.size_t, h C.CUstream) C.CUresult {
	return fill(h, dst, 0, uint32(v), n)
}

func doMemsetD16Async(dst C.CUdeviceptr, v C.ushort, n C.size_t, h C.CUstream) C.CUresult {
	return fill(h, dst, 1, uint32(v), n)
}

func doMemsetD32Async(dst C.CUdeviceptr, v C.uint, n C.size_t, h C.CUstream) C.CUresult {
	return fill(h, dst, 2, uint32(v), n)
}

// A fill of rows is a fill for each, unless they lie without gaps. All of them
// are in the stream, or none.
func doMemsetD2D32Async(dst C.CUdeviceptr, pitch C.size_t, v C.uint, width, height C.size_t, h C.CUstream) C.CUresult {
	const maxRows = 1 << 20 // each is a command of 64 bytes
	a, ok := find(uint64(dst))
	if width == 0 || height == 0 {
		return 0
	}
	row, span := uint64(width)*4, uint64(height-1)*uint64(pitch)
	if !ok || dst%4 != 0 || pitch%4 != 0 || width > maxRange || height > maxRows || pitch > maxRange ||
		uint64(pitch) < row && height > 1 || span+row > a.size-(uint64(dst)-a.base) {
		return fail(cuda.ErrInvalidValue)
	}
	if uint64(pitch) == row || height == 1 {
		return fill(h, dst, 2, uint32(v), width*height)
	}
	s, r := streamOf(h)
	if s == nil {
		return r
	}
	return s.submit(func(b *cuda.Batch, h cuda.Stream) {
		for i := range uint64(height) {
			b.Fill32(h, cuda.DevicePtr(uint64(dst)+i*uint64(pitch)), uint32(v), uint64(width))
		}
	})
}

// maxRange bounds sizes before they are multiplied.
const maxRange = 1 << 40

func doMemsetD8V2(dst C.CUdeviceptr, v C.uchar, n C.size_t) C.CUresult {
	return fill(0, dst, 0, uint32(v), n)
}

func doMemsetD32V2(dst C.CUdeviceptr, v C.uint, n C.size_t) C.CUresult {
	return fill(0, dst, 2, uint32(v), n)
}
