package kernels

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// poolShape is a layout of blocks, of public models' sizes or for a difficulty.
type poolShape struct {
	name     string
	segments int
	page     uint64
	outer    bool   // a block's pages lie together; else each segment is a run of its own
	gap      uint64 // bytes between a page and the next that are someone else's
}

var (
	attention = poolShape{name: "layers", segments: 32, page: 64 << 10}
	mla       = poolShape{name: "layers-MLA", segments: 61, page: 73728}
	mixed     = poolShape{name: "layers-small", segments: 30, page: 8448}
	tinyPages = poolShape{name: "layers-tiny", segments: 64, page: 4096}
	oddStates = poolShape{name: "states-odd", segments: 24, page: 1380}
	merged    = poolShape{name: "merged-layers", segments: 10, page: 2 << 20}
	blockwise = poolShape{name: "block-by-block", segments: 32, page: 64 << 10, outer: true}
	strided   = poolShape{name: "one-strided-segment", segments: 1, page: 64 << 10, gap: 64 << 10}
	wide      = poolShape{name: "one-wide-segment", segments: 1, page: 1 << 20, gap: 256 << 10}
	states    = poolShape{name: "states", segments: 30, page: 512 << 10}
	onePage   = poolShape{name: "one-page", segments: 1, page: 4096}
)

// table lays a shape into memory of that size, as far as whole blocks go.
func (s poolShape) table(base, size uint64) layout.Table {
	step := s.page + s.gap
	perBlock := step * uint64(s.segments)
	blocks := size / perBlock
	t := layout.Table{Blocks: int(blocks), RealNull: true}
	for i := range uint64(s.segments) {
		at, stride := base+i*step*blocks, step
		if s.outer {
			at, stride = base+i*step, perBlock
		}
		t.Segments = append(t.Segments, layout.Segment{Base: at, Stride: stride, Page: s.page})
	}
	return t
}

// bandwidthEffort is how much is done for a row. A simulated device runs the
// kernels' PTX on the CPU, and gets a rehearsal's sizes.
type bandwidthEffort struct {
	pool     uint64 // bytes
	blocks   int    // at most, in one launch
	page     uint64 // at most
	sample   time.Duration
	samples  int
	launches int // at most, in one sample
}

var (
	effortOnGPU     = bandwidthEffort{pool: 8 << 30, blocks: 1 << 20, page: 1 << 30, sample: 10 * time.Millisecond, samples: 9, launches: 200}
	effortSimulated = bandwidthEffort{pool: 32 << 20, blocks: 4, page: 8 << 10, samples: 2, launches: 2}
)

// bandwidthRig is memory that kernels and the driver's fills go through in turn.
type bandwidthRig struct {
	dev    cuda.Device
	effort bandwidthEffort
	stream cuda.Stream
	mark   [1]cuda.Mark
	base   cuda.DevicePtr
	size   uint64
	turn   uint64 // where the next fill goes
	batch  cuda.Batch
}

func newBandwidthRig(b testing.TB) *bandwidthRig {
	r := &bandwidthRig{dev: openDevice(b), effort: effortOnGPU}
	i := r.dev.Info()
	if i.Simulated {
		r.effort = effortSimulated
	}
	var err error
	r.stream, err = r.dev.NewStream(cuda.StreamOptions{Name: "measured"})
	require.NoError(b, err)
	r.mark[0].Event, err = r.dev.NewEvent()
	require.NoError(b, err)
	r.size = min(r.effort.pool, i.Memory/4) &^ (1<<20 - 1)
	r.base, err = r.dev.Alloc(r.size, cuda.AllocOptions{Name: "measured"})
	require.NoError(b, err)
	// The clocks are up before the first figure, and every byte was touched.
	for start := r.dev.Clock().Now(); r.dev.Clock().Now()-start < 300*time.Millisecond; {
		_, err := r.timed(func() error { r.batch.Fill32(r.stream, r.base, 0, r.size/4); return nil })
		require.NoError(b, err)
		if i.Simulated {
			break
		}
	}
	return r
}

