package kernels

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// benchShapes are blocks that engines have: pages of a decoder's layers, a hybrid
// pool that overlays pages of three sizes, and states in many small regions.
var benchShapes = []struct {
	name  string
	pages []uint64
	gap   uint64 // between page and stride
}{
	{"32x64KiB", repeated(32, 64<<10), 0},
	{"mixed", append(append(repeated(8, 8448), repeated(8, 41984)...), repeated(8, 73728)...), 0},
	{"64x1380B", repeated(64, 1380), 12},
}

func repeated(n int, page uint64) []uint64 {
	p := make([]uint64, n)
	for i := range p {
		p[i] = page
	}
	return p
}

// benchRig is a pool of one shape.
type benchRig struct {
	dev    cuda.Device
	set    *Set
	stream cuda.Stream
	table  *Table
	arena  cuda.DevicePtr
	size   uint64
	stage  Staging
	sums   cuda.DevicePtr
	batch  cuda.Batch
}

const benchBlocks = 33 // one is the null block

func newBenchRig(b *testing.B, dev cuda.Device, set *Set, stream cuda.Stream, pages []uint64, gap uint64) *benchRig {
	r := &benchRig{dev: dev, set: set, stream: stream}
	var block uint64
	for _, p := range pages {
		block += p
		r.size += benchBlocks * (p + gap)
	}
	alloc := func(n uint64) cuda.DevicePtr {
		p, err := dev.Alloc(n, cuda.AllocOptions{Name: b.Name()})
		require.NoError(b, err)
		return p
	}
	r.arena = alloc(r.size)
	l := layout.Table{Blocks: benchBlocks}
	at := uint64(r.arena)
	for _, p := range pages {
		l.Segments = append(l.Segments, layout.Segment{Base: at, Stride: p + gap, Page: p})
		at += benchBlocks * (p + gap)
	}
	var err error
	r.table, err = set.NewTable(l)
	require.NoError(b, err)
	r.stage = Staging{At: alloc(benchBlocks * block), Stride: block, Rows: benchBlocks}
	r.sums = alloc(8 * benchBlocks)
	return r
}

func (r *benchRig) close(b *testing.B) {
	require.NoError(b, r.table.Close())
	for _, p := range []cuda.DevicePtr{r.arena, r.stage.At, r.sums} {
		require.NoError(b, r.dev.Free(p))
	}
}

// measure reports the bytes that fill's launches write or, for a checksum, read.
func (r *benchRig) measure(b *testing.B, bytes uint64, fill func() error) {
	unit := "GB/s"
	if r.dev.Info().Simulated {
		unit = "simulated-GB/s"
	}
	b.SetBytes(int64(bytes))
	start, turns := r.dev.Clock().Now(), 0
	for b.Loop() {
		r.batch.Reset()
		if err := fill(); err != nil {
			b.Fatal(err)
		}
		if err := r.dev.Submit(&r.batch); err != nil {
			b.Fatal(err)
		}
		if err := r.dev.SyncStream(context.Background(), r.stream); err != nil {
			b.Fatal(err)
		}
		turns++
	}
	b.ReportMetric(float64(bytes)*float64(turns)/float64((r.dev.Clock().Now()-start).Nanoseconds()), unit)
}

// BenchmarkKernels runs each kernel on each shape, with one block and with 32, and
// reports bytes by the device's own clock: Kernels/KERNEL/SHAPE/BLOCKS. The names are
// the same on a GPU and on the simulator, whose clock is virtual and says what the
// cost model gives; ns/op is then what simulating it costs. fill_driver is the
// device's own fill of as many bytes in one run of memory, with zeros, for
// comparison, and sums are of bytes read.
func BenchmarkKernels(b *testing.B) {
	dev := openDevice(b)
	set, err := Load(dev)
	require.NoError(b, err)
	stream, err := dev.NewStream(cuda.StreamOptions{Name: "benchmark"})
	require.NoError(b, err)
	for _, shape := range benchShapes {
		r := newBenchRig(b, dev, set, stream, shape.pages, shape.gap)
		var p Preparation
		for _, n := range []int{1, 32} {
			ids := sequence(n)
			half := max(n/2, 1) // copies have a source each
			var copies, rows []Pair
			for i := range half {
				copies = append(copies, Pair{Dst: ids[i], Src: kv.Block(i + 1 + half)})
			}
			for i, id := range ids {
				rows = append(rows, Pair{Dst: kv.Block(i), Src: id})
			}
			var back []Pair
			for _, c := range rows {
				back = append(back, Pair{Dst: c.Src, Src: c.Dst})
			}
			block := r.table.Layout().Bytes()
			for _, k := range []struct {
				name  string
				bytes uint64
				add   func() error
			}{
				{"zero_blocks", uint64(n) * block, func() error { return set.ZeroBlocks(&r.batch, stream, r.table, ids) }},
				{"fill_blocks", uint64(n) * block, func() error { return set.FillBlocks(&r.batch, stream, r.table, ids, 0x7FC07FC0) }},
				{"reset_state", uint64(n) * block, func() error { return set.ResetState(&r.batch, stream, r.table, ids, r.stage.At) }},
				{"checksum_blocks", uint64(n) * block, func() error { return set.ChecksumBlocks(&r.batch, stream, r.table, ids, r.sums) }},
				{"copy_blocks", uint64(half) * block, func() error { return set.CopyBlocks(&r.batch, stream, r.table, copies) }},
				{"gather_blocks", uint64(n) * block, func() error { return set.GatherBlocks(&r.batch, stream, r.table, r.stage, rows) }},
				{"scatter_blocks", uint64(n) * block, func() error { return set.ScatterBlocks(&r.batch, stream, r.table, r.stage, back) }},
				{"prepare_step", uint64(n) * block, func() error {
					p.Reset() // half is zeroed, half copied
					if err := p.Copy(r.table, copies[:n/2]); err != nil {
						return err
					}
					if err := p.Zero(r.table, ids[n/2:]); err != nil {
						return err
					}
					return set.PrepareStep(&r.batch, stream, &p)
				}},
				{"fill_driver", uint64(n) * block, func() error {
					r.batch.Fill32(stream, r.arena, 0, uint64(n)*block/4)
					return nil
				}},
			} {
				b.Run(fmt.Sprintf("%s/%s/%d", k.name, shape.name, n), func(b *testing.B) { r.measure(b, k.bytes, k.add) })
			}
		}
		r.close(b)
	}
}
