//go:build cgo && linux

package softcuda_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// runKernels brings every kernel, with ids in arguments of both sizes and in
// memory, over pages of mixed sizes, and returns all memory that they wrote.
func runKernels(t *testing.T, d cuda.Device) []byte {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	set, err := kernels.Load(d)
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	const blocks = 1100
	sizes := []struct{ page, stride uint64 }{{1000, 1024}, {92, 92}, {513, 1027}, {8448, 8448}}
	total := uint64(0)
	for _, x := range sizes {
		total += blocks*x.stride + 64
	}
	content := make([]byte, total)
	for i := range content {
		content[i] = byte(rnd.Uint32())
	}
	base, err := d.Alloc(total, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, d.Write(base, content))
	table := layout.Table{Blocks: blocks}
	rowBytes, at := uint64(0), uint64(base)
	for _, x := range sizes {
		table.Segments = append(table.Segments, layout.Segment{Base: at + 4, Stride: x.stride, Page: x.page})
		at += blocks*x.stride + 64
		rowBytes += x.page
	}
	k, err := kernels.NewTable(d, table)
	require.NoError(t, err)
	row, err := d.Alloc(rowBytes, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, d.Write(row, content[:rowBytes]))
	sums, err := d.Alloc(8*blocks, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, d.Write(sums, make([]byte, 8*blocks)))

	few, many := make([]kv.Block, 40), make([]kv.Block, 300)
	for i := range few {
		few[i] = kv.Block(rnd.IntN(blocks))
	}
	for i := range many {
		many[i] = kv.Block(rnd.IntN(blocks+20) - 10)
	}
	ids, err := d.AllocPinned(4*64, cuda.AllocOptions{})
	require.NoError(t, err)
	for i := range 64 {
		ids.Host[4*i], ids.Host[4*i+1], ids.Host[4*i+2], ids.Host[4*i+3] = byte(16*i), byte(i/16), 0, 0
	}
	var b cuda.Batch
	require.NoError(t, set.ZeroBlocks(&b, s, k, few))
	require.NoError(t, set.ZeroBlocks(&b, s, k, many))
	require.NoError(t, set.ResetState(&b, s, k, many[:30], row))
	require.NoError(t, set.ResetStateAt(&b, s, k, kernels.List{IDs: ids.Device, Max: 64}, row))
	require.NoError(t, set.ChecksumBlocks(&b, s, k, many, sums))
	require.NoError(t, d.Submit(&b))
	require.NoError(t, d.SyncStream(bg, s))
	out := make([]byte, total+8*blocks)
	require.NoError(t, d.Read(out[:total], base))
	require.NoError(t, d.Read(out[total:], sums))
	require.NotEqual(t, content, out[:total])
	return out
}

// The same PTX leaves the same bytes behind the driver's interface as on the
// simulator. Checksums hold no addresses, so they are compared as well.
func TestSameBytesOnBothDevices(t *testing.T) {
	plain, err := sim.New(sim.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, plain.Close()) }()
	d, _ := open(t, sim.Options{Real: true})
	want, got := runKernels(t, plain), runKernels(t, d)
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("byte %d of %d is %#x on the simulator and %#x over the driver", i, len(want), want[i], got[i])
		}
	}
}
