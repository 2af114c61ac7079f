//go:build cgo && linux

package softcuda

/*
#include <stdlib.h>
#include "soft.h"
*/
import "C"

import (
	"errors"
	"sync"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

func fail(c cuda.Code) C.CUresult { return C.CUresult(c) }

// result is the driver's result for an error of the simulator.
func result(err error) C.CUresult {
	if err == nil {
		return 0
	}
	var c cuda.Code
	switch {
	case errors.As(err, &c):
		return fail(c)
	case errors.Is(err, cuda.ErrClosed), errors.Is(err, vtime.ErrClosed):
		return fail(cuda.ErrContextDestroyed)
	}
	return fail(cuda.ErrUnknown)
}

// texts are the names of results as C strings, which live on.
var texts sync.Map

func text(code C.int) *C.char {
	name := cuda.Code(code).String()
	if name[len(name)-1] == ')' { // a number in place of a name
		return nil
	}
	if s, ok := texts.Load(code); ok {
		return s.(*C.char)
	}
	s, _ := texts.LoadOrStore(code, C.CString(name))
	return s.(*C.char)
}

func doGetErrorName(code C.int, name **C.char) C.CUresult {
	if *name = text(code); *name == nil {
		return fail(cuda.ErrInvalidValue)
	}
	return 0
}
