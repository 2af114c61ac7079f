package sim

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.Managed = (*Device)(nil)

// managed is a device's managed memory. Where the host may not touch it while
// launches are under way it is mapped twice: at its address, where the host loses
// the right to it, and elsewhere, where the device has it.
type managed struct {
	exclusive bool
	page      uint64
	file      *shared // of what is mapped twice
	list      []*region
	forbidden bool // to the host, now
}

// AllocManaged implements [cuda.Managed]. Moving pages takes no time here, and
// the memory does not count against the device's.
func (d *Device) AllocManaged(size uint64, o cuda.AllocOptions) (cuda.ManagedBuffer, error) {
	const op = "allocate managed memory"
	if err := d.call(op, d.costs.Alloc); err != nil {
		return cuda.ManagedBuffer{}, err
	}
	defer d.world.Exit()
	if size == 0 {
		return cuda.ManagedBuffer{}, invalid(op, "0 bytes for %q", o.Name)
	}
	r, err := d.mem.allocManaged(size, o)
	if err != nil {
		return cuda.ManagedBuffer{}, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op, Detail: fmt.Sprintf("%q: %v", o.Name, err)}
	}
	return cuda.ManagedBuffer{Host: r.view, Device: cuda.DevicePtr(r.base)}, nil
}

func (m *Memory) allocManaged(size uint64, o cuda.AllocOptions) (*region, error) {
	g := &m.managed
	if !g.exclusive {
		r, err := m.alloc(size, cuda.ManagedMemory, o)
		if err == nil {
			r.view = r.data
		}
		return r, err
	}
	if g.file == nil {
		f, err := newShared()
		if err != nil {
			return nil, err
		}
		g.file = f
	}
	span := roundUp(size, m.page)
	off, err := g.file.grow(span)
	if err != nil {
		return nil, err
	}
	alias, err := unix.MmapPtr(g.file.fd, off, nil, uintptr(span), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", span, err)
	}
	r, err := m.place(size, g.file.fd, off, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, unix.MunmapPtr(alias, uintptr(span)))
	}
	r.kind, r.scale, r.ipc.off = cuda.ManagedMemory, max(o.CostScale, 1), off
	r.view, r.data = r.data, unsafe.Slice((*byte)(alias), size)
	m.name(r, o.Name)
	if m.poison && size <= PoisonLimit {
		fill(r.data, 0, 0xff)
	}
	g.list = append(g.list, r)
	if g.forbidden {
		err = unix.Mprotect(r.pages(m.page), unix.PROT_NONE)
	}
	return r, err
}

// pages returns the pages of the region as the host sees them.
func (r *region) pages(page uint64) []byte {
	return unsafe.Slice((*byte)(r.at), roundUp(r.size, page))
}

// FreeManaged implements [cuda.Managed].
func (d *Device) FreeManaged(b cuda.ManagedBuffer) error {
	return d.freeAfterWork("free managed memory", uint64(b.Device), cuda.ManagedMemory)
}

// freeAfterWork frees an allocation of that kind when the work that was
// submitted before is over.
func (d *Device) freeAfterWork(op string, addr uint64, kind cuda.MemoryKind) error {
	return d.afterWork(op, addr, kind, func(r *region) (bool, error) {
		if r.ipc.foreign {
			return false, invalid(op, "%q is another process's: it is closed, not freed", r.name)
		}
		return true, nil
	}, func(r *region) error {
		if r.freed {
			return invalid(op, "%q is freed twice at once", r.name)
		}
		return d.mem.release(r)
	})
}

// afterWork ends an allocation of that kind: first tells whether there is
// something to wait for, and then is called when the work that was submitted
// before is over. Both run with the machine locked.
func (d *Device) afterWork(op string, addr uint64, kind cuda.MemoryKind,
	first func(*region) (bool, error), then func(*region) error) error {
	if err := d.call(op, d.costs.Free); err != nil {
		return err
	}
	r, err := d.owned(op, addr, kind)
	more := false
	if err == nil {
		more, err = first(r)
	}
	if err != nil || !more {
		d.world.Exit()
		return err
	}
	wait := d.drained(nil)
	d.world.Exit()
	if err := d.await(bg, op, wait, 0); err != nil {
		return err
	}
	if err := d.enter(op, 0); err != nil {
		return err
	}
	defer d.world.Exit()
	return then(r)
}

// forbidManaged takes managed memory from the host before a launch in s.
func (d *Device) forbidManaged(op string, s *stream) error {
	g := &d.mem.managed
	if g.forbidden || len(g.list) == 0 || s.capture != nil {
		return nil
	}
	g.forbidden = true
	if err := g.protect(unix.PROT_NONE); err != nil {
		return &cuda.Error{Code: cuda.ErrUnknown, Op: op, Detail: err.Error()}
	}
	return nil
}

func (g *managed) protect(prot int) error {
	var errs []error
	for _, r := range g.list {
		errs = append(errs, unix.Mprotect(r.pages(g.page), prot))
	}
	return errors.Join(errs...)
}

// allowManaged gives managed memory back to the host where no launch is under
// way any more. It is called when the host has waited or asked.
func (d *Device) allowManaged(op string) error {
	g := &d.mem.managed
	if !g.forbidden {
		return nil
	}
	for _, s := range d.order {
		for i := range s.len {
			if op := s.queue[(s.head+i)%len(s.queue)].op; op == cuda.OpLaunch || op == cuda.OpLaunchGraph {
				return nil
			}
		}
	}
	g.forbidden = false
	if err := g.protect(unix.PROT_READ | unix.PROT_WRITE); err != nil {
		return &cuda.Error{Code: cuda.ErrUnknown, Op: op, Detail: err.Error()}
	}
	return nil
}

// drop ends what is left of a region that is mapped twice.
func (g *managed) drop(r *region, span uint64) error {
	i := slices.Index(g.list, r)
	if i < 0 {
		return nil
	}
	g.list = slices.Delete(g.list, i, i+1)
	return errors.Join(unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(r.data)), uintptr(span)), g.file.drop(r, span))
}

func (g *managed) close() error {
	var errs []error
	for _, r := range g.list {
		errs = append(errs, unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(r.data)), uintptr(roundUp(r.size, g.page))))
	}
	return errors.Join(append(errs, g.file.close())...)
}
