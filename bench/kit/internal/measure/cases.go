package measure

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/layout"
)

// shape is a layout of blocks.
type shape struct {
	name     string
	segments int
	page     uint64
	// outer: a block's pages lie together, one block behind the other; else each
	// segment is a run of its own.
	outer bool
	gap   uint64 // bytes between a page and the next that are someone else's
}

// table lays a shape into memory of that size, and fills it as far as whole
// blocks go.
func (s shape) table(base, size uint64) (layout.Table, error) {
	step := s.page + s.gap
	perBlock := step * uint64(s.segments)
	blocks := size / perBlock
	if blocks < 2 {
		return layout.Table{}, fmt.Errorf("%s: no room for two blocks in %d bytes", s.name, size)
	}
	t := layout.Table{Blocks: int(blocks), RealNull: true}
	for i := range uint64(s.segments) {
		at, stride := base+i*step*blocks, step
		if s.outer {
			at, stride = base+i*step, perBlock
		}
		t.Segments = append(t.Segments, layout.Segment{Base: at, Stride: stride, Page: s.page})
	}
	return t, nil
}

// bandwidthCase is one row of the table.
type bandwidthCase struct {
	kernel   string
	shape    shape
	blocks   int // of one launch
	inMemory bool
	template bool
	// run: the blocks of a launch lie one behind the other, so that with one
	// segment they are a strided run, which the driver can fill as well.
	run bool
}

// The shapes. Sizes are of public models' layouts, or stand for a difficulty. A
// name holds no size: a simulated device has smaller pages.
var (
	attention = shape{name: "layers", segments: 32, page: 64 << 10}
	mla       = shape{name: "layers (MLA)", segments: 61, page: 73728}
	mixed     = shape{name: "layers", segments: 30, page: 8448}
	small     = shape{name: "layers", segments: 64, page: 4096}
	odd       = shape{name: "states", segments: 24, page: 1380}
	merged    = shape{name: "merged layers", segments: 10, page: 2 << 20}
	blockwise = shape{name: "block by block", segments: 32, page: 64 << 10, outer: true}
	strided   = shape{name: "one strided segment", segments: 1, page: 64 << 10, gap: 64 << 10}
	wide      = shape{name: "one strided segment", segments: 1, page: 1 << 20, gap: 256 << 10}
	states    = shape{name: "states", segments: 30, page: 512 << 10}
	tiny      = shape{name: "one page", segments: 1, page: 4096}
)

const (
	zeroKernel     = "zero_blocks"
	resetKernel    = "reset_state"
	checksumKernel = "checksum_blocks"
)

// Kernels are those that every table of bandwidths has.
var Kernels = []string{zeroKernel, resetKernel, checksumKernel}

var bandwidthCases = []bandwidthCase{
	{kernel: zeroKernel, shape: tiny, blocks: 1}, // what a launch costs
	{kernel: zeroKernel, shape: attention, blocks: 1},
	{kernel: zeroKernel, shape: attention, blocks: 8},
	{kernel: zeroKernel, shape: attention, blocks: 64},
	{kernel: zeroKernel, shape: attention, blocks: 256},
	{kernel: zeroKernel, shape: attention, blocks: 256, inMemory: true},
	{kernel: zeroKernel, shape: blockwise, blocks: 64},
	{kernel: zeroKernel, shape: mla, blocks: 32},
	{kernel: zeroKernel, shape: merged, blocks: 16},
	{kernel: zeroKernel, shape: mixed, blocks: 512},
	{kernel: zeroKernel, shape: small, blocks: 512},
	{kernel: zeroKernel, shape: odd, blocks: 1000},
	{kernel: zeroKernel, shape: strided, blocks: 1000, run: true},
	{kernel: zeroKernel, shape: wide, blocks: 256, run: true},
	{kernel: resetKernel, shape: states, blocks: 4},
	{kernel: resetKernel, shape: states, blocks: 32},
	{kernel: resetKernel, shape: states, blocks: 32, template: true},
	{kernel: resetKernel, shape: states, blocks: 32, template: true, inMemory: true},
	{kernel: resetKernel, shape: odd, blocks: 1000, template: true},
	{kernel: checksumKernel, shape: attention, blocks: 8},
	{kernel: checksumKernel, shape: attention, blocks: 256},
	{kernel: checksumKernel, shape: attention, blocks: 256, inMemory: true},
	{kernel: checksumKernel, shape: odd, blocks: 1000},
}

// effort is how much is done for a row.
type effort struct {
	pool     uint64 // bytes
	blocks   int    // at most, in one launch
	page     uint64 // at most
	sample   int64  // nanoseconds that a sample should take
	samples  int
	launches int // at most, in one sample
}

// A simulated device runs the kernels' PTX on the CPU: it gets a rehearsal's
// sizes, which are in the rows.
var (
	onHardware = effort{pool: 8 << 30, blocks: 1 << 20, page: 1 << 30, sample: 10e6, samples: 9, launches: 200}
	simulated  = effort{pool: 64 << 20, blocks: 4, page: 8 << 10, sample: 0, samples: 3, launches: 2}
)
