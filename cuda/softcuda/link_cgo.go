//go:build cgo && linux

package softcuda

/*
#include <stdlib.h>
#include "soft.h"
*/
import "C"

import (
	"os"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

func doModuleLoad(out *C.CUmodule, path *C.char) C.CUresult {
	src, err := os.ReadFile(C.GoString(path))
	if err != nil {
		return fail(301) // CUDA_ERROR_FILE_NOT_FOUND
	}
	text := C.CBytes(append(src, 0))
	defer C.free(text)
	return doModuleLoadData(out, text)
}

// softLink is a linker that takes one image of PTX, and makes that.
type softLink struct {
	c     *softContext
	image unsafe.Pointer // C memory; nil: none yet
	size  C.size_t
}

func doLinkCreateV2(n C.uint, options *C.int, values *unsafe.Pointer, state *C.CUlinkState) C.CUresult {
	c, r := current()
	if c == nil {
		return r
	}
	*state = C.CUlinkState(register(&softLink{c: c}))
	return 0
}

func doLinkAddDataV2(state C.CUlinkState, kind C.int, data unsafe.Pointer, size C.size_t, name *C.char, n C.uint, options *C.int, values *unsafe.Pointer) C.CUresult {
	const ptx = 1 // CU_JIT_INPUT_PTX
	l, ok := lookup[*softLink](uint64(state))
	switch {
	case !ok:
		return fail(cuda.ErrInvalidHandle)
	case kind != ptx || l.image != nil:
		return fail(cuda.ErrNotSupported)
	}
	text := append(C.GoBytes(data, C.int(size)), 0)
	l.image, l.size = C.CBytes(text), C.size_t(len(text))
	return 0
}

func doLinkComplete(state C.CUlinkState, image *unsafe.Pointer, size *C.size_t) C.CUresult {
	l, ok := lookup[*softLink](uint64(state))
	switch {
	case !ok:
		return fail(cuda.ErrInvalidHandle)
	case l.image == nil:
		return fail(cuda.ErrInvalidValue)
	}
	*image, *size = l.image, l.size
	return 0
}

func doLinkDestroy(state C.CUlinkState) C.CUresult {
	l, ok := lookup[*softLink](uint64(state))
	if !ok {
		return fail(cuda.ErrInvalidHandle)
	}
	unregister(uint64(state))
	C.free(l.image)
	return 0
}
