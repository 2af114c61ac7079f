//go:build !linux

package sim

import (
	"fmt"
	"runtime"

	"github.com/kvgate/kvgate/cuda"
)

// What the simulator asks of the operating system that not every one has.

// newMemoryFile returns a descriptor of a file in memory that another process can
// open by it. It is an error where there is no such file.
func newMemoryFile() (fd int, err error) {
	return -1, fmt.Errorf("Options.Shareable: %s has no memory files that other processes can open: %w", runtime.GOOS, cuda.ErrNotSupported)
}

// punchHole gives the pages of a part of a memory file back.
func punchHole(int, int64, int64) error { return cuda.ErrNotSupported }

// mapFixedNoReplace is a flag of mmap: these addresses or none. Where it is 0 they
// are a wish, and what is mapped elsewhere has to be unmapped.
const mapFixedNoReplace = 0

// threadID returns a number of the calling thread that no other running thread of
// the process has, or 0 where there is none.
func threadID() int64 { return 0 }
