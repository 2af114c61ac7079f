//go:build gorgonia

package gorgonia

import (
	"unsafe"

	"gorgonia.org/cu"

	"github.com/kvgate/kvgate/cuda"
)

var (
	_ cuda.Managed    = (*Device)(nil)
	_ cuda.HostMemory = (*Device)(nil)
)

// AllocManaged implements [cuda.Managed].
func (d *Device) AllocManaged(size uint64, o cuda.AllocOptions) (b cuda.ManagedBuffer, err error) {
	const op = "allocate managed memory"
	err = d.within(op, func() error {
		if o.CostScale > 1 {
			return refuse(cuda.ErrInvalidValue, op, "cost scale of %d for %q: only simulated memory has one", o.CostScale, o.Name)
		}
		raw, err := cu.MemAllocManaged(int64(size), cu.AttachGlobal)
		if err != nil {
			return err
		}
		at := raw.Uintptr() // the host's address as well
		b = cuda.ManagedBuffer{Host: unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size), Device: Pointer(raw)}
		d.mu.Lock()
		d.managed[b.Device] = true
		d.mu.Unlock()
		return nil
	})
	return b, err
}

// FreeManaged implements [cuda.Managed].
func (d *Device) FreeManaged(b cuda.ManagedBuffer) error {
	const op = "free managed memory"
	return d.within(op, func() error {
		if ok, _ := take(d, d.managed, b.Device); !ok {
			return refuse(cuda.ErrInvalidValue, op, "%#x is no managed memory of this device", uint64(b.Device))
		}
		return cu.MemFree(cu.DevicePtr(b.Device))
	})
}

// RegisterHost fails: gorgonia.org/cu registers no memory.
func (d *Device) RegisterHost(b []byte) (cuda.PinnedBuffer, error) {
	return cuda.PinnedBuffer{}, d.lacks("register host memory", "cuMemHostRegister")
}

// UnregisterHost refuses every buffer: there are none.
func (d *Device) UnregisterHost(b cuda.PinnedBuffer) error {
	return refuse(cuda.ErrHostNotRegistered, "unregister host memory", "%#x", uint64(b.Device))
}

// CopyIn implements [cuda.HostMemory]. Where the device reaches pageable memory by
// itself the copy is waited for.
func (d *Device) CopyIn(h cuda.Stream, dst cuda.DevicePtr, src []byte) error {
	return d.copyHost("copy from pageable memory", h, dst, src, func(host unsafe.Pointer, n int64, s cu.Stream) error {
		if err := cu.MemcpyHtoDAsync(cu.DevicePtr(dst), host, n, s); err != nil || !d.pageable {
			return err
		}
		return s.Synchronize()
	})
}

// CopyOut implements [cuda.HostMemory].
func (d *Device) CopyOut(h cuda.Stream, dst []byte, src cuda.DevicePtr) error {
	return d.copyHost("copy to pageable memory", h, src, dst, func(host unsafe.Pointer, n int64, s cu.Stream) error {
		if err := cu.MemcpyDtoHAsync(host, cu.DevicePtr(src), n, s); err != nil {
			return err
		}
		return s.Synchronize()
	})
}

func (d *Device) copyHost(op string, h cuda.Stream, at cuda.DevicePtr, host []byte, start func(host unsafe.Pointer, n int64, s cu.Stream) error) error {
	return d.within(op, func() error {
		s, ok := get(d, d.streams, h)
		if !ok {
			return badHandle(op, "stream", uint64(h))
		}
		if len(host) == 0 {
			return nil
		}
		if err := inside(op, at, uint64(len(host))); err != nil {
			return err
		}
		return start(unsafe.Pointer(unsafe.SliceData(host)), int64(len(host)), s)
	})
}

// lacks refuses what gorgonia.org/cu has no function for.
func (d *Device) lacks(op, symbol string) error {
	return d.within(op, func() error {
		return refuse(cuda.ErrNotSupported, op, "gorgonia.org/cu has no %s", symbol)
	})
}
