package sim

import (
	"fmt"
	"slices"
	"sort"
	"time"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.HostMemory = (*Device)(nil)

// RegisterHost implements [cuda.HostMemory]. The memory keeps its address.
func (d *Device) RegisterHost(b []byte) (cuda.PinnedBuffer, error) {
	const op = "register host memory"
	if err := d.call(op, d.costs.AllocPinned); err != nil {
		return cuda.PinnedBuffer{}, err
	}
	defer d.world.Exit()
	if len(b) == 0 {
		return cuda.PinnedBuffer{}, invalid(op, "0 bytes")
	}
	at := unsafe.Pointer(unsafe.SliceData(b))
	r := &region{base: uint64(uintptr(at)), at: at, data: b, size: uint64(len(b)), kind: cuda.PinnedMemory, scale: 1, external: true}
	if x := d.mem.overlap(r.base, r.size); x != nil {
		return cuda.PinnedBuffer{}, &cuda.Error{Code: cuda.ErrHostRegistered, Op: op,
			Detail: fmt.Sprintf("%d bytes at %#x: some are in %q", r.size, r.base, x.name)}
	}
	d.mem.name(r, "")
	d.mem.insert(r)
	return cuda.PinnedBuffer{Host: b, Device: cuda.DevicePtr(r.base)}, nil
}

// UnregisterHost implements [cuda.HostMemory].
func (d *Device) UnregisterHost(b cuda.PinnedBuffer) error {
	const op = "unregister host memory"
	if err := d.call(op, d.costs.Free); err != nil {
		return err
	}
	defer d.world.Exit()
	r := d.mem.at(uint64(b.Device))
	if r == nil || !r.external || r.base != uint64(b.Device) {
		return &cuda.Error{Code: cuda.ErrHostNotRegistered, Op: op, Detail: fmt.Sprintf("%#x", uint64(b.Device))}
	}
	// The addresses are not ours: they may be registered again, in other pieces.
	d.mem.regions = slices.DeleteFunc(d.mem.regions, func(x *region) bool { return x == r })
	r.data, r.freed = nil, true
	return nil
}

// overlap returns a live region that shares bytes with size bytes at addr.
func (m *Memory) overlap(addr, size uint64) *region {
	if r := m.at(addr); r != nil {
		return r
	}
	i := sort.Search(len(m.regions), func(i int) bool { return m.regions[i].base > addr })
	for ; i < len(m.regions) && m.regions[i].base-addr < size; i++ {
		if r := m.regions[i]; !r.freed {
			return r
		}
	}
	return nil
}

// CopyIn implements [cuda.HostMemory]: the host copies src, the device the rest.
func (d *Device) CopyIn(h cuda.Stream, dst cuda.DevicePtr, src []byte) error {
	staged := append([]byte(nil), src...)
	_, err := d.copyHost("copy from pageable memory", h, uint64(dst), 0, src, staged)
	return err
}

// CopyOut implements [cuda.HostMemory].
func (d *Device) CopyOut(h cuda.Stream, dst []byte, src cuda.DevicePtr) error {
	const op = "copy to pageable memory"
	wait, err := d.copyHost(op, h, 0, uint64(src), dst, dst)
	if err != nil || len(dst) == 0 {
		return err
	}
	if err := d.await(bg, op, wait, d.costs.Wake); err != nil {
		return err
	}
	cost := d.hostCopy(len(dst))
	if err := d.enter(op, cost); err != nil {
		return err
	}
	d.world.Exit()
	return nil
}

// hostCopy is how long the host takes to copy n bytes.
func (d *Device) hostCopy(n int) time.Duration {
	return time.Duration(min(float64(n)/(1<<20)*float64(d.costs.HostCopy), float64(maxCost)))
}

// copyHost puts a copy into a stream of which host is one side; given is what
// the caller has there.
func (d *Device) copyHost(op string, h cuda.Stream, dst, src uint64, given, host []byte) (*drainCond, error) {
	cost := d.costs.Copy
	if dst != 0 {
		cost += d.hostCopy(len(host))
	}
	if err := d.call(op, cost); err != nil {
		return nil, err
	}
	defer d.world.Exit()
	s := d.streams[h]
	if s == nil {
		return nil, badHandle(op, "stream", uint64(h))
	}
	if err := s.capturing(op, true); err != nil {
		return nil, err
	}
	if len(host) == 0 {
		return nil, nil
	}
	if err := d.mem.knownAny(dst|src, uint64(len(host)), dst != 0); err != nil {
		return nil, invalid(op, "%v", err)
	}
	if r := d.mem.overlap(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(given)))), uint64(len(given))); r != nil {
		return nil, invalid(op, "the host's side is in %q, which is %s memory", r.name, r.kind)
	}
	c := s.push(cuda.OpCopy)
	c.a, c.b, c.c, c.pages = dst, src, uint64(len(host)), host
	s.advance()
	return d.drained(s), nil
}
