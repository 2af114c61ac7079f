package memory

import (
	"fmt"
	"sync"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/leak"
)

// Buffer is device memory with an owner. Methods are safe for use by several
// goroutines; the collector never frees a buffer.
type Buffer struct {
	dev  cuda.Device
	name string
	size uint64
	leak *leak.Ticket

	mu  sync.Mutex
	ptr cuda.DevicePtr // 0: closed
}

// NewBuffer allocates size bytes of device memory, aligned to 256 bytes, with
// undefined content.
func NewBuffer(dev cuda.Device, size uint64, o cuda.AllocOptions) (*Buffer, error) {
	p, err := dev.Alloc(size, o)
	if err != nil {
		return nil, fmt.Errorf("memory: buffer %q: %d bytes: %w", o.Name, size, err)
	}
	return &Buffer{dev: dev, name: o.Name, size: size, ptr: p, leak: leak.Open("buffer", o.Name)}, nil
}

// Size returns the bytes of the buffer.
func (b *Buffer) Size() uint64 { return b.size }

// Ptr returns the address of the buffer, or 0 once it is closed.
func (b *Buffer) Ptr() cuda.DevicePtr {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ptr
}

// At returns the address of n bytes at off. It returns [ErrOutOfRange] where
// they are not all in the buffer, and [cuda.ErrClosed] after Close.
func (b *Buffer) At(off, n uint64) (cuda.DevicePtr, error) {
	p := b.Ptr()
	if p == 0 {
		return 0, fmt.Errorf("memory: buffer %q: %w", b.name, cuda.ErrClosed)
	}
	if err := inside(b.name, off, n, b.size); err != nil {
		return 0, err
	}
	return p + cuda.DevicePtr(off), nil
}

// Read copies the bytes at off into dst and returns when that is done. Like
// [cuda.Device] Read it is not ordered with work in streams.
func (b *Buffer) Read(dst []byte, off uint64) error {
	p, err := b.At(off, uint64(len(dst)))
	if err != nil {
		return err
	}
	return b.dev.Read(dst, p)
}

// Write copies src to the bytes at off; see Read.
func (b *Buffer) Write(off uint64, src []byte) error {
	p, err := b.At(off, uint64(len(src)))
	if err != nil {
		return err
	}
	return b.dev.Write(p, src)
}

// Close frees the memory; the device waits for the work that was submitted
// before. It is idempotent.
func (b *Buffer) Close() error {
	b.mu.Lock()
	p := b.ptr
	b.ptr = 0
	b.mu.Unlock()
	if p == 0 {
		return nil
	}
	b.leak.Close()
	return b.dev.Free(p)
}

// Pinned is page-locked host memory with an owner. Methods are safe for use by
// several goroutines; the collector never frees it.
type Pinned struct {
	dev  cuda.Device
	name string
	leak *leak.Ticket

	mu  sync.Mutex
	buf cuda.PinnedBuffer // Host nil: closed
}

// NewPinned allocates size bytes of pinned memory, mapped into the device.
func NewPinned(dev cuda.Device, size uint64, o cuda.AllocOptions) (*Pinned, error) {
	buf, err := dev.AllocPinned(size, o)
	if err != nil {
		return nil, fmt.Errorf("memory: pinned buffer %q: %d bytes: %w", o.Name, size, err)
	}
	return &Pinned{dev: dev, name: o.Name, buf: buf, leak: leak.Open("pinned buffer", o.Name)}, nil
}

// Host returns the memory as the host sees it, or nil once it is closed. The
// slice must not be used after Close.
func (p *Pinned) Host() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Host
}

// At returns the device's address of n bytes at off. It returns
// [ErrOutOfRange] where they are not all in the buffer, and [cuda.ErrClosed]
// after Close.
func (p *Pinned) At(off, n uint64) (cuda.DevicePtr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf.Host == nil {
		return 0, fmt.Errorf("memory: pinned buffer %q: %w", p.name, cuda.ErrClosed)
	}
	if err := inside(p.name, off, n, uint64(len(p.buf.Host))); err != nil {
		return 0, err
	}
	return p.buf.Device + cuda.DevicePtr(off), nil
}

// Close frees the memory. The caller sees to it that no work uses it any more,
// for instance by waiting for the fence of the last. It is idempotent.
func (p *Pinned) Close() error {
	p.mu.Lock()
	buf := p.buf
	p.buf = cuda.PinnedBuffer{}
	p.mu.Unlock()
	if buf.Host == nil {
		return nil
	}
	p.leak.Close()
	return p.dev.FreePinned(buf)
}

func inside(name string, off, n, size uint64) error {
	if off > size || n > size-off {
		return fmt.Errorf("memory: buffer %q: %d bytes at %d of %d: %w", name, n, off, size, ErrOutOfRange)
	}
	return nil
}
