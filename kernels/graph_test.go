package kernels

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// A graph holds the launch of zero_blocks once, and zeroes the blocks that are
// listed in memory each time, as many as the count says.
func TestGraphOfZeroing(t *testing.T) {
	const span, blocks, most = 5000, 40, 16
	r := newRig(t, blocks*span)
	g, ok := r.dev.(cuda.Grapher)
	if !ok {
		t.Skipf("%s captures no streams", r.dev.Info().Backend)
	}
	l := layout.Table{Blocks: blocks, Segments: []layout.Segment{{Base: r.arena, Stride: span, Page: 4321}}}
	table := r.table(t, l, 0)
	list := List{IDs: r.upload(t, make([]byte, 4*most)), Max: most, Count: r.upload(t, make([]byte, 4))}

	require.NoError(t, g.BeginCapture(r.stream, cuda.CaptureRelaxed))
	var b cuda.Batch
	require.NoError(t, r.set.ZeroBlocksAt(&b, r.stream, table, list))
	require.NoError(t, r.dev.Submit(&b))
	graph, err := g.EndCapture(r.stream)
	require.NoError(t, err)
	exec, err := g.Instantiate(graph)
	require.NoError(t, err)
	require.NoError(t, g.DestroyGraph(graph))

	mem := make([]byte, r.size)
	rand.NewChaCha8([32]byte{2}).Read(mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	for i, ids := range [][]kv.Block{{3, 1, 39}, {}, {7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}, {5, -1, 5, 40}, {2}} {
		require.NoError(t, r.dev.Write(list.Count, binary.LittleEndian.AppendUint32(nil, uint32(len(ids)))))
		require.NoError(t, r.dev.Write(list.IDs, idBytes(ids)))
		b.Reset()
		b.LaunchGraph(r.stream, exec)
		require.NoError(t, r.dev.Submit(&b))
		require.NoError(t, r.dev.SyncStream(context.Background(), r.stream))
		plainZero(&l, r.arena, mem, ids)
		requireSame(t, mem, r.read(t, r.arena, r.size), fmt.Sprintf("arena after launch %d", i))
	}
	require.NoError(t, g.DestroyGraphExec(exec))
	require.NoError(t, table.Close())
}
