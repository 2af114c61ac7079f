//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/kvgate/kvgate/cuda"
)

// FillRows puts into s a fill of rows of width 32-bit words with v, each row
// pitch bytes behind the one before, in one crossing. It is the driver's own way
// to clear one strided segment, to measure kernels against; package kernels
// clears any number of them, and the gate does not use it.
//
// It returns [cuda.ErrInvalidValue] where dst or pitch is no multiple of 4, rows
// overlap, or not all of them are memory of the driver's, and [cuda.ErrNotSupported]
// where the driver lacks cuMemsetD2D32Async. No rows, or no words, are no fill.
func (d *Device) FillRows(s cuda.Stream, dst cuda.DevicePtr, pitch uint64, v uint32, width, rows uint64) error {
	const op = "fill rows"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	detail := fmt.Sprintf("%d rows of %d words, %d bytes apart, at %#x", rows, width, pitch, uint64(dst))
	invalid := func(why string) error {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: detail + ": " + why}
	}
	high, _ := bits.Mul64(rows, pitch)
	switch {
	case dst%4 != 0 || pitch%4 != 0:
		return invalid("address or distance is no multiple of 4")
	case width > math.MaxUint64/8 || rows > 1 && 4*width > pitch:
		return invalid("rows overlap")
	case high != 0:
		return invalid("more than the address space")
	case rows == 0 || width == 0:
		return nil
	}
	r := C.kvg_fill_rows(d.c, C.uint64_t(s), C.uint64_t(dst), C.uint64_t(max(pitch, 4*width)), C.uint32_t(v), C.uint64_t(width), C.uint64_t(rows))
	if r.why == C.KVG_OK {
		return nil
	}
	return d.lacking(op, r, detail, "cuMemsetD2D32Async")
}
