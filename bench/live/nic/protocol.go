package nic

import "github.com/kvgate/kvgate/cuda"

// The two processes talk gob: one hello and one answer to it, and then orders
// and, in any order, a report for each. The end of its standard input ends the
// other process.

type hello struct {
	Kind string
	Prompts
	Simulated bool              // NIXL: the device has host memory
	Slow      float64           // IPC: of a simulated device
	Handle    cuda.MemoryHandle // IPC: of the memory to write to
	Size      uint64            // IPC: of that
}

type answer struct {
	Err      string // why there is no other end; "" where there is
	Addr     uint64 // of its prompts
	Metadata []byte // NIXL
	What     string // more about it, in words
}

// order is for a prompt to be put into a slot, or for copies; offsets in Runs
// are from the beginning of the memory to write to.
type order struct {
	ID      uint64
	Prepare bool
	Slot    int
	Request uint32
	Runs    []run
}

type report struct {
	ID  uint64
	Err string
}
