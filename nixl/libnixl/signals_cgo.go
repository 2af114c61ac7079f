//go:build cgo && linux

package libnixl

/*
#include "shim.h"
*/
import "C"

import (
	"runtime"
)

func (n *native) guard(fn func()) []int {
	return guardSignals(fn)
}

// guardSignals runs fn and then puts back the signal handlers that fn replaced.
// Go's runtime needs its own: they run on the alternate stack, and faults of Go
// code come to it as signals.
func guardSignals(fn func()) (restored []int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	saved := C.kvg_signals_save()
	defer func() {
		var which C.uint64_t
		C.kvg_signals_restore(saved, &which)
		for i := range 64 {
			if which>>i&1 != 0 {
				restored = append(restored, i+1)
			}
		}
	}()
	fn()
	return nil
}
