package nic

import "github.com/kvgate/kvgate/cuda/sim"

// The two processes talk gob: one hello and one answer to it, and then orders
// and, in any order, a report for each. The end of its standard input ends the
// other process.

type hello struct {
	Kind string
	Prompts
	Simulated bool    // the memory to write to is host memory
	Slow      float64 // of a simulated device
}

type answer struct {
	Err      string // why there is no other end; "" where there is
	Addr     uint64 // of its prompts
	Metadata []byte // NIXL
	What     string // more about it, in words
}

// order is for a prompt to be put into a slot, or for copies; offsets in Runs
// are from the begin of the target.
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

// Simulator returns the options of the simulated device, for whoever opens one.
func (h *hello) simulator() sim.Options {
	return sim.Options{Real: true, Slow: h.Slow}
}
