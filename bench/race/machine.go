package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
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

// machine is a device, a gate over one pool of blocks, and a peer.
type machine struct {
	dev     *sim.Device
	reg     *event.Registry
	set     *kernels.Set
	compute *stream.Stream
	cache   *memory.Buffer // the blocks
	report  *memory.Buffer // what the checking step found
	table   layout.Table
	peer    *transport
	gate    *loadgate.Gate
	pool    loadgate.Pool
	forward cuda.Function
	rand    *rand.Rand
	tag     uint64 // of the first page that the peer offers in this round
}

// newMachine makes the simulated machine that one mode runs on. The race needs
// models, kernels in Go, which only the simulator has; so it does not pick a
// back end through cuda/auto.
func newMachine(mode loadgate.Mode, o sim.Options, open openTransport) (m *machine, err error) {
	m = &machine{rand: rand.New(rand.NewPCG(o.Seed, 0))}
	if m.dev, err = sim.New(o); err != nil {
		return nil, err
	}
	m.reg = event.NewRegistry(m.dev)
	if err := m.build(mode, open); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *machine) build(mode loadgate.Mode, open openTransport) (err error) {
	if m.set, err = kernels.Load(m.dev); err != nil {
		return err
	}
	if m.forward, err = m.dev.Model("race step"); err != nil {
		return err
	}
	if m.compute, err = stream.New(m.reg, cuda.StreamOptions{Name: "compute"}); err != nil {
		return err
	}
	if m.cache, err = memory.NewBuffer(m.dev, blocks*segments*page, cuda.AllocOptions{Name: "kv cache"}); err != nil {
		return err
	}
	if m.report, err = memory.NewBuffer(m.dev, arriving*segments*8, cuda.AllocOptions{Name: "report"}); err != nil {
		return err
	}
	m.table = layout.Table{Blocks: blocks}
	for i := range uint64(segments) {
		base := uint64(m.cache.Ptr()) + i*blocks*page
		m.table.Segments = append(m.table.Segments, layout.Segment{Base: base, Stride: page, Page: page})
	}
	if m.peer, err = open(m.dev, m.cache.Ptr(), m.cache.Size(), arriving*segments*page); err != nil {
		return err
	}
	m.gate, err = loadgate.New(m.reg, m.set, loadgate.Options{Mode: mode, Log: slog.New(slog.DiscardHandler), Compute: m.compute, Agent: m.peer.agent,
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: m.table, NeedsZero: true}}})
	if err != nil {
		return err
	}
	m.pool, err = m.gate.Pool(0)
	return err
}

// close ends what was made, last first.
func (m *machine) close() error {
	errs := []error{m.dev.Sync(context.Background())}
	if m.gate != nil {
		errs = append(errs, m.gate.Close(context.Background()))
	}
	if m.peer != nil {
		errs = append(errs, m.peer.close())
	}
	for _, b := range []*memory.Buffer{m.cache, m.report} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	if m.compute != nil {
		errs = append(errs, m.compute.Close())
	}
	if m.set != nil {
		errs = append(errs, m.set.Close())
	}
	return errors.Join(append(errs, m.reg.Close(), m.dev.Close())...)
}

// backlog draws how long the step that is under way will run.
func (m *machine) backlog() time.Duration {
	return minBacklog + time.Duration(m.rand.Int64N(int64(maxBacklog-minBacklog)))
}

// pages returns the addresses of the blocks' pages, block by block.
func (m *machine) pages(ts []kv.Tenancy) (addrs []uint64) {
	for _, t := range ts {
		for _, s := range m.table.Segments {
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
			if err := m.dev.Read(got, cuda.DevicePtr(addrs[i])); err != nil {
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
