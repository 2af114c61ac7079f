package measure

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// Bandwidths is what the kernels move, beside what the driver's fills do.
type Bandwidths struct {
	Simulated bool   `json:"simulated"`
	Device    string `json:"device"`
	// Peak is the bandwidth of the device's memory by clock and bus, in bytes a
	// second; 0 where the driver does not tell.
	Peak uint64         `json:"peak_bytes_per_s"`
	Pool uint64         `json:"pool_bytes"`
	Rows []BandwidthRow `json:"rows"`
}

// BandwidthRow is one kernel on one layout.
type BandwidthRow struct {
	Kernel   string  `json:"kernel"`
	Layout   string  `json:"layout"`
	IDs      string  `json:"ids"`          // "arguments" or "memory"
	To       string  `json:"to,omitempty"` // of a reset: "zeros" or "template"
	Segments int     `json:"segments"`     // pages of a block
	Page     uint64  `json:"page_bytes"`   // of each
	Stride   uint64  `json:"stride_bytes"` // from a block to the next
	Blocks   int     `json:"blocks"`       // of one launch
	Bytes    uint64  `json:"bytes"`        // that a launch writes; a checksum reads
	Launches int     `json:"launches"`     // timed together
	Seconds  Spread  `json:"launch_s"`     // of one launch
	Rate     float64 `json:"bytes_per_s"`  // by the median
	Peak     float64 `json:"of_peak"`      // share of the peak; 0 where that is unknown
	// Memset is cuMemsetD32Async of as many bytes, end to end, Rows is
	// cuMemsetD2D32Async of the very same bytes, where that can be.
	Memset Fill  `json:"memset"`
	Rows   *Fill `json:"memset_rows,omitempty"`
}

// Fill is a fill of the driver's to compare with.
type Fill struct {
	Seconds Spread  `json:"fill_s"`
	Rate    float64 `json:"bytes_per_s"`
	// Ratio is the kernel's rate over this one.
	Ratio float64 `json:"kernel_ratio"`
}

// Bandwidth measures the kernels on the device that o names, and writes the
// table for people.
func Bandwidth(ctx context.Context, w io.Writer, o driver.Options) (r *Bandwidths, err error) {
	d, err := open(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return bandwidth(ctx, d, w, bandwidthCases)
}

func bandwidth(ctx context.Context, d *device, w io.Writer, cases []bandwidthCase) (r *Bandwidths, err error) {
	i, e := d.Info(), onHardware
	if i.Simulated {
		e = simulated
	}
	set, err := kernels.Load(d.Device)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	m := &meter{device: d, set: set, effort: e, rand: rand.New(rand.NewPCG(1, 2))}
	if m.base, m.size, err = d.pool(e.pool); err != nil {
		return nil, err
	}
	r = &Bandwidths{Simulated: i.Simulated, Device: i.Name, Peak: i.Bandwidth, Pool: m.size}
	if err := m.warm(); err != nil {
		return nil, err
	}
	r.head(w)
	for _, c := range cases {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, err := m.measure(c)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", c.kernel, c.shape.name, err)
		}
		r.Rows = append(r.Rows, *row)
		row.text(w)
	}
	return r, nil
}

// meter measures one case after the other in the same memory.
type meter struct {
	*device
	set    *kernels.Set
	effort effort
	rand   *rand.Rand
	base   cuda.DevicePtr
	size   uint64
	batch  cuda.Batch
	turn   uint64 // where the next fill goes
}

// warm has the clocks up before the first figure, and every byte touched.
func (m *meter) warm() error {
	const long = 300 * time.Millisecond
	for start := m.Clock().Now(); m.Clock().Now()-start < long; {
		m.batch.Reset()
		m.batch.Fill32(m.stream, m.base, 0xA5A5A5A5, m.size/4)
		if _, err := m.timed(&m.batch); err != nil {
			return err
		}
	}
	return nil
}

// job is a case that is ready to run.
type job struct {
	m     *meter
	c     bandwidthCase
	table *kernels.Table
	order []kv.Block // the blocks, in the order in which launches take them
	next  int
	ids   cuda.DevicePtr // the order, in device memory
	row   cuda.DevicePtr // of a reset
	want  []byte         // the row
	sums  cuda.DevicePtr
	used  []kv.Block // by the last launch
}

