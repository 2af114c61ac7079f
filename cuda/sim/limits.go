package sim

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda"
)

// Limits of a launch for compute capability 7.0, those of grids and blocks for
// every one since. Source: CUDA C++ Programming Guide, "Technical Specifications
// per Compute Capability".
var (
	maxGrid  = [3]uint32{1<<31 - 1, 65535, 65535}
	maxBlock = [3]uint32{1024, 1024, 64}
)

const (
	maxThreads  = 1024
	maxShared   = 48 << 10 // without opting in to more
	optInShared = 96 << 10

	// Registers of a thread block, and how many a warp gets them by.
	maxRegisters  = 64 << 10
	registerUnit  = 256
	someRegisters = 32 // of a thread, where [Options.Registers] says nothing
	maxPerThread  = 255
)

// The priorities of streams, as recent devices have them: the range is told by
// cuCtxGetStreamPriorityRange and is no constant of CUDA's.
const (
	leastPriority    = 0
	greatestPriority = -5
)

// registersOf returns the registers that a thread of the kernel takes.
func (d *Device) registersOf(name string) int {
	if n := d.registers[name]; n > 0 {
		return n
	}
	return someRegisters
}

// checkShape refuses a launch whose shape is outside the limits of the device or
// of the kernel, or takes more registers than a thread block has.
func (f *function) checkShape(op string, c *cuda.Command) error {
	threads := uint64(1)
	for i, axis := range [3]string{"x", "y", "z"} {
		if c.Grid[i] < 1 || c.Grid[i] > maxGrid[i] {
			return invalid(op, "%s: grid %s of %d, may be 1 to %d", f.name, axis, c.Grid[i], maxGrid[i])
		}
		if c.Block[i] < 1 || uint32(c.Block[i]) > maxBlock[i] {
			return invalid(op, "%s: block %s of %d, may be 1 to %d", f.name, axis, c.Block[i], maxBlock[i])
		}
		threads *= uint64(c.Block[i])
	}
	if limit := f.maxThreads(); threads > uint64(limit) {
		return invalid(op, "%s: thread block of %d threads, may be %d", f.name, threads, limit)
	}
	warps := (threads + 31) / 32
	if n := warps * roundUp(uint64(32*f.registers), registerUnit); n > maxRegisters {
		return &cuda.Error{Code: cuda.ErrLaunchResources, Op: op,
			Detail: fmt.Sprintf("%s: %d threads of %d registers take %d, a thread block has %d", f.name, threads, f.registers, n, maxRegisters)}
	}
	if static := f.staticShared(); uint64(c.Shared)+static > maxShared && c.Shared > f.allowed {
		return invalid(op, "%s: %d bytes of shared memory, may be %d", f.name, uint64(c.Shared)+static, max(maxShared, static+uint64(f.allowed)))
	}
	return nil
}

// AllowShared lets launches of h take more shared memory than the 48 KiB that
// they may without.
func (d *Device) AllowShared(h cuda.Function, dynamic uint32) error {
	const op = "allow shared memory"
	if err := d.call(op, 0); err != nil {
		return err
	}
	defer d.world.Exit()
	f := d.functions[h]
	if f == nil {
		return badHandle(op, "function", uint64(h))
	}
	if total := f.staticShared() + uint64(dynamic); total > optInShared {
		return invalid(op, "%s: %d bytes, may be %d", f.name, total, optInShared)
	}
	f.allowed = dynamic
	return nil
}

// FunctionInfo is what a function takes, and what its launches may.
type FunctionInfo struct {
	Registers     int // of a thread
	StaticShared  uint64
	DynamicShared uint64 // the most of a launch
	MaxThreads    int    // of a thread block
}

// FunctionInfo tells what a function takes.
func (d *Device) FunctionInfo(h cuda.Function) (FunctionInfo, error) {
	const op = "ask about function"
	if err := d.call(op, 0); err != nil {
		return FunctionInfo{}, err
	}
	defer d.world.Exit()
	f := d.functions[h]
	if f == nil {
		return FunctionInfo{}, badHandle(op, "function", uint64(h))
	}
	static := f.staticShared()
	warps := maxRegisters / roundUp(uint64(32*f.registers), registerUnit)
	return FunctionInfo{Registers: f.registers, StaticShared: static, DynamicShared: max(uint64(f.allowed), maxShared-min(static, maxShared)),
		MaxThreads: min(f.maxThreads(), int(32*warps))}, nil
}
