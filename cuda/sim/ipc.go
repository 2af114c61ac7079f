package sim

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.IPC = (*Device)(nil)

// ipcState is what a region has to do with other processes.
type ipcState struct {
	off      int64 // in the memory file
	exported bool
	slot     uint32
	handle   cuda.MemoryHandle // of what is exported, or was opened
	foreign  bool              // it is another process's memory
	refs     int               // times that it is open
}

// ExportMemory implements [cuda.IPC]. The device must be made with
// Options.Shareable.
func (d *Device) ExportMemory(p cuda.DevicePtr) (h cuda.MemoryHandle, err error) {
	const op = "export memory"
	if err := d.call(op, d.costs.Handle); err != nil {
		return h, err
	}
	defer d.world.Exit()
	r, err := d.owned(op, uint64(p), cuda.DeviceMemory)
	switch {
	case err != nil:
		return h, err
	case r.ipc.foreign:
		return h, invalid(op, "%q is another process's memory", r.name)
	case d.mem.shared == nil:
		return h, &cuda.Error{Code: cuda.ErrNotSupported, Op: op, Detail: "the simulator was opened without Shareable"}
	case r.ipc.exported:
		return r.ipc.handle, nil
	}
	if h, err = d.mem.shared.export(r); err != nil {
		return h, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op, Detail: fmt.Sprintf("%q: %v", r.name, err)}
	}
	return h, nil
}

// OpenMemory implements [cuda.IPC], for memory of a simulated device in another
// process of this machine, on any clock: the bytes are shared, time is not. It
// keeps the exporter's cost scale, and does not count against this device's
// memory.
func (d *Device) OpenMemory(h cuda.MemoryHandle) (cuda.DevicePtr, error) {
	const op = "open memory"
	if err := d.call(op, d.costs.Handle); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	if r := d.mem.opened[h]; r != nil {
		r.ipc.refs++
		return cuda.DevicePtr(r.base), nil
	}
	t, ok := parseTicket(h)
	switch {
	case !ok:
		return 0, invalid(op, "that is no handle of simulated memory")
	case t.pid == uint32(os.Getpid()):
		return 0, &cuda.Error{Code: cuda.ErrInvalidContext, Op: op, Detail: "the memory is this process's own"}
	}
	fd, err := openTicket(t, h)
	if err != nil {
		return 0, &cuda.Error{Code: cuda.ErrInvalidHandle, Op: op, Detail: err.Error()}
	}
	defer unix.Close(fd)
	r, err := d.mem.place(t.size, fd, int64(t.off), unix.MAP_SHARED)
	if err != nil {
		return 0, &cuda.Error{Code: cuda.ErrMapFailed, Op: op, Detail: err.Error()}
	}
	r.kind, r.scale, r.ipc = cuda.DeviceMemory, max(t.scale, 1), ipcState{handle: h, foreign: true, refs: 1}
	d.mem.name(r, fmt.Sprintf("memory of process %d", t.pid))
	if d.mem.opened == nil {
		d.mem.opened = map[cuda.MemoryHandle]*region{}
	}
	d.mem.opened[h] = r
	return cuda.DevicePtr(r.base), nil
}

// CloseMemory implements [cuda.IPC].
func (d *Device) CloseMemory(p cuda.DevicePtr) error {
	const op = "close memory"
	drop := func(r *region) error {
		if r.ipc.refs--; r.ipc.refs > 0 {
			return nil
		}
		delete(d.mem.opened, r.ipc.handle)
		return d.mem.release(r)
	}
	return d.afterWork(op, uint64(p), cuda.DeviceMemory, func(r *region) (bool, error) {
		if !r.ipc.foreign {
			return false, invalid(op, "%q is the device's own memory", r.name)
		}
		if r.ipc.refs > 1 {
			return false, drop(r)
		}
		return true, nil
	}, func(r *region) error {
		if r.freed {
			return invalid(op, "%q is closed twice at once", r.name)
		}
		return drop(r) // or it was opened again meanwhile
	})
}
