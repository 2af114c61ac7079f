package main

import (
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// transport is the machine that the KV comes from, and the way from there.
type transport struct {
	agent  nixl.Agent // ours: it has the device's memory
	memory nixl.MemoryType
	peer   nixl.Peer
	// What the peer has to offer: its memory, and the address that descriptors
	// name it by. Written only while no transfer is under way.
	content []byte
	addr    uint64
	close   func() error
}

// openTransport connects n bytes of device memory at p with a peer that offers
// size bytes.
type openTransport func(dev *sim.Device, p cuda.DevicePtr, n, size uint64) (*transport, error)

// overSoftnic is the fabric inside this process, with a link whose chunks are
// late by a random time and out of order.
func overSoftnic(dev *sim.Device, p cuda.DevicePtr, n, size uint64) (*transport, error) {
	fabric := softnic.New(dev.World(), softnic.Options{Jitter: 200 * time.Microsecond, Reorder: true})
	t := &transport{memory: nixl.VRAM, close: fabric.Close}
	host := softnic.NewHostMemory(size)
	t.content, t.addr = host.Bytes(), host.Addr()
	var err error
	if t.agent, err = fabric.NewAgent("decode", dev.Memory()); err != nil {
		return t, err
	}
	prefill, err := fabric.NewAgent("prefill", host)
	if err != nil {
		return t, err
	}
	if _, err := t.agent.Register(nixl.VRAM, []nixl.Descriptor{{Addr: uint64(p), Len: n}}); err != nil {
		return t, err
	}
	if _, err := prefill.Register(nixl.DRAM, []nixl.Descriptor{{Addr: host.Addr(), Len: host.Len()}}); err != nil {
		return t, err
	}
	blob, err := prefill.Metadata()
	if err != nil {
		return t, err
	}
	t.peer, err = t.agent.AddPeer(blob)
	return t, err
}
