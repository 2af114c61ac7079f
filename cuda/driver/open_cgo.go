//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/abi"
	"github.com/kvgate/kvgate/internal/dl"
)

// libraries are tried in turn: on the loader's path, where the device plugin of
// Kubernetes mounts it, and where WSL keeps it. libcuda.so without a number is
// what toolkits bring to link against, a stub.
var libraries = []string{"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}

// Open opens a device on its primary context, which is created where nobody
// else has it yet, and shared with whoever has. Close gives it back.
//
// The library is looked for on the loader's path, in /usr/local/nvidia/lib64 and
// in /usr/lib/wsl/lib, and the first that can be used is taken. Where there is
// none the error wraps [cuda.ErrNoDriver] and says of each what is wrong: it is
// missing or broken, is the stub of a toolkit ([cuda.ErrStubLibrary]), lacks a
// symbol, is too old for this module's PTX ([cuda.ErrUnsupportedPTX]), knows no
// device ([cuda.ErrNoDevice]), or does not start, for instance because the kernel's
// driver is of another version ([cuda.ErrDriverMismatch]).
func Open(o Options) (*Device, error) { return open(0, o) }

// Adopt opens the device of a context that someone else made and keeps alive
// until Close, which leaves the context alone. The kernels are loaded there.
// o.Device is not used.
func Adopt(ctx Context, o Options) (*Device, error) {
	if ctx == 0 {
		return nil, &cuda.Error{Code: cuda.ErrInvalidContext, Op: "adopt context", Detail: "no context"}
	}
	return open(ctx, o)
}

func open(ctx Context, o Options) (*Device, error) {
	if o.Library != nil {
		return openLibrary(o.Library, ctx, o)
	}
	names := libraries
	if o.Path != "" {
		names = []string{o.Path}
	}
	var missing []string
	var whys []error
	for _, name := range names {
		lib, err := dl.Open(name) // stays open: CUDA can not be unloaded
		switch {
		case errors.Is(err, dl.ErrNoLibrary):
			missing = append(missing, strconv.Quote(name))
			continue
		case err != nil:
			whys = append(whys, fmt.Errorf("library unusable: %w", err))
			continue
		}
		d, err := openLibrary(lib, ctx, o)
		u, ok := errors.AsType[*unusable](err)
		if !ok {
			return d, err
		}
		whys = append(whys, u.why)
	}
	if missing != nil {
		whys = append(whys, fmt.Errorf("library missing: %w: %s", dl.ErrNoLibrary, strings.Join(missing, ", ")))
	}
	return nil, &unusable{all(whys)}
}

// unusable is a [cuda.ErrNoDriver] that says why there is none.
type unusable struct{ why error }

func (u *unusable) Error() string   { return fmt.Sprintf("cuda/driver: %v: %v", cuda.ErrNoDriver, u.why) }
func (u *unusable) Unwrap() []error { return []error{cuda.ErrNoDriver, u.why} }

// all wraps all of the errors in one line.
func all(errs []error) error {
	args := make([]any, len(errs))
	for i, err := range errs {
		args[i] = err
	}
	return fmt.Errorf(strings.TrimPrefix(strings.Repeat("; %w", len(errs)), "; "), args...)
}

func openLibrary(lib Library, ctx Context, o Options) (*Device, error) {
	c := C.kvg_new()
	if c == nil {
		return nil, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: "open device"}
	}
	d := &Device{c: c, number: devices.Add(1) % C.KVG_DEVICES, address: C.uintptr_t(uintptr(unsafe.Pointer(c))), lib: lib, clk: clock.Wall(), adopted: ctx != 0, context: ctx}
	if o.Clock != nil {
		d.clk = o.Clock
	}
	err := d.bind(o.Device)
	if err == nil && o.SyncMemops {
		err = d.syncContext()
	}
	if err == nil {
		err = d.prepare()
	}
	if err != nil {
		d.abandon()
		return nil, err
	}
	return d, nil
}

// none says why a library is no usable driver.
func none(lib Library, format string, args ...any) error {
	return &unusable{fmt.Errorf("%s %w", lib.Path(), fmt.Errorf(format, args...))}
}

