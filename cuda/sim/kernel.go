package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kvgate/kvgate/cuda/sim/ptx"
	"github.com/kvgate/kvgate/cuda/sim/race"
)

// maxChunkBlocks bounds the thread blocks of a chunk, since the machine is
// locked while they are interpreted.
const maxChunkBlocks = 512

// kernelWork is a launch of PTX: its stores land at the start of each chunk,
// because only then is known how many there are. What its thread blocks sleep, or
// compute beyond what is free, passes before the next chunk. When all of them wait for
// memory, the launch goes on when that has changed.
type kernelWork struct {
	t      *task
	run    *ptx.Run
	blocks uint64 // a chunk
	bytes  uint64 // counted so far
	count  ptx.Count
	stuck  bool

	by      *race.Op // for who checks
	touched extents
}

// extents are accesses of a kernel that the checker has not been told of: reads and
// writes.
type extents [2][]extent

type extent struct{ from, to uint64 }

func (t *extents) add(addr, size uint64, write bool) {
	k := 0
	if write {
		k = 1
	}
	if n := len(t[k]); n > 0 && t[k][n-1].to == addr {
		t[k][n-1].to += size
		return
	}
	t[k] = append(t[k], extent{addr, addr + size})
}

// tell tells of them, each byte once.
func (w *kernelWork) tell() {
	for k := range w.touched {
		list := w.touched[k]
		slices.SortFunc(list, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
		for i := 0; i < len(list); {
			x := list[i]
			for i++; i < len(list) && list[i].from <= x.to; i++ {
				x.to = max(x.to, list[i].to)
			}
			w.t.d.mem.observe(w.by, x.from, x.to-x.from, k == 1)
		}
		w.touched[k] = list[:0]
	}
}

func (w *kernelWork) step() (float64, bool, error) {
	t := w.t
	if limit := t.d.costs.KernelTime; t.at-t.begun >= limit {
		return 0, true, w.run.End(fmt.Sprintf("after %v", limit))
	}
	if w.stuck {
		w.run.Touch()
	}
	p, err := w.run.Advance(w.blocks)
	w.tell()
	w.stuck = p.Stuck
	t.floor = time.Duration(float64(p.Wait) * t.d.world.Slow())
	read, written := w.run.Traffic()
	bytes := read + written - w.bytes
	w.bytes = read + written
	done := w.run.Count()
	t.d.stats.Kernels.Add(done)
	t.d.stats.Kernels.Sub(w.count)
	w.count = done
	return float64(bytes), p.Done, err
}

// await makes the launch go on when memory that it waits for has changed, or when it
// has taken as long as one may.
func (w *kernelWork) await() {
	t := w.t
	d := t.d
	gone := false
	limit := d.world.At(t.begun+d.costs.KernelTime, "kernel's time is over", func() {
		gone = true
		t.step()
	})
	d.world.Watch("kernel's memory", func() bool { return gone || d.stopped() || w.run.Changed() }, func() {
		if !gone && !d.stopped() {
			d.world.Cancel(limit)
			t.step()
		}
	})
}
