package sim

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

// group is the devices of one world. They share the address space, and a link for
// each direction joins each two of them.
type group struct {
	devices atomic.Pointer[[]*Device] // open ones; written under the lock of groups
	opened  uint64                    // so far
	links   map[[2]*Device]*vtime.Shared
}

var groups = struct {
	sync.Mutex
	m map[*vtime.World]*group
}{m: map[*vtime.World]*group{}}

// join makes d one of its world's devices.
func (d *Device) join() {
	groups.Lock()
	defer groups.Unlock()
	n := groups.m[d.world]
	if n == nil {
		n = &group{links: map[[2]*Device]*vtime.Shared{}}
		n.devices.Store(new([]*Device))
		groups.m[d.world] = n
	}
	d.group, d.serial = n, n.opened
	n.opened++
	all := append(slices.Clone(*n.devices.Load()), d)
	n.devices.Store(&all)
}

// quit ends that, with the machine locked.
func (d *Device) quit() {
	groups.Lock()
	defer groups.Unlock()
	n := d.group
	left := slices.DeleteFunc(slices.Clone(*n.devices.Load()), func(x *Device) bool { return x == d })
	n.devices.Store(&left)
	for _, x := range left {
		delete(x.access, d)
	}
	for pair := range n.links {
		if pair[0] == d || pair[1] == d {
			delete(n.links, pair)
		}
	}
	if len(left) == 0 {
		delete(groups.m, d.world)
	}
}

// others returns the world's other devices.
func (d *Device) others(yield func(*Device) bool) {
	for _, x := range *d.group.devices.Load() {
		if x != d && !yield(x) {
			return
		}
	}
}

// link returns what copies from one device's memory to another's share.
func (n *group) link(from, to *Device) *vtime.Shared {
	pair := [2]*Device{from, to}
	if n.links[pair] == nil {
		n.links[pair] = vtime.NewShared(from.world, from.name+" to "+to.name, from.costs.PeerLink)
	}
	return n.links[pair]
}

// linkFor returns the link of a copy from one device's memory to another's, or nil.
func (d *Device) linkFor(c *command) *vtime.Shared {
	_, dst, _ := d.mem.locateAny(c.a, 1, true)
	_, src, _ := d.mem.locateAny(c.b, 1, false)
	if dst == nil || src == nil || dst.owner == src.owner || dst.kind != cuda.DeviceMemory || src.kind != cuda.DeviceMemory {
		return nil
	}
	return d.group.link(src.owner, dst.owner)
}

// strand tells devices whose streams wait for work of d, which will never run.
func (d *Device) strand() {
	for x := range d.others {
		for _, s := range x.order {
			if s.waiting && s.queue[s.head].on.d == d {
				x.die(s.stranded())
			}
		}
	}
}

// stranded is the error of a wait at the head of s for a device that has gone.
func (s *stream) stranded() error {
	on := s.queue[s.head].on
	return &cuda.Error{Code: cuda.ErrLaunchFailed, Op: cuda.OpWaitEvent.String(),
		Detail: fmt.Sprintf("%s waits for %s of device %s, which is dead or closed", s, on, on.d.name)}
}

// far returns the live region of another device that addr lies in, or nil.
func (m *Memory) far(addr uint64) *region {
	for x := range m.d.others {
		if r := x.mem.at(addr); r != nil {
			return r
		}
	}
	return nil
}

// holder returns the memory that addr is of: that of another device, or m.
func (m *Memory) holder(addr cuda.DevicePtr) *Memory {
	if r := m.far(uint64(addr)); r != nil {
		return r.owner.mem
	}
	return m
}

// reaches reports whether the device's kernels and fills get at a region of
// another.
func (m *Memory) reaches(r *region) bool {
	return r.kind != cuda.DeviceMemory || m.d.access[r.owner]
}

// knownAny is known for copies, which go to memory of all devices.
func (m *Memory) knownAny(addr, size uint64, write bool) error {
	for x := range m.d.others {
		if r := x.mem.below(addr); r != nil && !r.freed && addr-r.base < r.size {
			return x.mem.known(addr, size, write)
		}
	}
	return m.known(addr, size, write)
}

// locateAny is locate for copies, which go to memory of all devices.
func (m *Memory) locateAny(addr, size uint64, write bool) ([]byte, *region, error) {
	if r := m.far(addr); r != nil {
		return r.part(addr, size, write)
	}
	return m.locate(addr, size, write)
}
