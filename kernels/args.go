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

type resetArgs[L any] struct {
	headArgs
	Row cuda.DevicePtr // 0: zeros
	IDs L
}

type checksumArgs[L any] struct {
	headArgs
	Sums cuda.DevicePtr
	IDs  L
}

type (
	few  [fewIDs]kv.Block
	many [manyIDs]kv.Block
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