// timed returns how long it takes until what add puts into a batch is over. It asks
// without a pause: a sleep would be in the figures.
func (r *bandwidthRig) timed(add func() error) (time.Duration, error) {
	r.batch.Reset()
	clk := r.dev.Clock()
	start := clk.Now()
	if err := add(); err != nil {
		return 0, err
	}
	r.batch.Record(r.stream, r.mark[0].Event)
	built := clk.Now() // the host's work on a batch is not the device's
	if r.batch.Len() == 1 {
		built = start // what add submitted by itself is
	}
	if err := r.dev.Submit(&r.batch); err != nil {
		return 0, err
	}
	for {
		r.mark[0].State = cuda.MarkPending
		if err := r.dev.Poll(r.mark[:]); err != nil || r.mark[0].State == cuda.MarkFired {
			return clk.Now() - built, err
		}
		if took := clk.Now() - built; took > 10*time.Second {
			return 0, fmt.Errorf("not over after %v", took)
		}
	}
}

// fills adds n fills of the driver's, which go through the memory.
func (r *bandwidthRig) fills(n int, size uint64, v uint32) error {
	size = min(size, r.size) &^ 3
	for range n {
		if r.turn+size > r.size {
			r.turn = 0
		}
		r.batch.Fill32(r.stream, r.base+cuda.DevicePtr(r.turn), v, size/4)
		r.turn += (size + 255) &^ 255
	}
	return nil
}

// rowFiller is a device with the driver's own fill of rows.
type rowFiller interface {
	FillRows(s cuda.Stream, dst cuda.DevicePtr, pitch uint64, v uint32, width, rows uint64) error
}

// bandwidthCase is one row: a kernel on a shape.
type bandwidthCase struct {
	kernel   string
	shape    poolShape
	blocks   int // of one launch
	inMemory bool
	template bool
	// run: the blocks of a launch lie one behind the other, so that with one segment
	// they are a strided run, which the driver can fill as well.
	run bool
}

func (c bandwidthCase) name() string {
	name := fmt.Sprintf("%s/%s/%d", c.kernel, c.shape.name, c.blocks)
	if c.template {
		name += "/template"
	}
	if c.inMemory {
		name += "/ids-in-memory"
	}
	return name
}

var bandwidthCases = []bandwidthCase{
	{kernel: "zero_blocks", shape: onePage, blocks: 1}, // what a launch costs
	{kernel: "zero_blocks", shape: attention, blocks: 1},
	{kernel: "zero_blocks", shape: attention, blocks: 8},
	{kernel: "zero_blocks", shape: attention, blocks: 64},
	{kernel: "zero_blocks", shape: attention, blocks: 256},
	{kernel: "zero_blocks", shape: attention, blocks: 256, inMemory: true},
	{kernel: "zero_blocks", shape: blockwise, blocks: 64},
	{kernel: "zero_blocks", shape: mla, blocks: 32},
	{kernel: "zero_blocks", shape: merged, blocks: 16},
	{kernel: "zero_blocks", shape: mixed, blocks: 512},
	{kernel: "zero_blocks", shape: tinyPages, blocks: 512},
	{kernel: "zero_blocks", shape: oddStates, blocks: 1000},
	{kernel: "zero_blocks", shape: strided, blocks: 1000, run: true},
	{kernel: "zero_blocks", shape: wide, blocks: 256, run: true},
	{kernel: "reset_state", shape: states, blocks: 4},
	{kernel: "reset_state", shape: states, blocks: 32},
	{kernel: "reset_state", shape: states, blocks: 32, template: true},
	{kernel: "reset_state", shape: states, blocks: 32, template: true, inMemory: true},
	{kernel: "reset_state", shape: oddStates, blocks: 1000, template: true},
	{kernel: "checksum_blocks", shape: attention, blocks: 8},
	{kernel: "checksum_blocks", shape: attention, blocks: 256},
	{kernel: "checksum_blocks", shape: attention, blocks: 256, inMemory: true},
	{kernel: "checksum_blocks", shape: oddStates, blocks: 1000},
}

