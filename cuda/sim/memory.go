package sim

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/vtime"
)

// Device memory is one large reservation of address space per device. Each
// allocation gets pages of its own, with unmapped ones behind it, further and
// further up: an address is never used twice, so a stale one can be told.
const (
	// addressHint is where the first device is put if it is free there, so that
	// addresses are the same from run to run: above Go's heap, below shared
	// libraries, and outside what the race detector keeps for itself.
	addressHint = 0x1800_0000_0000
	// Reservations that are tried in turn. Address space costs nothing unless a
	// limit is set on it.
	maxReserve = 4 << 40
	minReserve = 16 << 30
	// guard is the least distance between allocations.
	guard = 64 << 10
	// keptFreed is how many freed allocations are remembered.
	keptFreed = 1 << 16
)

// Memory is the device's view of its memory, by address: device memory and
// pinned host memory. Its methods belong to the machine: see [vtime.World].
type Memory struct {
	d        *Device
	base     unsafe.Pointer
	start    uint64
	reserved uint64
	next     uint64 // offset of the next allocation
	page     uint64
	used     uint64 // bytes of device memory, cost scale included
	regions  []*region
	freed    int
	poison   bool
	closed   bool
	hbm      *vtime.Shared
	observer observer
}

// observer is told of accesses that are made through Memory: by fills, copies,
// models and NICs, not yet by PTX. who is the stream or part that makes it.
type observer interface {
	access(who string, addr, size uint64, write bool)
}

type region struct {
	base  uint64
	data  []byte // nil once freed
	size  uint64
	kind  cuda.MemoryKind
	scale uint32
	name  string
	freed bool
}

// AccessError is an access that is not wholly inside one live allocation.
type AccessError struct {
	Write  bool
	Addr   uint64
	Size   uint64
	Name   string // of the allocation there, or the one just below; "" for none
	Base   uint64 // of that allocation
	Length uint64 // of that allocation
	Freed  bool   // it has been freed
	Closed bool   // the device has been closed
}

func (e *AccessError) Error() string {
	what := "read"
	if e.Write {
		what = "write"
	}
	s := fmt.Sprintf("%s of %d bytes at %#x: ", what, e.Size, e.Addr)
	switch {
	case e.Closed:
		return s + "the device has been closed"
	case e.Name == "":
		return s + "no allocation there"
	}
	return s + e.where()
}

// where tells the place of the access by the allocation's name.
func (e *AccessError) where() string {
	where := fmt.Sprintf("offset %#x of %q (%d bytes at %#x)", e.Addr-e.Base, e.Name, e.Length, e.Base)
	switch off := e.Addr - e.Base; {
	case e.Freed:
		return "use after free: " + where
	case off >= e.Length:
		return "behind the end: " + where
	default:
		return fmt.Sprintf("%d bytes over the end: %s", off+e.Size-e.Length, where)
	}
}

// Unwrap makes the error match [cuda.ErrIllegalAddress].
func (e *AccessError) Unwrap() error { return cuda.ErrIllegalAddress }

