package kernels

import (
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
)

// The parameters of the kernels, as the PTX declares them. Each kernel comes
// with its ids in memory, with few in the arguments, and with as many as fit
// (cuda.MaxArgBytes): a short list does not pay for copying 4 KB per launch.
const (
	fewIDs  = 56
	manyIDs = 1012
)

// headArgs begin the parameters of every kernel.
type headArgs struct {
	Origin    uint64
	Tiles     cuda.DevicePtr
	TileCount uint32
	First     uint32
	Span      uint32
	Count     uint32 // length of the list; of one in memory: its greatest
}

// memoryArgs end those of a kernel whose ids are in memory.
type memoryArgs struct {
	IDs   cuda.DevicePtr
	Count cuda.DevicePtr
}

type zeroArgs[L any] struct {
	headArgs
	IDs L
}

// ownArgs are those of a kernel with an argument of its own: the row of a reset
// (0: zeros), the sums of a checksum, the word of a fill.
type ownArgs[L any] struct {
	headArgs
	Own uint64
	IDs L
}

// side is one side of a copy, as pages.cuh has it.
type side struct {
	Base   uint64
	Stride uint64 // 0: blocks of the table
	First  uint32
	Span   uint32
}

type copyHead struct {
	Dst, Src  side
	Tiles     cuda.DevicePtr
	TileCount uint32
	Count     uint32
}

type copyArgs[L any] struct {
	copyHead
	Pairs L
}

// section and stepHead are as prepare_step.cu has them.
type section struct {
	Dst, Src  side // Src.Base 0: zeros are written
	Tiles     cuda.DevicePtr
	TileCount uint32
	Count     uint32
	List      uint32
	_         uint32
}

const maxSections = 8

type stepHead struct {
	Sections uint32
	_        uint32
	Section  [maxSections]section
}

type stepArgs[L any] struct {
	stepHead
	Pairs L
}

// Pairs in the arguments.
const (
	fewPairs, manyPairs         = 28, 504
	fewStepPairs, manyStepPairs = 54, 439
)

type (
	few        [fewIDs]kv.Block
	many       [manyIDs]kv.Block
	fewCopies  [fewPairs]Pair
	manyCopies [manyPairs]Pair
	fewSteps   [fewStepPairs]Pair
	manySteps  [manyStepPairs]Pair
)

// bytesOf returns the memory of v. Go lays out these structs as C does, on
// amd64 and arm64 in the device's byte order; a test compares them with the
// PTX.
func bytesOf[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

func idBytes(ids []kv.Block) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(ids))), len(ids)*int(unsafe.Sizeof(kv.Block(0))))
}

func pairBytes(pairs []Pair) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(pairs))), len(pairs)*int(unsafe.Sizeof(Pair{})))
}