// bandwidthJob is a case that is ready to run.
type bandwidthJob struct {
	*bandwidthRig
	c     bandwidthCase
	set   *Set
	table *Table
	order []kv.Block // the blocks, in the order in which launches take them
	next  int
	ids   cuda.DevicePtr // the order, in device memory
	row   cuda.DevicePtr // of a reset
	want  []byte         // the row
	sums  cuda.DevicePtr
	used  []kv.Block // by the last launch
}

func (r *bandwidthRig) prepare(b testing.TB, set *Set, c bandwidthCase) *bandwidthJob {
	c.blocks, c.shape.page = min(c.blocks, r.effort.blocks), min(c.shape.page, r.effort.page)
	l := c.shape.table(uint64(r.base), r.size)
	require.GreaterOrEqual(b, l.Blocks, 2*c.blocks, "blocks in the pool")
	j := &bandwidthJob{bandwidthRig: r, c: c, set: set, order: make([]kv.Block, l.Blocks)}
	upload := func(data []byte) cuda.DevicePtr {
		p, err := r.dev.Alloc(uint64(len(data)), cuda.AllocOptions{Name: "measured"})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, r.dev.Free(p)) })
		require.NoError(b, r.dev.Write(p, data))
		return p
	}
	var err error
	j.table, err = set.NewTable(l)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, j.table.Close()) })
	for i := range j.order {
		j.order[i] = kv.Block(i)
	}
	if !c.run {
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(j.order), func(a, b int) { j.order[a], j.order[b] = j.order[b], j.order[a] })
	}
	if c.inMemory {
		j.ids = upload(idBytes(j.order))
	}
	if c.template {
		j.want = make([]byte, l.Bytes())
		rand.NewChaCha8([32]byte{1}).Read(j.want)
		j.row = upload(j.want)
	}
	if c.kernel == "checksum_blocks" {
		j.sums = upload(make([]byte, 8*c.blocks))
	}
	return j
}

// take returns the next blocks of a launch, and where they are in memory.
func (j *bandwidthJob) take() List {
	if j.next+j.c.blocks > len(j.order) {
		j.next = 0
	}
	j.used = j.order[j.next : j.next+j.c.blocks]
	list := List{IDs: j.ids + cuda.DevicePtr(4*j.next), Max: j.c.blocks}
	j.next += j.c.blocks
	return list
}