// bind fills the table and finds the device. What tells most about a driver
// that is not usable comes first.
func (d *Device) bind(ordinal int) error {
	t := &d.c.t
	missing, err := d.fill(t)
	if err != nil {
		return err
	}
	first := func(names ...string) error {
		for _, n := range names {
			for _, s := range missing {
				if s.Name == n {
					return none(d.lib, "lacks %s, which came with CUDA %s: %w", s.Name, abi.CUDA(s.Since), dl.ErrNoSymbol)
				}
			}
		}
		return nil
	}
	if err := first("cuInit", "cuDriverGetVersion"); err != nil {
		return err
	}
	switch code := cuda.Code(C.kvg_init(t)); code {
	case cuda.Success:
	case cuda.ErrStubLibrary:
		return none(d.lib, "is the stub that a CUDA toolkit brings to link against: %w", code)
	case cuda.ErrNoDevice:
		return none(d.lib, "knows no device: %w", code)
	default:
		return none(d.lib, "does not start: %w", d.named(code))
	}
	var version C.int
	if code := cuda.Code(C.kvg_version(t, &version)); code != cuda.Success {
		return none(d.lib, "does not tell its version: %w", code)
	}
	d.info.Driver = int(version)
	if d.info.Driver < abi.MinDriver {
		return none(d.lib, "is too old: it supports CUDA %s with PTX ISA %s, this module's PTX is ISA %s and needs CUDA %s: %w",
			abi.CUDA(version), abi.NewestISA(int(version)), abi.NewestISA(abi.MinDriver), abi.CUDA(abi.MinDriver), cuda.ErrUnsupportedPTX)
	}
	for _, s := range missing {
		if s.Need == abi.Required {
			return first(s.Name)
		}
	}
	var count C.int
	if code := cuda.Code(C.kvg_count(t, &count)); code != cuda.Success {
		return none(d.lib, "does not count its devices: %w", code)
	}
	if count == 0 {
		return none(d.lib, "knows no device: %w", cuda.ErrNoDevice)
	}
	if d.adopted {
		return d.adoptContext()
	}
	if ordinal < 0 || ordinal >= int(count) {
		return &cuda.Error{Code: cuda.ErrInvalidDevice, Op: "open device", Detail: fmt.Sprintf("device %d of %d", ordinal, count)}
	}
	if code := cuda.Code(C.kvg_get(t, C.int(ordinal), &d.device)); code != cuda.Success {
		return &cuda.Error{Code: code, Op: "open device", Detail: fmt.Sprintf("device %d", ordinal)}
	}
	if code := cuda.Code(C.kvg_retain(t, d.device, &d.c.context)); code != cuda.Success {
		return &cuda.Error{Code: code, Op: "retain primary context", Detail: fmt.Sprintf("device %d", ordinal)}
	}
	d.context = Context(d.c.context)
	return nil
}

func (d *Device) adoptContext() error {
	d.c.context = C.CUcontext(d.context)
	if r := C.kvg_context_device(d.c, &d.device); r.why != C.KVG_OK {
		d.context = 0
		return &cuda.Error{Code: cuda.Code(r.code), Op: "adopt context", Detail: fmt.Sprintf("%#x", uint64(d.c.context))}
	}
	return nil
}

// fill looks up the symbols and returns those that are missing.
func (d *Device) fill(t *C.kvg_table) (missing []abi.Symbol, err error) {
	slot := 0
	for _, s := range abi.Symbols() {
		if !s.InDriver() {
			continue
		}
		p, err := d.lib.Symbol(s.Name)
		switch {
		case err == nil && p != nil:
			C.kvg_set(t, C.int(slot), p)
		case err == nil, errors.Is(err, dl.ErrNoSymbol):
			missing = append(missing, s)
		default:
			return nil, none(d.lib, "does not give %s: %w", s.Name, err)
		}
		slot++
	}
	if slot != C.KVG_SLOTS {
		return nil, fmt.Errorf("cuda/driver: the table has %d slots, the list %d: run mkabi", C.KVG_SLOTS, slot)
	}
	d.missing = missing
	return missing, nil
}

