package softnic

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/clock/vtime"
)

// Memory is the memory of an agent, or a part of it. Its methods are called
// with the machine locked; they must not block nor call into the world.
type Memory interface {
	// Read copies the bytes at an address to dst. An error names the allocation
	// or says that there is none.
	Read(addr uint64, dst []byte) error
	// Write copies src to an address, with the errors of Read.
	Write(addr uint64, src []byte) error
	// Scale is how many bytes each stored byte at addr counts as in the cost
	// model; 0 counts as 1.
	Scale(addr uint64) uint32
	// Bandwidth is shared with what arrives from the fabric; nil: not limited.
	Bandwidth() *vtime.Shared
}

// Two ways in which a Memory may be able to tell whether a run of bytes is all
// its own. Of one that has neither, the first and the last byte are read.
type (
	owner  interface{ Owns(addr, n uint64) bool }
	slicer interface {
		Bytes(addr, n uint64) ([]byte, error)
	}
)

// tracker is memory that is told which transfer touches it: that the host has posted
// one, of which the next Read or Write is, and that the host has seen its end.
type tracker interface {
	Posted(id uint64)
	Carries(id uint64)
	Ended(id uint64)
}

func carries(m Memory, id uint64) {
	if t, ok := m.(tracker); ok {
		t.Carries(id)
	}
}

// tracked calls f for the local memory of each entry that wants to be told.
func (t *transfer) tracked(f func(tracker)) {
	for i := range t.segs {
		if m, ok := t.segs[i].localMem.(tracker); ok {
			f(m)
		}
	}
}

func owns(m Memory, addr, n uint64) bool {
	switch m := m.(type) {
	case owner:
		return m.Owns(addr, n)
	case slicer:
		_, err := m.Bytes(addr, n)
		return err == nil
	}
	var b [1]byte
	return m.Read(addr, b[:]) == nil && m.Read(addr+n-1, b[:]) == nil
}

// HostMemory is memory of the process, such as the DRAM of a remote agent. It
// is freed by the collector.
type HostMemory struct {
	data []byte
	base uint64
}

const pageSize = 4096

// NewHostMemory returns size zero bytes, at least one, aligned to 4 KiB. Like
// make it panics where no slice can be so long, and ends the process where the
// machine lacks the memory.
func NewHostMemory(size uint64) *HostMemory {
	size = max(size, 1)
	raw := make([]byte, size+pageSize-1)
	// The heap does not move, so the address holds as long as data does.
	skip := -uint64(uintptr(unsafe.Pointer(&raw[0]))) % pageSize
	data := raw[skip : skip+size : skip+size]
	return &HostMemory{data: data, base: uint64(uintptr(unsafe.Pointer(&data[0])))}
}

// Addr returns the address of the first byte, which is its real one.
func (h *HostMemory) Addr() uint64 { return h.base }

// Len returns the size in bytes.
func (h *HostMemory) Len() uint64 { return uint64(len(h.data)) }

// Bytes returns the memory itself. On a real pacer it must not be touched
// while a transfer may.
func (h *HostMemory) Bytes() []byte { return h.data }

// Owns reports whether all of the n bytes at addr are of this memory.
func (h *HostMemory) Owns(addr, n uint64) bool {
	return addr >= h.base && n <= h.Len() && addr-h.base <= h.Len()-n
}

// Read implements [Memory].
func (h *HostMemory) Read(addr uint64, dst []byte) error {
	if !h.Owns(addr, uint64(len(dst))) {
		return h.outside("read", addr, len(dst))
	}
	copy(dst, h.data[addr-h.base:])
	return nil
}

// Write implements [Memory].
func (h *HostMemory) Write(addr uint64, src []byte) error {
	if !h.Owns(addr, uint64(len(src))) {
		return h.outside("write", addr, len(src))
	}
	copy(h.data[addr-h.base:], src)
	return nil
}

func (h *HostMemory) outside(op string, addr uint64, n int) error {
	return fmt.Errorf("%s %#x+%d: outside of host memory %#x+%d", op, addr, n, h.base, h.Len())
}

// Scale implements [Memory]: a byte costs what one byte costs.
func (h *HostMemory) Scale(uint64) uint32 { return 1 }

// Bandwidth implements [Memory]: host memory is not limited.
func (h *HostMemory) Bandwidth() *vtime.Shared { return nil }
