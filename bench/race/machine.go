package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/gatetest"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
)

// The race needs a pool so small that the arriving request gets the very blocks
// that the leaving ones have just let go of.
const (
	leaving  = 2 // blocks of each of the two requests that leave
	arriving = 8 // blocks of the one that arrives
	blocks   = arriving + 1
	segments = 2
	page     = 4096 // bytes

	stepTime   = 100 * time.Microsecond
	minBacklog = 500 * time.Microsecond
	maxBacklog = 2500 * time.Microsecond
)

// machine is a rig, and a peer that is not always in this process.
type machine struct {
	*gatetest.Rig
	report  *memory.Buffer // what the checking step found
	peer    *transport
	forward cuda.Function
	rand    *rand.Rand
	tag     uint64 // of the first page that the peer offers in this round
}

// newMachine makes the simulated machine that one mode runs on. The race needs
// models, kernels in Go, which only the simulator has; so it does not pick a
// back end through cuda/auto.
func newMachine(mode loadgate.Mode, o sim.Options, open openTransport) (*machine, error) {
	m := &machine{rand: rand.New(rand.NewPCG(o.Seed, 0))}
	var err error
	m.Rig, err = gatetest.New(gatetest.Options{Sim: o, Blocks: blocks, Segments: segments, Page: page, Gate: loadgate.Options{Mode: mode},
		Connect: func(r *gatetest.Rig) (err error) {
			if m.peer, err = open(r.Sim, r.Base, r.Size, arriving*segments*page); err == nil {
				r.Agent = m.peer.agent
			}
			return err
		}})
	if err == nil {
		m.forward, err = m.Sim.Model("race step")
	}
	if err == nil {
		m.report, err = memory.NewBuffer(m.Device, arriving*segments*8, cuda.AllocOptions{Name: "report"})
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// close ends what was made.
func (m *machine) close() error {
	var errs []error
	if m.Rig != nil {
		errs = append(errs, m.Sim.Sync(context.Background()), m.Gate.Close(context.Background()))
	}
	if m.peer != nil {
		errs = append(errs, m.peer.close())
	}
	if m.report != nil {
		errs = append(errs, m.report.Close())
	}
	if m.Rig != nil {
		errs = append(errs, m.Rig.Close())
	}
	return errors.Join(errs...)
}

// backlog draws how long the step that is under way will run.
func (m *machine) backlog() time.Duration {
	return minBacklog + time.Duration(m.rand.Int64N(int64(maxBacklog-minBacklog)))
}

// pages returns the addresses of the blocks' pages, block by block.
func (m *machine) pages(ts []kv.Tenancy) (addrs []uint64) {
	for _, t := range ts {
		for _, s := range m.Table.Segments {
			addrs = append(addrs, s.Address(t.Block))
		}
	}
	return addrs
}

// fetch makes the read of the blocks' content from the peer, new in each round
// so that nothing that is left of an earlier one passes for it.
func (m *machine) fetch(ts []kv.Tenancy) (nixl.Transfer, error) {
	m.tag += arriving * segments
	spec := nixl.Spec{Op: nixl.Read, Peer: m.peer.peer, LocalMemory: m.peer.memory, RemoteMemory: nixl.DRAM}
	for i, addr := range m.pages(ts) {
		off := uint64(i) * page
		fill(m.peer.content[off:off+page], m.tag+uint64(i))
		spec.Local = append(spec.Local, nixl.Descriptor{Addr: addr, Len: page})
		spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: m.peer.addr + off, Len: page})
	}
	return m.peer.agent.NewTransfer(spec)
}

// count returns how many blocks are not as sent: by what the step that used
// them saw, or by what is there now.
func (m *machine) count(ts []kv.Tenancy) (corrupted int, err error) {
	got, want, word := make([]byte, page), make([]byte, page), make([]byte, 8)
	addrs := m.pages(ts)
	for b := range ts {
		bad := false
		for i := b * segments; i < (b+1)*segments; i++ {
			tag := m.tag + uint64(i)
			if err := m.report.Read(word, uint64(i)*8); err != nil {
				return 0, err
			}
			seen := binary.LittleEndian.Uint64(word)
			if seen != saw(tag, true) && seen != saw(tag, false) {
				return 0, fmt.Errorf("the step did not look at page %d", i)
			}
			if err := m.Sim.Read(got, cuda.DevicePtr(addrs[i])); err != nil {
				return 0, err
			}
			fill(want, tag)
			bad = bad || seen == saw(tag, false) || !bytes.Equal(got, want)
		}
		if bad {
			corrupted++
		}
	}
	return corrupted, nil
}

// fill writes the content of the page with that tag: no two of its words and no
// two tags have a word in common, and none is 0.
func fill(dst []byte, tag uint64) {
	for i := 0; i < len(dst); i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], tag<<16|uint64(i))
	}
}