// prepare finds out about the device and makes what calls need.
func (d *Device) prepare() error {
	t := &d.c.t
	d.info.Backend = "driver"
	d.info.Simulated = C.kvg_simulated(t) != 0
	var name [256]C.char
	if code := cuda.Code(C.kvg_name(t, &name[0], C.int(len(name)), d.device)); code != cuda.Success {
		return &cuda.Error{Code: code, Op: "name of device"}
	}
	name[len(name)-1] = 0
	d.info.Name = C.GoString(&name[0])
	var bytes C.uint64_t
	if code := cuda.Code(C.kvg_memory(t, d.device, &bytes)); code != cuda.Success {
		return &cuda.Error{Code: code, Op: "memory of device"}
	}
	d.info.Memory = uint64(bytes)
	var clock, bus, unified int
	// CU_DEVICE_ATTRIBUTE_*: numbers of the driver API.
	for _, a := range []struct {
		attribute int
		set       func(v int)
	}{
		{1, func(v int) { d.info.MaxThreads = v }},
		{2, func(v int) { d.info.MaxBlock[0] = uint32(v) }},
		{3, func(v int) { d.info.MaxBlock[1] = uint32(v) }},
		{4, func(v int) { d.info.MaxBlock[2] = uint32(v) }},
		{5, func(v int) { d.info.MaxGrid[0] = uint32(v) }},
		{6, func(v int) { d.info.MaxGrid[1] = uint32(v) }},
		{7, func(v int) { d.info.MaxGrid[2] = uint32(v) }},
		{8, func(v int) { d.info.SharedMemory = uint32(v) }},
		{16, func(v int) { d.info.SMs = v }},
		{36, func(v int) { clock = v }},
		{37, func(v int) { bus = v }},
		{41, func(v int) { unified = v }},
		{75, func(v int) { d.info.Capability[0] = v }},
		{76, func(v int) { d.info.Capability[1] = v }},
		{97, func(v int) { d.info.SharedOptIn = uint32(v) }},
		{98, func(v int) { d.info.FlushesWrites = v != 0 }},
	} {
		v, err := d.attribute(a.attribute)
		if err != nil {
			return err
		}
		a.set(v)
	}
	// The clock is in kHz and memory moves twice a cycle; the bus is in bits.
	d.info.Bandwidth = uint64(clock) * 1000 * 2 * uint64(bus) / 8
	if unified == 0 {
		return none(d.lib, "opens %s, which has no unified addressing: %w", d.info.Name, cuda.ErrNotSupported)
	}
	if d.info.Capability[0] < 7 {
		return none(d.lib, "opens %s, which has compute capability %d.%d, the kernels need 7.0: %w",
			d.info.Name, d.info.Capability[0], d.info.Capability[1], cuda.ErrNotSupported)
	}
	var least, greatest C.int
	if r := C.kvg_priorities(d.c, &least, &greatest); r.why != C.KVG_OK {
		return d.fail("priorities of streams", r, "")
	}
	d.info.Priorities = [2]int{int(least), int(greatest)}
	if d.info.FlushesWrites {
		d.c.can_flush = 1
	}
	d.inquireRDMA()
	d.inquireHostMemory()
	return d.makeStaging()
}

// attribute asks for a CU_DEVICE_ATTRIBUTE_*, by its number; 0 with an error.
func (d *Device) attribute(n int) (int, error) {
	var v C.int
	if code := cuda.Code(C.kvg_attribute(&d.c.t, C.int(n), d.device, &v)); code != cuda.Success {
		return 0, &cuda.Error{Code: code, Op: "attribute of device", Detail: fmt.Sprintf("attribute %d", n)}
	}
	return int(v), nil
}

// named gives a code the driver's name where this module has none.
func (d *Device) named(code cuda.Code) error {
	if strings.HasPrefix(code.String(), "CUDA_ERROR(") {
		if s := C.kvg_error_name(&d.c.t, C.int(code)); s != nil {
			return fmt.Errorf("%s: %w", C.GoString(s), code)
		}
	}
	return code
}

// abandon gives back what open has taken when it fails.
func (d *Device) abandon() {
	if d.staging.stream != 0 {
		C.kvg_free_stream(d.c, C.uint64_t(d.staging.stream))
	}
	if d.staging.host != nil {
		C.kvg_free_pinned(d.c, unsafe.Pointer(unsafe.SliceData(d.staging.host)))
	}
	if d.context != 0 && !d.adopted {
		C.kvg_release(&d.c.t, d.device)
	}
	C.kvg_delete(d.c)
}
