package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
)

// zeroing puts the zeroing kernels that have run together with the launches
// that the gate told of, stream by stream, and so holds their writes against
// the ledger when they are made.
type zeroing struct {
	ledger   *ledger
	kernels  int
	bytes    float64 // true ones, of what was launched
	launched [3][][]kv.Block
	ran      [3]int // ahead of what was told
}

const (
	// zeroKernel is what the names of the embedded PTX's kernels begin with.
	zeroKernel = "zero_blocks"
	// idsPerKernel is how many blocks travel in a launch, as kernels.Set has it.
	idsPerKernel = 1012
)

// streams are the names of the streams by where the gate launches.
var streams = [3]string{core.OnCompute: computeName, core.OnIdle: "gate idle", core.OnBusy: "gate busy"}

// told takes in a launch.
func (z *zeroing) told(i loadgate.LaunchInfo) {
	m := z.ledger.cache
	z.bytes += float64(len(i.Blocks)) * float64(m.pages) * float64(m.held) * float64(m.scale())
	for part := range slices.Chunk(i.Blocks, idsPerKernel) {
		if z.ran[i.Where] > 0 {
			z.ran[i.Where]--
			z.ledger.zeroes(part)
			continue
		}
		z.launched[i.Where] = append(z.launched[i.Where], part)
	}
}

// saw takes in a kernel that has run.
func (z *zeroing) saw(r sim.Ran) {
	if !strings.HasPrefix(r.What, zeroKernel) {
		return
	}
	w := slices.Index(streams[:], r.Stream)
	if w < 0 {
		return // not the gate's: kernels are run once when they are loaded
	}
	z.kernels++
	if q := z.launched[w]; len(q) > 0 {
		z.ledger.zeroes(q[0])
		z.launched[w] = q[1:]
		return
	}
	z.ran[w]++
}

// check says whether all that was told has run, and nothing else.
func (z *zeroing) check() error {
	for w := range z.launched {
		if n := len(z.launched[w]); n > 0 || z.ran[w] > 0 {
			return fmt.Errorf("engine: on %s %d launches of zeroing did not run, and %d that ran were not told of", streams[w], n, z.ran[w])
		}
	}
	return nil
}