func (m *meter) measure(c bandwidthCase) (row *BandwidthRow, err error) {
	c.blocks = min(c.blocks, m.effort.blocks)
	c.shape.page = min(c.shape.page, m.effort.page)
	j, err := m.prepare(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	t := j.table.Layout()
	row = &BandwidthRow{Kernel: c.kernel, Layout: c.shape.name, IDs: "arguments", Segments: len(t.Segments), Page: c.shape.page,
		Stride: t.Segments[0].Stride, Blocks: c.blocks, Bytes: uint64(c.blocks) * t.Bytes()}
	if c.inMemory {
		row.IDs = "memory"
	}
	if c.kernel == resetKernel {
		row.To = "zeros"
		if c.template {
			row.To = "template"
		}
	}

	ways := []func(n int) (time.Duration, error){
		func(n int) (time.Duration, error) { return m.sample(func() error { return j.launch(n) }) },
		func(n int) (time.Duration, error) { return m.sample(func() error { return m.fill(n, row.Bytes) }) },
	}
	if c.run && len(t.Segments) == 1 {
		ways = append(ways, j.fillRows)
	}
	times := make([][]float64, len(ways))
	row.Launches = 2
	for i := -1; i < m.effort.samples; i++ {
		for k, way := range ways {
			took, err := way(row.Launches)
			if err != nil {
				return nil, err
			}
			if i >= 0 {
				times[k] = append(times[k], took.Seconds()/float64(row.Launches))
			} else if k == 0 { // the first is to warm up, and to see how many make a sample
				row.Launches = max(2, min(int(2*m.effort.sample/max(1, took.Nanoseconds())), m.effort.launches))
			}
		}
		if i >= 0 {
			if err := j.check(); err != nil {
				return nil, err
			}
		}
	}
	fills := make([]*Fill, len(ways))
	row.Seconds = spreadOf(times[0])
	row.Rate = float64(row.Bytes) / row.Seconds.Median
	if peak := m.Info().Bandwidth; peak > 0 {
		row.Peak = row.Rate / float64(peak)
	}
	for k := 1; k < len(ways); k++ {
		s := spreadOf(times[k])
		rate := float64(row.Bytes) / s.Median
		fills[k] = &Fill{Seconds: s, Rate: rate, Ratio: row.Rate / rate}
	}
	row.Memset = *fills[1]
	if len(fills) > 2 {
		row.Rows = fills[2]
	}
	return row, nil
}

// sample times what add puts into the batch.
func (m *meter) sample(add func() error) (time.Duration, error) {
	m.batch.Reset()
	if err := add(); err != nil {
		return 0, err
	}
	return m.timed(&m.batch)
}

// fill adds n fills of that many bytes, which go through the pool.
func (m *meter) fill(n int, size uint64) error {
	size = min(size, m.size) &^ 3
	for range n {
		if m.turn+size > m.size {
			m.turn = 0
		}
		m.batch.Fill32(m.stream, m.base+cuda.DevicePtr(m.turn), 0xA5A5A5A5, size/4)
		m.turn += (size + 255) &^ 255
	}
	return nil
}

func (m *meter) prepare(c bandwidthCase) (j *job, err error) {
	l, err := c.shape.table(uint64(m.base), m.size)
	if err != nil {
		return nil, err
	}
	j = &job{m: m, c: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.close())
		}
	}()
	if j.c.blocks = min(c.blocks, l.Blocks/2); j.c.blocks < c.blocks {
		return nil, fmt.Errorf("%d blocks of one launch in a pool of %d", c.blocks, l.Blocks)
	}
	if j.table, err = kernels.NewTable(m.Device, l); err != nil {
		return nil, err
	}
	j.order = make([]kv.Block, l.Blocks)
	for i := range j.order {
		j.order[i] = kv.Block(i)
	}
	if !c.run {
		m.rand.Shuffle(len(j.order), func(a, b int) { j.order[a], j.order[b] = j.order[b], j.order[a] })
	}
	if c.inMemory {
		var ids []byte
		for _, b := range j.order {
			ids = binary.LittleEndian.AppendUint32(ids, uint32(b))
		}
		if j.ids, err = m.upload(ids); err != nil {
			return nil, err
		}
	}
	if c.template {
		j.want = make([]byte, l.Bytes())
		rand.NewChaCha8([32]byte{1}).Read(j.want)
		if j.row, err = m.upload(j.want); err != nil {
			return nil, err
		}
	}
	if c.kernel == checksumKernel {
		if j.sums, err = m.upload(make([]byte, 8*c.blocks)); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (m *meter) upload(data []byte) (cuda.DevicePtr, error) {
	p, err := m.Alloc(uint64(len(data)), cuda.AllocOptions{Name: "measured"})
	if err != nil {
		return 0, err
	}
	return p, m.Write(p, data)
}

func (j *job) close() error {
	var errs []error
	for _, p := range []cuda.DevicePtr{j.ids, j.row, j.sums} {
		if p != 0 {
			errs = append(errs, j.m.Free(p))
		}
	}
	if j.table != nil {
		errs = append(errs, j.table.Close())
	}
	return errors.Join(errs...)
}

// launch adds n launches.
func (j *job) launch(n int) error {
	for range n {
		if j.next+j.c.blocks > len(j.order) {
			j.next = 0
		}
		j.used = j.order[j.next : j.next+j.c.blocks]
		list := kernels.List{IDs: j.ids + cuda.DevicePtr(4*j.next), Max: j.c.blocks}
		j.next += j.c.blocks
		if err := j.add(list); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) add(list kernels.List) error {
	b, s, set := &j.m.batch, j.m.stream, j.m.set
	switch {
	case j.c.kernel == zeroKernel && j.c.inMemory:
		return set.ZeroBlocksAt(b, s, j.table, list)
	case j.c.kernel == zeroKernel:
		return set.ZeroBlocks(b, s, j.table, j.used)
	case j.c.kernel == resetKernel && j.c.inMemory:
		return set.ResetStateAt(b, s, j.table, list, j.row)
	case j.c.kernel == resetKernel:
		return set.ResetState(b, s, j.table, j.used, j.row)
	case j.c.inMemory:
		return set.ChecksumBlocksAt(b, s, j.table, list, j.sums)
	}
	return set.ChecksumBlocks(b, s, j.table, j.used, j.sums)
}

// fillRows times n fills of what launches take, one segment's pages one behind
// the other. They are a crossing each.
func (j *job) fillRows(n int) (time.Duration, error) {
	s, m := j.table.Layout().Segments[0], j.m
	start := m.Clock().Now()
	for range n {
		if j.next+j.c.blocks > len(j.order) {
			j.next = 0
		}
		at := cuda.DevicePtr(s.Address(j.order[j.next]))
		j.next += j.c.blocks
		if err := m.FillRows(m.stream, at, s.Stride, 0xA5A5A5A5, s.Page/4, uint64(j.c.blocks)); err != nil {
			return 0, err
		}
	}
	m.batch.Reset()
	if _, err := m.timed(&m.batch); err != nil {
		return 0, err
	}
	return m.Clock().Now() - start, nil
}

// check looks at the first and the last block of a launch of its own: the fills
// have been over the others.
func (j *job) check() error {
	j.m.batch.Reset()
	if err := j.launch(1); err != nil {
		return err
	}
	if _, err := j.m.timed(&j.m.batch); err != nil {
		return err
	}
	return j.verify()
}

// verify compares what the last launch left with what it should have.
func (j *job) verify() error {
	l := j.table.Layout()
	for _, at := range []int{0, len(j.used) - 1} {
		got, err := j.block(l, j.used[at])
		if err != nil {
			return err
		}
		switch {
		case j.c.kernel == checksumKernel:
			sum := make([]byte, 8)
			if err := j.m.Read(sum, j.sums+cuda.DevicePtr(8*at)); err != nil {
				return err
			}
			if binary.LittleEndian.Uint64(sum) != kernels.Checksum(got...) {
				return fmt.Errorf("wrong checksum of block %d", j.used[at])
			}
		default:
			want := j.want
			if want == nil {
				want = make([]byte, l.Bytes())
			}
			if !bytes.Equal(bytes.Join(got, nil), want) {
				return fmt.Errorf("block %d is not as the kernel should have left it", j.used[at])
			}
		}
	}
	return nil
}

// block reads the pages of a block.
func (j *job) block(l *layout.Table, b kv.Block) (pages [][]byte, err error) {
	for _, s := range l.Segments {
		p := make([]byte, s.Page)
		if err := j.m.Read(p, cuda.DevicePtr(s.Address(b))); err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}
