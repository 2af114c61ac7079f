package sim

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/race"
)

// keptFreed is how many freed allocations are remembered.
const keptFreed = 1 << 16

// Memory is the device's view of its memory, by address: device memory and
// pinned host memory. Its methods belong to the machine: see [vtime.World].
type Memory struct {
	d       *Device
	space   space
	page    uint64
	used    uint64    // bytes of device memory, cost scale included
	regions []*region // by address
	named   int       // allocations so far, for their names
	shared  *shared   // nil: other processes can not open device memory
	opened  map[cuda.MemoryHandle]*region
	managed managed
	freed   int
	poison  bool
	closed  bool
	hbm     *vtime.Shared

	// For who checks: see races.go.
	by        *race.Op // whose the next access is
	transfers map[uint64]*race.Transfer
}

type region struct {
	owner *Device
	base  uint64
	at    unsafe.Pointer // base
	data  []byte         // nil once freed
	size  uint64
	kind  cuda.MemoryKind
	scale uint32
	name  string
	freed bool
	ipc   ipcState

	view     []byte // of managed memory: where the host sees it, if not in data
	external bool   // it is somebody else's, registered
	module   bool   // it holds the variables of a module
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
	Peer   string // the device that has it, where access to that is not enabled
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
	case e.Peer != "":
		return fmt.Sprintf("access to device %s is not enabled: %s", e.Peer, where)
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
	m.managed.exclusive, m.managed.page = o.ExclusiveManaged, m.page
	if err := m.space.reserve(); err != nil {
		return nil, err
	}
	if o.Shareable {
		var err error
		if m.shared, err = newShared(); err != nil {
			return nil, errors.Join(err, m.space.close())
		}
	}
	return m, nil
}

func (m *Memory) close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	for _, r := range m.regions {
		r.data, r.freed = nil, true
	}
	return errors.Join(m.managed.close(), m.space.close(), m.shared.close())
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// alloc makes a region. The caller has checked that the device has the room.
func (m *Memory) alloc(size uint64, kind cuda.MemoryKind, o cuda.AllocOptions) (*region, error) {
	span := roundUp(size, m.page)
	if span < size {
		return nil, errNoSpace
	}
	flags, fd, off := unix.MAP_PRIVATE|unix.MAP_ANON, -1, int64(0)
	if m.shared != nil && kind == cuda.DeviceMemory {
		var err error
		if off, err = m.shared.grow(span); err != nil {
			return nil, err
		}
		flags, fd = unix.MAP_SHARED, m.shared.fd
	}
	r, err := m.place(size, fd, off, flags)
	if err != nil {
		return nil, err
	}
	r.kind, r.scale, r.ipc.off = kind, max(o.CostScale, 1), off
	m.name(r, o.Name)
	if m.poison && size <= PoisonLimit {
		fill(r.data, 0, 0xff)
	}
	if kind == cuda.DeviceMemory {
		m.used += r.cost()
	}
	return r, nil
}

func (m *Memory) name(r *region, name string) {
	if m.named++; name == "" {
		name = fmt.Sprintf("%s allocation %d", r.kind, m.named)
	}
	r.name = name
}

// place maps a file, or nothing, at the next addresses.
func (m *Memory) place(size uint64, fd int, off int64, flags int) (*region, error) {
	span := roundUp(size, m.page)
	p, err := m.space.take(span)
	if err != nil {
		return nil, err
	}
	got, err := unix.MmapPtr(fd, off, p, uintptr(span), unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_NORESERVE|unix.MAP_FIXED)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", span, err)
	}
	r := &region{base: uint64(uintptr(got)), at: got, data: unsafe.Slice((*byte)(got), size), size: size, scale: 1}
	m.insert(r)
	return r, nil
}

func (m *Memory) insert(r *region) {
	r.owner = m.d
	i := sort.Search(len(m.regions), func(i int) bool { return m.regions[i].base > r.base })
	m.regions = slices.Insert(m.regions, i, r)
}

func (r *region) cost() uint64 { return r.size * uint64(r.scale) }

func (m *Memory) release(r *region) error {
	span := roundUp(r.size, m.page)
	if err := unmap(r.at, span); err != nil {
		return fmt.Errorf("cuda/sim: unmapping %q: %w", r.name, err)
	}
	if err := m.managed.drop(r, span); err != nil {
		return fmt.Errorf("cuda/sim: giving back %q: %w", r.name, err)
	}
	r.data, r.freed = nil, true
	m.ended(r)
	if r.kind == cuda.DeviceMemory && !r.ipc.foreign {
		m.used -= r.cost()
		if err := m.shared.drop(r, span); err != nil {
			return fmt.Errorf("cuda/sim: giving back %q: %w", r.name, err)
		}
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

// locate returns the bytes of an access and the region that they are in: of this
// device, or of another that its kernels reach.
func (m *Memory) locate(addr, size uint64, write bool) ([]byte, *region, error) {
	r := m.below(addr)
	if r == nil || addr-r.base >= r.size {
		if x := m.far(addr); x != nil {
			b, x, err := x.part(addr, size, write)
			if err == nil && !m.reaches(x) {
				return nil, nil, &AccessError{Write: write, Addr: addr, Size: size, Name: x.name, Base: x.base, Length: x.size, Peer: x.owner.name}
			}
			return b, x, err
		}
	}
	if r == nil {
		return nil, nil, &AccessError{Write: write, Addr: addr, Size: size, Closed: m.closed}
	}
	return r.part(addr, size, write)
}

// known returns an error where an access could not be right.
func (m *Memory) known(addr, size uint64, write bool) error {
	_, _, err := m.locate(addr, size, write)
	return err
}

// part returns the bytes of an access that is to be within the region.
func (r *region) part(addr, size uint64, write bool) ([]byte, *region, error) {
	if off := addr - r.base; !r.freed && off <= r.size && size <= r.size-off && (size == 0 || off < r.size) {
		return r.data[off : off+size : off+size], r, nil
	}
	m := r.owner.mem
	e := &AccessError{Write: write, Addr: addr, Size: size, Closed: m.closed}
	if addr-r.base < roundUp(r.size, m.page)+guard {
		e.Name, e.Base, e.Length, e.Freed = r.name, r.base, r.size, r.freed
	}
	return nil, nil, e
}

// Bytes returns the memory of an access of size bytes at addr, which must lie
// in one live allocation. It is valid until that allocation is freed.
func (m *Memory) Bytes(addr, size uint64) ([]byte, error) {
	b, _, err := m.locate(addr, size, true)
	return b, err
}

// Read reads len(dst) bytes at addr. The error is an [*AccessError].
func (m *Memory) Read(addr uint64, dst []byte) error {
	by := m.by
	m.by = nil
	b, _, err := m.locate(addr, uint64(len(dst)), false)
	if err != nil {
		return err
	}
	m.observe(by, addr, uint64(len(dst)), false)
	copy(dst, b)
	return nil
}

// Write writes src at addr. The error is an [*AccessError].
func (m *Memory) Write(addr uint64, src []byte) error {
	by := m.by
	m.by = nil
	b, _, err := m.locate(addr, uint64(len(src)), true)
	if err != nil {
		return err
	}
	m.observe(by, addr, uint64(len(src)), true)
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