// launches adds n launches, each of other blocks.
func (j *bandwidthJob) launches(n int) error {
	b, s := &j.batch, j.stream
	for range n {
		list := j.take()
		var err error
		switch {
		case j.c.kernel == "zero_blocks" && j.c.inMemory:
			err = j.set.ZeroBlocksAt(b, s, j.table, list)
		case j.c.kernel == "zero_blocks":
			err = j.set.ZeroBlocks(b, s, j.table, j.used)
		case j.c.kernel == "reset_state" && j.c.inMemory:
			err = j.set.ResetStateAt(b, s, j.table, list, j.row)
		case j.c.kernel == "reset_state":
			err = j.set.ResetState(b, s, j.table, j.used, j.row)
		case j.c.inMemory:
			err = j.set.ChecksumBlocksAt(b, s, j.table, list, j.sums)
		default:
			err = j.set.ChecksumBlocks(b, s, j.table, j.used, j.sums)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rows has the driver fill what n launches take, one segment's pages one behind
// the other. They are a crossing each.
func (j *bandwidthJob) rows(n int) error {
	s := j.table.Layout().Segments[0]
	for range n {
		j.take()
		err := j.dev.(rowFiller).FillRows(j.stream, cuda.DevicePtr(s.Address(j.used[0])), s.Stride, 0, s.Page/4, uint64(j.c.blocks))
		if err != nil {
			return err
		}
	}
	return nil
}

// check looks at the first and the last block of a launch of its own: a kernel
// that does nothing is no fast one. Before it, the memory holds something else.
func (j *bandwidthJob) check() error {
	next := j.next
	j.take()
	l := j.table.Layout()
	_, err := j.timed(func() error {
		for _, at := range []int{0, len(j.used) - 1} {
			for _, s := range l.Segments {
				j.batch.Fill8(j.stream, cuda.DevicePtr(s.Address(j.used[at])), 0xA5, s.Page)
			}
		}
		j.next = next
		return j.launches(1)
	})
	if err != nil {
		return err
	}
	return j.verify()
}

// verify compares what the last launch left with what it should have.
func (j *bandwidthJob) verify() error {
	l := j.table.Layout()
	for _, at := range []int{0, len(j.used) - 1} {
		var pages [][]byte
		for _, s := range l.Segments {
			p := make([]byte, s.Page)
			if err := j.dev.Read(p, cuda.DevicePtr(s.Address(j.used[at]))); err != nil {
				return err
			}
			pages = append(pages, p)
		}
		if j.c.kernel == "checksum_blocks" {
			sum := make([]byte, 8)
			if err := j.dev.Read(sum, j.sums+cuda.DevicePtr(8*at)); err != nil {
				return err
			}
			if binary.LittleEndian.Uint64(sum) != Checksum(pages...) {
				return fmt.Errorf("wrong checksum of block %d", j.used[at])
			}
			continue
		}
		want := j.want
		if want == nil {
			want = make([]byte, l.Bytes())
		}
		if !bytes.Equal(bytes.Join(pages, nil), want) {
			return fmt.Errorf("block %d is not as the kernel should have left it", j.used[at])
		}
	}
	return nil
}

// measure reports the kernel's rate, and that of the driver's fills of as many
// bytes. All take turns, so that a clock that moves moves them all.
func (j *bandwidthJob) measure(b *testing.B, fills bool) {
	size := uint64(j.c.blocks) * j.table.Layout().Bytes()
	ways := []struct {
		name string
		add  func(n int) error
	}{{"", j.launches}}
	if fills {
		ways = append(ways, []struct {
			name string
			add  func(n int) error
		}{
			{"memset-", func(n int) error { return j.fills(n, size, 0) }},
			{"memset-A5-", func(n int) error { return j.fills(n, size, 0xA5A5A5A5) }},
		}...)
	}
	if _, ok := j.dev.(rowFiller); ok && j.c.run && fills {
		ways = append(ways, struct {
			name string
			add  func(n int) error
		}{"memset-rows-", j.rows})
	}
	times := make([][]float64, len(ways))
	n := 2
	for b.Loop() {
		for i := -1; i < j.effort.samples; i++ {
			for k, w := range ways {
				took, err := j.timed(func() error { return w.add(n) })
				if err != nil {
					b.Fatalf("%s: %v", w.name, err)
				}
				if i >= 0 {
					times[k] = append(times[k], took.Seconds()/float64(n))
				} else if k == 0 { // the first is to warm up, and to see how many make a sample
					n = max(2, min(int(2*j.effort.sample/max(1, took)), j.effort.launches))
				}
			}
		}
		if err := j.check(); err != nil {
			b.Fatal(err)
		}
	}
	label := ""
	if j.dev.Info().Simulated {
		label = "simulated-"
	}
	var rates []float64
	for k, w := range ways {
		slices.Sort(times[k])
		median := times[k][len(times[k])/2]
		rates = append(rates, float64(size)/median)
		b.ReportMetric(rates[k]/1e9, label+w.name+"GB/s")
		if k == 0 {
			b.ReportMetric(median*1e6, label+"us")
			b.ReportMetric(times[k][0]*1e6, label+"min-us")
			b.ReportMetric(times[k][len(times[k])-1]*1e6, label+"max-us")
		} else if w.name == "memset-" {
			b.ReportMetric(rates[0]/rates[k], label+"over-memset")
		}
	}
	if peak := j.dev.Info().Bandwidth; peak > 0 {
		b.ReportMetric(100*rates[0]/float64(peak), label+"%peak")
	}
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBandwidth is what the kernels move on layouts that engines use, beside the
// driver's fill of as many bytes with the same data, zeros (memset: cuMemsetD32Async),
// with 0xA5 (memset-A5), its fill of the very same bytes where the blocks of a launch
// are one strided run (memset-rows: cuMemsetD2D32Async), and the bandwidth of the
// device's memory by clock and bus (%peak). What is timed is a batch of launches back
// to back in one stream, from its submission until its last event has fired. Each launch
// takes other blocks, scattered over a pool several times as large as any cache.
// Afterwards the bytes are looked at. A checksum's bytes are read. Times are of
// one launch, the median of several samples. A simulated device has smaller pages
// and fewer blocks than the names say: MB is what a launch really had.
func BenchmarkBandwidth(b *testing.B) {
	r := newBandwidthRig(b)
	set, err := Load(r.dev)
	require.NoError(b, err)
	for _, c := range bandwidthCases {
		b.Run(c.name(), func(b *testing.B) { r.prepare(b, set, c).measure(b, true) })
	}
	require.NoError(b, r.dev.Free(r.base))
}

// BenchmarkTiles is zeroing by the size of a tile and the number of thread blocks per
// SM, on three shapes.
func BenchmarkTiles(b *testing.B) {
	r := newBandwidthRig(b)
	tiles, perSM := []uint64{1 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10}, []int{2, 4, 8}
	if r.dev.Info().Simulated {
		tiles, perSM = tiles[1:4:4], perSM[1:]
	}
	r.effort.samples = min(r.effort.samples, 5)
	loaded, err := Load(r.dev) // once: a driver compiles for seconds
	require.NoError(b, err)
	for _, shape := range []bandwidthCase{
		{kernel: "zero_blocks", shape: attention, blocks: 64},
		{kernel: "zero_blocks", shape: mixed, blocks: 512},
		{kernel: "zero_blocks", shape: merged, blocks: 16},
	} {
		for _, tile := range tiles {
			for _, n := range perSM {
				b.Run(fmt.Sprintf("%s/%d/tile-%d/per-SM-%d", shape.shape.name, shape.blocks, tile, n), func(b *testing.B) {
					set, err := loaded.WithShape(Shape{Tile: tile, BlocksPerSM: n})
					require.NoError(b, err)
					r.prepare(b, set, shape).measure(b, false)
				})
			}
		}
	}
	require.NoError(b, r.dev.Free(r.base))
}

// A kernel that leaves a byte as it was is no fast one.
func TestBandwidthNoticesWrongBytes(t *testing.T) {
	r := newBandwidthRig(t)
	set, err := Load(r.dev)
	require.NoError(t, err)
	for _, c := range []bandwidthCase{
		{kernel: "zero_blocks", shape: oddStates, blocks: 3},
		{kernel: "reset_state", shape: oddStates, blocks: 3, template: true},
		{kernel: "checksum_blocks", shape: oddStates, blocks: 3, inMemory: true},
	} {
		t.Run(c.name(), func(t *testing.T) {
			j := r.prepare(t, set, c)
			require.NoError(t, j.check())
			last := cuda.DevicePtr(j.table.Layout().Segments[5].Address(j.used[2])) + 77
			one := make([]byte, 1)
			require.NoError(t, r.dev.Read(one, last))
			one[0]++
			require.NoError(t, r.dev.Write(last, one))
			require.Error(t, j.verify())
		})
	}
}

// Every case has room on hardware and in a rehearsal.
func TestBandwidthCasesFit(t *testing.T) {
	for _, e := range []bandwidthEffort{effortOnGPU, effortSimulated} {
		for _, c := range bandwidthCases {
			s := c.shape
			s.page = min(s.page, e.page)
			l := s.table(1<<40, e.pool)
			require.GreaterOrEqual(t, l.Blocks/2, min(c.blocks, e.blocks), c.name())
			for _, seg := range l.Segments {
				require.LessOrEqual(t, seg.Base+uint64(l.Blocks-1)*seg.Stride+seg.Page, uint64(1<<40)+e.pool)
			}
		}
	}
}
