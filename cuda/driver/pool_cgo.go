//go:build cgo && linux

package driver

/*
#include "pool.h"
*/
import "C"

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.StreamAllocator = (*Device)(nil)

// pool returns the driver's handle of a pool, 0 for the current one.
func (d *Device) pool(op string, p cuda.Pool) (C.uint64_t, error) {
	if p == 0 {
		return 0, nil
	}
	e, ok := d.find(C.KVG_POOL, uint64(p))
	if !ok {
		return 0, badHandle(op, "pool", uint64(p))
	}
	return C.uint64_t(e.raw), nil
}

// AllocAsync returns memory of a pool.
func (d *Device) AllocAsync(s cuda.Stream, size uint64, p cuda.Pool, o cuda.AllocOptions) (cuda.DevicePtr, error) {
	const op = "allocate in stream order"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	e, ok := d.find(C.KVG_STREAM, uint64(s))
	if !ok {
		return 0, badHandle(op, "stream", uint64(s))
	}
	pool, err := d.pool(op, p)
	if err != nil {
		return 0, err
	}
	if err := checkAlloc(op, size, o); err != nil {
		return 0, err
	}
	d.pooling.Store(true)
	var raw C.uint64_t
	if r := C.kvg_alloc_async(d.c, C.uint64_t(size), pool, C.uint64_t(e.raw), &raw); r.why != C.KVG_OK {
		symbol := "cuMemAllocAsync"
		if p != 0 {
			symbol = "cuMemAllocFromPoolAsync"
		}
		return 0, d.lacking(op, r, fmt.Sprintf("%d bytes for %q", size, o.Name), symbol)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pooled == nil {
		d.pooled = map[cuda.DevicePtr]string{}
	}
	d.pooled[cuda.DevicePtr(raw)] = o.Name
	return cuda.DevicePtr(raw), nil
}

// FreeAsync gives memory back to its pool, behind what is in the stream.
func (d *Device) FreeAsync(s cuda.Stream, p cuda.DevicePtr) error {
	const op = "free in stream order"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	e, ok := d.find(C.KVG_STREAM, uint64(s))
	if !ok {
		return badHandle(op, "stream", uint64(s))
	}
	// The driver may give the address away again before this call is over, so it
	// is taken out before, and put back if it was not freed.
	d.mu.Lock()
	name, ok := d.pooled[p]
	delete(d.pooled, p)
	d.mu.Unlock()
	if !ok {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("%#x is no memory of a pool of this device", uint64(p))}
	}
	if r := C.kvg_free_async(d.c, C.uint64_t(p), C.uint64_t(e.raw)); r.why != C.KVG_OK {
		d.mu.Lock()
		d.pooled[p] = name
		d.mu.Unlock()
		return d.lacking(op, r, fmt.Sprintf("%q at %#x", name, uint64(p)), "cuMemFreeAsync")
	}
	return nil
}

// NewPool returns a pool.
func (d *Device) NewPool(name string) (cuda.Pool, error) {
	const op = "make pool"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	if err := d.needs(op, "cuMemPoolDestroy"); err != nil {
		return 0, err
	}
	var raw C.uint64_t
	if r := C.kvg_new_pool(d.c, d.device, &raw); r.why != C.KVG_OK {
		return 0, d.lacking(op, r, name, "cuMemPoolCreate")
	}
	h, err := d.add(C.KVG_POOL, uint64(raw), false, 0)
	if err != nil {
		C.kvg_free_pool(d.c, raw)
	}
	return cuda.Pool(h), err
}

// DestroyPool makes the handle invalid. The pool's memory is given back when
// all of it has been freed.
func (d *Device) DestroyPool(p cuda.Pool) error {
	const op = "destroy pool"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	if p == 0 {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: "the device's own"}
	}
	return d.end(op, C.KVG_POOL, "pool", uint64(p), "cuMemPoolDestroy", func(raw C.uint64_t) C.kvg_result {
		return C.kvg_free_pool(d.c, raw)
	})
}

func checkAttribute(op string, a cuda.PoolAttribute) error {
	if a == 0 || a > cuda.PoolUsedHigh {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: a.String()}
	}
	return nil
}

// PoolAttribute returns a setting or a figure of a pool.
func (d *Device) PoolAttribute(p cuda.Pool, a cuda.PoolAttribute) (uint64, error) {
	const op = "pool attribute"
	var v C.uint64_t
	err := d.onPool(op, "cuMemPoolGetAttribute", p, a.String(), func(raw C.uint64_t) (C.kvg_result, error) {
		if err := checkAttribute(op, a); err != nil {
			return C.kvg_result{}, err
		}
		return C.kvg_pool_get(d.c, d.device, raw, C.int(a), &v), nil
	})
	return uint64(v), err
}

// SetPoolAttribute changes a setting of a pool, or sets a highest figure to 0.
func (d *Device) SetPoolAttribute(p cuda.Pool, a cuda.PoolAttribute, v uint64) error {
	const op = "set pool attribute"
	return d.onPool(op, "cuMemPoolSetAttribute", p, a.String(), func(raw C.uint64_t) (C.kvg_result, error) {
		if err := checkAttribute(op, a); err != nil {
			return C.kvg_result{}, err
		}
		if a <= cuda.PoolInternalWaits && v > 1 {
			return C.kvg_result{}, &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf("%s of %d, may be at most 1", a, v)}
		}
		return C.kvg_pool_set(d.c, d.device, raw, C.int(a), C.uint64_t(v)), nil
	})
}

// TrimPool gives memory back that nobody uses.
func (d *Device) TrimPool(p cuda.Pool, keep uint64) error {
	return d.onPool("trim pool", "cuMemPoolTrimTo", p, "", func(raw C.uint64_t) (C.kvg_result, error) {
		return C.kvg_pool_trim(d.c, d.device, raw, C.uint64_t(keep)), nil
	})
}

// onPool makes a call for a pool. Where a symbol is missing it is the one named,
// or that for the current pool.
func (d *Device) onPool(op, symbol string, p cuda.Pool, detail string, call func(raw C.uint64_t) (C.kvg_result, error)) error {
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	raw, err := d.pool(op, p)
	if err != nil {
		return err
	}
	r, err := call(raw)
	if err != nil {
		return err
	}
	symbols := []string{symbol}
	if p == 0 {
		symbols = append(symbols, "cuDeviceGetMemPool")
	}
	if r.why != C.KVG_OK {
		return d.lacking(op, r, detail, symbols...)
	}
	return nil
}
