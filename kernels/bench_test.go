package kernels

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/layout"
)

// BenchmarkZeroBlocks zeroes blocks of 2 MiB (32 pages of 64 KiB) and reports
// bytes zeroed by the device's own clock, beside a fill of as many bytes in one
// run of memory. On the simulator that clock is virtual and says what the cost
// model gives; ns/op is then what simulating it costs.
func BenchmarkZeroBlocks(b *testing.B) {
	const pages, page, blocks = 32, 64 << 10, 33
	dev := openDevice(b)
	set, err := Load(dev)
	require.NoError(b, err)
	stream, err := dev.NewStream(cuda.StreamOptions{})
	require.NoError(b, err)
	arena, err := dev.Alloc(pages*page*blocks, cuda.AllocOptions{Name: "pool"})
	require.NoError(b, err)
	l := layout.Table{Blocks: blocks}
	for i := range uint64(pages) {
		l.Segments = append(l.Segments, layout.Segment{Base: uint64(arena) + i*page*blocks, Stride: page, Page: page})
	}
	table, err := NewTable(dev, l)
	require.NoError(b, err)
	unit := "GB/s"
	if dev.Info().Simulated {
		unit = "simulated-GB/s"
	}
	var batch cuda.Batch
	measure := func(b *testing.B, n int, fill func()) {
		bytes := float64(n * pages * page)
		b.SetBytes(int64(bytes))
		start, turns := dev.Clock().Now(), 0
		for b.Loop() {
			batch.Reset()
			fill()
			if err := dev.Submit(&batch); err != nil {
				b.Fatal(err)
			}
			if err := dev.SyncStream(context.Background(), stream); err != nil {
				b.Fatal(err)
			}
			turns++
		}
		b.ReportMetric(bytes*float64(turns)/float64((dev.Clock().Now()-start).Nanoseconds()), unit)
	}
	for _, n := range []int{1, 32} {
		ids := sequence(n)
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			measure(b, n, func() {
				if err := set.ZeroBlocks(&batch, stream, table, ids); err != nil {
					b.Fatal(err)
				}
			})
		})
		b.Run(fmt.Sprintf("%d/fill", n), func(b *testing.B) {
			measure(b, n, func() { batch.Fill8(stream, arena, 0, uint64(n)*pages*page) })
		})
	}
}
