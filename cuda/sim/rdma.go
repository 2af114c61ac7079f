package sim

import (
	"slices"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.RDMADevice = (*Device)(nil)

// NIC is a device's memory as a NIC reaches it, for a fabric. Where writes are
// late ([Options.NICWritesLate]) the NIC itself sees them at once, everybody
// else when they are flushed. Its methods belong to the machine: see
// [vtime.World].
type NIC struct {
	m    *Memory
	keep bool
	late []lateWrite // oldest first
}

type lateWrite struct {
	addr uint64
	data []byte
}

// NIC returns the device's memory as a NIC reaches it.
func (d *Device) NIC() *NIC { return &d.nic }

// Read reads len(dst) bytes at addr. The error is an [*AccessError].
func (n *NIC) Read(addr uint64, dst []byte) error {
	if err := n.m.Read(addr, dst); err != nil {
		return err
	}
	n.overlay(addr, dst)
	return nil
}

// overlay puts what the NIC has written over what is visible at addr.
func (n *NIC) overlay(addr uint64, dst []byte) {
	for _, w := range n.late {
		switch {
		case w.addr >= addr && w.addr-addr < uint64(len(dst)):
			copy(dst[w.addr-addr:], w.data)
		case w.addr < addr && addr-w.addr < uint64(len(w.data)):
			copy(dst, w.data[addr-w.addr:])
		}
	}
}

// Write writes src at addr. The error is an [*AccessError].
func (n *NIC) Write(addr uint64, src []byte) error {
	if !n.keep {
		return n.m.Write(addr, src)
	}
	by := n.m.by
	n.m.by = nil
	if _, _, err := n.m.locate(addr, uint64(len(src)), true); err != nil {
		return err
	}
	n.m.observe(by, addr, uint64(len(src)), true)
	n.late = append(n.late, lateWrite{addr, slices.Clone(src)})
	return nil
}

// Owns reports whether all of the n bytes at addr are of one allocation.
func (n *NIC) Owns(addr, size uint64) bool {
	_, _, err := n.m.locate(addr, size, true)
	return err == nil
}

// Scale returns the cost scale of the allocation at addr, 1 where there is none.
func (n *NIC) Scale(addr uint64) uint32 { return n.m.Scale(addr) }

// Bandwidth returns the device memory's bandwidth.
func (n *NIC) Bandwidth() *vtime.Shared { return n.m.Bandwidth() }

// RDMA tells whether NICs' writes are late.
func (d *Device) RDMA() cuda.RDMA {
	return cuda.RDMA{Supported: true, NeedsFlush: d.nic.keep, CanFlush: true}
}

// PrepareRDMA checks that the bytes are allocated. Blocking copies are over when
// they return in any case. No time passes.
func (d *Device) PrepareRDMA(p cuda.DevicePtr, size uint64) (sync cuda.MemorySync, err error) {
	const op = "prepare for RDMA"
	if err := d.enter(op, 0); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	for at := uint64(p); size > 0; {
		r := d.mem.at(at)
		if r == nil {
			return 0, invalid(op, "%d bytes at %#x are in no allocation", size, at)
		}
		if r.kind == cuda.DeviceMemory {
			sync = cuda.SyncRange
		}
		n := min(size, r.base+r.size-at)
		at, size = at+n, size-n
	}
	return sync, nil
}

// FlushRDMA makes late writes visible, in the order in which they came; those
// whose memory has been freed are gone. It takes as long as a copy takes to
// begin (assumption).
func (d *Device) FlushRDMA() error {
	if err := d.call("flush RDMA writes", d.costs.CopyLatency); err != nil {
		return err
	}
	defer d.world.Exit()
	d.nic.flush()
	return nil
}

func (n *NIC) flush() {
	for i, w := range n.late {
		_ = n.m.Write(w.addr, w.data)
		n.late[i] = lateWrite{}
	}
	n.late = n.late[:0]
}
