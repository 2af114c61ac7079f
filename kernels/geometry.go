package kernels

import "github.com/kvgate/kvgate/cuda"

const (
	warpSize      = 32
	warpsPerBlock = 8 // as tiles.cuh has it
	blockThreads  = warpsPerBlock * warpSize
	// blocksPerSM fill an SM of 2,048 threads; SMs with fewer take the rest in
	// a second wave. A Tuning may say otherwise.
	blocksPerSM = 8
	// maxBlocksPerSM is what an SM holds at most (CUDA C++ Programming Guide,
	// "Technical Specifications per Compute Capability").
	maxBlocksPerSM = 32
	// unknownSMs stands for the SMs of a device that does not tell: an H100's.
	unknownSMs = 132
)

// geometry returns the launch for that many work items (places in a list times
// tiles). A warp takes an item, then the one that is a whole grid of warps
// further on. The grid is one-dimensional and bounded by the SMs that may be used,
// so no number of ids or segments comes near a launch limit. Few items are spread
// over SMs before they share one.
func geometry(items uint64, sms, perSM int) cuda.Geometry {
	if sms <= 0 {
		sms = unknownSMs
	}
	n := uint64(sms)
	grid := min(items, max(n, (items-1)/warpsPerBlock+1), n*uint64(perSM))
	return cuda.Geometry{Grid: [3]uint32{uint32(grid), 1, 1}, Block: [3]uint16{blockThreads, 1, 1}}
}