func newMemory(d *Device, o Options) (*Memory, error) {
	m := &Memory{d: d, page: uint64(os.Getpagesize()), poison: !o.Uninitialised}
	var err error
	for size := uint64(maxReserve); size >= minReserve; size /= 4 {
		m.base, err = unix.MmapPtr(-1, 0, unsafe.Add(unsafe.Pointer(nil), addressHint), uintptr(size),
			unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err == nil {
			m.reserved, m.start = size, uint64(uintptr(m.base))
			return m, nil
		}
	}
	return nil, fmt.Errorf("cuda/sim: reserving address space: %w", err)
}

func (m *Memory) close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	for _, r := range m.regions {
		r.data, r.freed = nil, true
	}
	return unix.MunmapPtr(m.base, uintptr(m.reserved))
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// alloc makes a region. The caller has checked that the device has the room.
func (m *Memory) alloc(size uint64, kind cuda.MemoryKind, o cuda.AllocOptions) (*region, error) {
	span := roundUp(size, m.page)
	if span < size || m.next > m.reserved || span > m.reserved-m.next {
		return nil, errors.New("the simulator's address space is used up")
	}
	p := unsafe.Add(m.base, m.next)
	got, err := unix.MmapPtr(-1, 0, p, uintptr(span), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", span, err)
	}
	r := &region{base: m.start + m.next, data: unsafe.Slice((*byte)(got), size), size: size, kind: kind,
		scale: max(o.CostScale, 1), name: o.Name}
	if r.name == "" {
		r.name = fmt.Sprintf("%s allocation %d", kind, len(m.regions)+1)
	}
	m.next += roundUp(span+guard, max(m.page, guard))
	m.regions = append(m.regions, r)
	if m.poison && size <= PoisonLimit {
		fill(r.data, 0, 0xff)
	}
	if kind == cuda.DeviceMemory {
		m.used += r.cost()
	}
	return r, nil
}

func (r *region) cost() uint64 { return r.size * uint64(r.scale) }

func (m *Memory) release(r *region) error {
	p := unsafe.Add(m.base, r.base-m.start)
	if _, err := unix.MmapPtr(-1, 0, p, uintptr(roundUp(r.size, m.page)), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED); err != nil {
		return fmt.Errorf("cuda/sim: unmapping %q: %w", r.name, err)
	}
	r.data, r.freed = nil, true
	if r.kind == cuda.DeviceMemory {
		m.used -= r.cost()
	}
	if m.freed++; m.freed > keptFreed {
		m.forget()
	}
	return nil
}

// forget drops the older half of the freed regions.
func (m *Memory) forget() {
	drop := m.freed / 2
	kept := m.regions[:0]
	for _, r := range m.regions {
		if r.freed && drop > 0 {
			drop--
			m.freed--
			continue
		}
		kept = append(kept, r)
	}
	clear(m.regions[len(kept):])
	m.regions = kept
}

// below returns the region with the highest base that is not above addr.
func (m *Memory) below(addr uint64) *region {
	i := sort.Search(len(m.regions), func(i int) bool { return m.regions[i].base > addr })
	if i == 0 {
		return nil
	}
	return m.regions[i-1]
}

// at returns the live region that addr lies in, or nil.
func (m *Memory) at(addr uint64) *region {
	if r := m.below(addr); r != nil && !r.freed && addr-r.base < r.size {
		return r
	}
	return nil
}

// locate returns the bytes of an access and the region that they are in.
func (m *Memory) locate(addr, size uint64, write bool) ([]byte, *region, error) {
	r := m.below(addr)
	if r != nil && !r.freed {
		if off := addr - r.base; off <= r.size && size <= r.size-off && (size == 0 || off < r.size) {
			return r.data[off : off+size : off+size], r, nil
		}
	}
	e := &AccessError{Write: write, Addr: addr, Size: size, Closed: m.closed}
	if r != nil && addr-r.base < roundUp(r.size, m.page)+guard {
		e.Name, e.Base, e.Length, e.Freed = r.name, r.base, r.size, r.freed
	}
	return nil, nil, e
}

func (m *Memory) observe(who string, addr, size uint64, write bool) {
	if m.observer != nil {
		m.observer.access(who, addr, size, write)
	}
}

// Bytes returns the memory of an access of size bytes at addr, which must lie
// in one live allocation. It is valid until that allocation is freed.
func (m *Memory) Bytes(addr, size uint64) ([]byte, error) {
	b, _, err := m.locate(addr, size, true)
	return b, err
}

// Read reads len(dst) bytes at addr. The error is an [*AccessError].
func (m *Memory) Read(addr uint64, dst []byte) error {
	b, _, err := m.locate(addr, uint64(len(dst)), false)
	if err != nil {
		return err
	}
	m.observe("outside", addr, uint64(len(dst)), false)
	copy(dst, b)
	return nil
}

// Write writes src at addr. The error is an [*AccessError].
func (m *Memory) Write(addr uint64, src []byte) error {
	b, _, err := m.locate(addr, uint64(len(src)), true)
	if err != nil {
		return err
	}
	m.observe("outside", addr, uint64(len(src)), true)
	copy(b, src)
	return nil
}

// Scale returns the cost scale of the allocation at addr, 1 where there is none.
func (m *Memory) Scale(addr uint64) uint32 {
	if r := m.at(addr); r != nil {
		return r.scale
	}
	return 1
}

// Bandwidth returns the device memory's bandwidth, to be shared with kernels.
func (m *Memory) Bandwidth() *vtime.Shared { return m.hbm }
