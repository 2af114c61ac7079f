package standin

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// BenchmarkZeroBeside is a step of the stand-in alone, and beside zeroing in a stream
// of normal and of high priority: what a step then takes from its submission to its
// end (p50, p99), and how much is zeroed meanwhile. The step reads and compares 512 blocks
// of 32 pages of 64 KiB; a launch zeroes 64 blocks, and there is always one waiting.
func BenchmarkZeroBeside(b *testing.B) {
	dev, err := auto.Open(b.Output(), auto.Options{Sim: sim.Options{SMs: 4}})
	require.NoError(b, err)
	defer func() { require.NoError(b, dev.Close()) }()
	blocks, segments, page, zeroed, steps, label := 512, 32, 64<<10, 64, 300, ""
	if dev.Info().Simulated {
		blocks, segments, page, zeroed, steps, label = 8, 2, 4096, 2, 10, "simulated-"
	}
	const tokens = 16
	set, err := Load(dev)
	require.NoError(b, err)
	zero, err := kernels.Load(dev)
	require.NoError(b, err)
	size := uint64(blocks * segments * page)
	alloc := func(n uint64) cuda.DevicePtr {
		p, err := dev.Alloc(n, cuda.AllocOptions{Name: "beside"})
		require.NoError(b, err)
		return p
	}
	base, other := alloc(size), alloc(size) // what is checked, and what is zeroed
	pages, err := NewPages(base, blocks, segments, page, tokens)
	require.NoError(b, err)
	l := layout.Table{Blocks: blocks, RealNull: true}
	for i := range uint64(segments) {
		l.Segments = append(l.Segments, layout.Segment{Base: uint64(other) + i*uint64(blocks*page), Stride: uint64(page), Page: uint64(page)})
	}
	table, err := zero.NewTable(l)
	require.NoError(b, err)
	var ids []kv.Block
	for i := range zeroed {
		ids = append(ids, kv.Block(i*blocks/zeroed))
	}
	items, err := dev.AllocPinned(uint64(blocks*ItemBytes), cuda.AllocOptions{Name: "items"})
	require.NoError(b, err)
	report := alloc(8 * uint64(blocks*segments))
	var all []Item
	for i := range blocks {
		all = append(all, Item{Block: kv.Block(i), Request: 1, Position: uint32(tokens * i), End: tokens})
	}
	PutItems(items.Host, all)
	compute, err := dev.NewStream(cuda.StreamOptions{Name: "steps"})
	require.NoError(b, err)
	mark := make([]cuda.Mark, 1)
	mark[0].Event, err = dev.NewEvent()
	require.NoError(b, err)
	var batch cuda.Batch
	set.Write(&batch, compute, pages, items.Device, blocks)
	require.NoError(b, dev.Submit(&batch))
	require.NoError(b, dev.SyncStream(b.Context(), compute))
	// over polls until the event has fired.
	over := func(m []cuda.Mark) bool {
		m[0].State = cuda.MarkPending
		require.NoError(b, dev.Poll(m))
		return m[0].State == cuda.MarkFired
	}
	for _, c := range []struct {
		name   string
		beside bool
		high   bool
	}{{"alone", false, false}, {"normal_priority", true, false}, {"high_priority", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			s, err := dev.NewStream(cuda.StreamOptions{Name: "zeroing", HighPriority: c.high})
			require.NoError(b, err)
			// Two launches are under way, so that one waits when the other is over.
			var ends [2][]cuda.Mark
			for i := range ends {
				e, err := dev.NewEvent()
				require.NoError(b, err)
				ends[i] = []cuda.Mark{{Event: e}}
			}
			clk := dev.Clock()
			var took []time.Duration
			var launches int
			var span time.Duration
			for b.Loop() {
				begin := clk.Now()
				for range steps {
					batch.Reset()
					set.Check(&batch, compute, pages, items.Device, blocks, 1, report, 0)
					batch.Record(compute, mark[0].Event)
					start := clk.Now()
					require.NoError(b, dev.Submit(&batch))
					for !over(mark) {
						if clk.Now()-start > 10*time.Second {
							b.Fatal("a step is not over after 10s")
						}
						for i := range ends {
							if !c.beside || !over(ends[i]) {
								continue
							}
							batch.Reset()
							require.NoError(b, zero.ZeroBlocks(&batch, s, table, ids))
							batch.Record(s, ends[i][0].Event)
							require.NoError(b, dev.Submit(&batch))
							launches++
						}
					}
					took = append(took, clk.Now()-start)
				}
				span += clk.Now() - begin
			}
			require.NoError(b, dev.SyncStream(b.Context(), s))
			require.NoError(b, dev.DestroyStream(s))
			for i := range ends {
				require.NoError(b, dev.DestroyEvent(ends[i][0].Event))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1e6, label+"step-p50-us")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1e6, label+"step-p99-us")
			b.ReportMetric(float64(launches*zeroed*segments*page)/1e9/span.Seconds(), label+"zeroed-GB/s")
			b.ReportMetric(0, "ns/op")
			for i, word := range words(b, dev, report, blocks*segments) {
				if step, wrong := Report(word); step != 1 || wrong {
					b.Fatalf("page %d of the check: step %d, wrong %t", i, step, wrong)
				}
			}
		})
	}
	require.NoError(b, table.Close())
	require.NoError(b, zero.Close())
	require.NoError(b, set.Close())
}

// words reads 64-bit words of the device's.
func words(b *testing.B, dev cuda.Device, at cuda.DevicePtr, n int) []uint64 {
	text := make([]byte, 8*n)
	require.NoError(b, dev.Read(text, at))
	out := make([]uint64, n)
	for i := range out {
		for k := range 8 {
			out[i] |= uint64(text[8*i+k]) << (8 * k)
		}
	}
	return out
}
