package loadgate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// RDMAReport says what the gate found out about its device and NICs, and does
// about it.
type RDMAReport struct {
	// Known: the device tells; it is a [cuda.RDMADevice]. Of one that does not,
	// the gate takes it that it sees a NIC's writes by itself.
	Known bool
	cuda.RDMA
	// Memory is that of the pools, readied when the gate was made.
	Memory []RDMAMemory
	// Flushes counts those behind loads that have arrived, one for all that a
	// call found so. There are none where the device needs none.
	Flushes uint64
}

// RDMAMemory is a run of a pool's memory.
type RDMAMemory struct {
	Pool kv.PoolID
	Base cuda.DevicePtr
	Size uint64
	// Sync says by what blocking copies and fills of it are over when they
	// return. The gate makes none.
	Sync cuda.MemorySync
	// Err is nil, or [cuda.ErrNotSupported] where there is no such means: then
	// whoever makes blocking copies or fills of this memory has to synchronise
	// before bytes of it are sent.
	Err error
}

// RDMA reports about the device and NICs. Without an agent nothing is asked.
func (g *Gate) RDMA() RDMAReport {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.rdma
	r.Memory = slices.Clone(r.Memory)
	return r
}

// readyRDMA readies the memory of the pools for the NIC.
func (g *Gate) readyRDMA() error {
	dev, ok := g.reg.Device().(cuda.RDMADevice)
	if !ok {
		return nil
	}
	g.rdma = RDMAReport{Known: true, RDMA: dev.RDMA()}
	if g.rdma.Supported && g.rdma.NeedsFlush {
		if !g.rdma.CanFlush {
			return fmt.Errorf("loadgate: the device needs a flush behind what a NIC writes, and has none: %w", cuda.ErrNotSupported)
		}
		g.flusher = dev
	}
	for i := range g.pools {
		p := &g.pools[i]
		for _, s := range spans(&p.Table) {
			m := RDMAMemory{Pool: kv.PoolID(i), Base: cuda.DevicePtr(s.start), Size: s.end - s.start}
			if m.Sync, m.Err = dev.PrepareRDMA(m.Base, m.Size); m.Err != nil && !errors.Is(m.Err, cuda.ErrNotSupported) {
				return fmt.Errorf("loadgate: pool %d (%s): %w", i, p.Name, m.Err)
			}
			g.rdma.Memory = append(g.rdma.Memory, m)
		}
	}
	return nil
}

type span struct{ start, end uint64 }

// spans returns the runs of memory that a table's segments lie in, gaps between
// their pages included, by address.
func spans(t *layout.Table) (out []span) {
	if t.Blocks == 0 {
		return nil
	}
	all := make([]span, 0, len(t.Segments))
	for _, s := range t.Segments {
		all = append(all, span{s.Base, s.Base + uint64(t.Blocks-1)*s.Stride + s.Page})
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for _, s := range all {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// flushArrived makes what has arrived visible to the device, where the device
// needs that. Loads that are told of before it has happened would be read too
// soon. Where it fails nobody knows what the device sees of them.
func (g *Gate) flushArrived(arrived []arrival) {
	if g.flusher == nil || !slices.ContainsFunc(arrived, arrival.inbound) {
		return
	}
	err := g.flusher.FlushRDMA()
	g.rdma.Flushes++
	if err == nil {
		return
	}
	for i := range arrived {
		if a := &arrived[i]; a.inbound() {
			a.unseen = fmt.Errorf("loadgate: bytes that arrived: %w", err)
		}
	}
}

// arrival is a transfer that is over.
type arrival struct {
	t      *ticket
	done   bool  // it succeeded
	err    error // or why not
	unseen error // why the device may not see what came
}

func (a arrival) inbound() bool { return a.done && a.t.kind == core.Load }
