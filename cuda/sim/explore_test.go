package sim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

// timeless is a cost table in which nothing takes time, so that the chooser
// decides every order.
func timeless() *Costs {
	return &Costs{MemoryShare: 1, SMBandwidth: 1e18, HostLink: 1e18, PeerLink: 1e18,
		PendingLaunches: 100, ResidentGrids: 16, Chunks: 1, MaxChunk: 1 << 20}
}

// explore runs the scenario through every answer of the chooser and returns
// how often it ended in which result.
func explore(t *testing.T, scenario func(r *rig) string) (ends map[string]int, runs int) {
	ends = map[string]int{}
	var visit func(prefix []uint)
	visit = func(prefix []uint) {
		runs++
		require.Less(t, runs, 20000, "the space is larger than expected")
		s := &vtime.Script{Answers: prefix}
		d, err := New(Options{Costs: timeless(), Bandwidth: 1e18, Chooser: s})
		require.NoError(t, err)
		ends[scenario(&rig{Device: d, t: t})]++
		require.NoError(t, d.Close())
		for i := len(prefix); i < len(s.Taken); i++ {
			for k := 1; k < s.Taken[i].Of; k++ {
				next := make([]uint, i, i+1)
				copy(next, prefix)
				visit(append(next, uint(k)))
			}
		}
	}
	visit(nil)
	return ends, runs
}

// A zeroing and a copy to the same bytes, on two streams.
func zeroAndCopy(ordered bool) func(r *rig) string {
	return func(r *rig) string {
		p, src := r.alloc("p", 64), r.alloc("src", 64)
		require.NoError(r.t, r.Write(src, []byte{7}))
		gate, load, e := r.stream("gate"), r.stream("load"), r.event()
		r.submit(func(b *cuda.Batch) {
			b.Fill8(gate, p, 0, 64)
			b.Record(gate, e)
			if ordered {
				b.WaitEvent(load, e)
			}
			b.Copy(load, p, src, 64)
		})
		require.NoError(r.t, r.Sync(bg))
		return fmt.Sprint(r.read(p, 1)[0])
	}
}

func TestExploringFindsTheRaceAndExhaustsTheOrderedSpace(t *testing.T) {
	ends, runs := explore(t, zeroAndCopy(false))
	require.Positive(t, ends["7"])
	require.Positive(t, ends["0"], "the copy is lost in some order")
	t.Logf("unordered: %d runs, %v", runs, ends)
	ends, runs = explore(t, zeroAndCopy(true))
	require.Equal(t, map[string]int{"7": runs}, ends)
	t.Logf("ordered: %d runs, %v", runs, ends)
}

// Two host threads submit to one stream: each order of the batches, and of
// their commands, can happen; a single command is never split.
func TestExploringTwoSubmitters(t *testing.T) {
	ends, runs := explore(t, func(r *rig) string {
		p, s := r.alloc("p", 64), r.stream("s")
		left := 2
		for v := range uint8(2) {
			r.world.Go(fmt.Sprint("submitter ", v), func() {
				var b cuda.Batch
				b.Fill8(s, p, v+1, 1)
				b.Fill8(s, p+1, v+1, 1)
				if err := r.Submit(&b); err != nil {
					r.t.Error(err)
				}
				left--
			})
		}
		for left > 0 {
			require.NoError(r.t, r.world.Sleep(bg, 1))
		}
		require.NoError(r.t, r.Sync(bg))
		return fmt.Sprint(r.read(p, 2))
	})
	t.Logf("%d runs, %v", runs, ends)
	require.Len(t, ends, 4)
}
