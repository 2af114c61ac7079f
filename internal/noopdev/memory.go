package noopdev

import (
	"fmt"
	"slices"
	"sync"

	"github.com/kvgate/kvgate/cuda"
)

// allocator hands out addresses. Device memory has nothing behind it; pinned
// memory has Go memory, which is all that the host side needs.
type allocator struct {
	mu     sync.Mutex
	limit  uint64
	used   uint64
	next   uint64
	blocks []extent // ascending by base
}

type extent struct {
	base, size uint64
	pinned     bool
	name       string
}

const alignment = 256

func (a *allocator) init(limit uint64) { a.limit, a.next = limit, 1<<32 }

func (a *allocator) alloc(size uint64, pinned bool, name string) (cuda.DevicePtr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if size == 0 {
		return 0, &cuda.Error{Code: cuda.ErrInvalidValue, Op: "alloc", Detail: name + ": 0 bytes"}
	}
	if !pinned {
		if size > a.limit-a.used {
			return 0, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: "alloc", Detail: fmt.Sprintf("%s: %d bytes", name, size)}
		}
		a.used += size
	}
	e := extent{base: a.next, size: size, pinned: pinned, name: name}
	a.next += (size + 2*alignment - 1) &^ (alignment - 1) // at least a byte between neighbours
	a.blocks = append(a.blocks, e)
	return cuda.DevicePtr(e.base), nil
}

func (a *allocator) find(p cuda.DevicePtr) int {
	i, ok := slices.BinarySearchFunc(a.blocks, uint64(p), func(e extent, p uint64) int {
		if p < e.base {
			return 1
		}
		if p >= e.base+e.size {
			return -1
		}
		return 0
	})
	if !ok {
		return -1
	}
	return i
}

func (a *allocator) free(p cuda.DevicePtr, pinned bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.find(p)
	if i < 0 || a.blocks[i].base != uint64(p) || a.blocks[i].pinned != pinned {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: "free", Detail: fmt.Sprintf("%#x", uint64(p))}
	}
	if !pinned {
		a.used -= a.blocks[i].size
	}
	a.blocks = slices.Delete(a.blocks, i, i+1)
	return nil
}

// LiveBytes returns how many bytes are allocated, pinned ones included.
func (d *Device) LiveBytes() uint64 {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	n := uint64(0)
	for _, e := range d.memory.blocks {
		n += e.size
	}
	return n
}

// Alloc returns an address with nothing behind it.
func (d *Device) Alloc(size uint64, o cuda.AllocOptions) (cuda.DevicePtr, error) {
	return d.memory.alloc(size, false, o.Name)
}

// Free forgets an address from Alloc.
func (d *Device) Free(p cuda.DevicePtr) error { return d.memory.free(p, false) }

// AllocPinned returns Go memory with a made-up device address.
func (d *Device) AllocPinned(size uint64, o cuda.AllocOptions) (cuda.PinnedBuffer, error) {
	p, err := d.memory.alloc(size, true, o.Name)
	if err != nil {
		return cuda.PinnedBuffer{}, err
	}
	return cuda.PinnedBuffer{Host: make([]byte, size), Device: p}, nil
}

// FreePinned forgets what AllocPinned returned.
func (d *Device) FreePinned(b cuda.PinnedBuffer) error { return d.memory.free(b.Device, true) }

// AllocRange returns the allocation that p lies in, or [cuda.ErrNotFound].
func (d *Device) AllocRange(p cuda.DevicePtr) (cuda.DevicePtr, uint64, error) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	i := d.memory.find(p)
	if i < 0 {
		return 0, 0, &cuda.Error{Code: cuda.ErrNotFound, Op: "alloc range", Detail: fmt.Sprintf("%#x", uint64(p))}
	}
	e := d.memory.blocks[i]
	return cuda.DevicePtr(e.base), e.size, nil
}

// Read is not supported: there is no memory to read.
func (d *Device) Read([]byte, cuda.DevicePtr) error {
	return &cuda.Error{Code: cuda.ErrNotSupported, Op: "read", Detail: "no-op device"}
}

// Write accepts the bytes and drops them, so that set-up code runs.
func (d *Device) Write(dst cuda.DevicePtr, src []byte) error {
	base, size, err := d.AllocRange(dst)
	if err != nil {
		return err
	}
	if uint64(dst)+uint64(len(src)) > uint64(base)+size {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: "write", Detail: fmt.Sprintf("%d bytes at %#x", len(src), uint64(dst))}
	}
	return nil
}

// LoadModule accepts any image.
func (d *Device) LoadModule([]byte) (cuda.Module, error) { return 1, nil }

// UnloadModule accepts any module.
func (d *Device) UnloadModule(cuda.Module) error { return nil }

// Function returns a handle that launches nothing.
func (d *Device) Function(_ cuda.Module, name string) (cuda.Function, error) {
	if name == "" {
		return 0, &cuda.Error{Code: cuda.ErrNotFound, Op: "function", Detail: "empty name"}
	}
	return 1, nil
}
