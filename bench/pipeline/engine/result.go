package engine

import (
	"fmt"
	"time"

	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// Result is what a run in one mode came to. Times are of the simulated clock,
// shares are from 0 to 1, bytes are true sizes.
type Result struct {
	Mode         string
	Requests     int // completed
	OutputTokens int
	TokensPerS   float64
	// From a request's entry into the queue until the host has its first token.
	TTFTP50 float64
	TTFTP99 float64
	// From the end of a step to the end of the next.
	StepP50 float64
	StepP99 float64
	// The host's time in waits that the mode asks for.
	HostBlocked float64
	// The compute stream's idle time while a step's launch was behind such a
	// wait, or the step waited for zeroing. Zeroing in line is work, not idling:
	// FullSync shows less of it than EventSync, whose stream idles while the
	// same zeroing runs elsewhere.
	GateIdle float64
	// Loads that the gate still held when their step ended, and for how long.
	HeldShare float64
	HoldP50   float64
	HoldP99   float64
	// The compute stream's, from the first full memory to the last admission.
	GPUIdleShare float64
	ZeroedBytes  float64
	LoadedBytes  float64
	// Tenancies whose first use saw something wrong, and requests with any.
	CorruptedBlocks   int
	CorruptedRequests int
	PeakBatch         int
	Preemptions       int
	// Allocations over the blocks of the pool.
	ReusedBlocks float64
	PTXLaunches  int
	// 1 - tokens/s over those of Ungated.
	Overhead float64

	// Beside the table.

	Later  int    // tenancies that were wrong at a later use only
	Strays int    // writes that the ledger did not allow
	Checks uint64 // pages compared
	Late   int    // requests that were canceled
	Steps  int
}

// Corrupted reports whether anything was wrong.
func (r *Result) Corrupted() bool { return r.CorruptedBlocks+r.Later+r.Strays > 0 }

func (e *engine) result() Result {
	m := &e.meter
	r := Result{
		Mode: e.mode.String(), Requests: m.completed, OutputTokens: m.tokens,
		TTFTP50: percentile(m.ttft, 50), TTFTP99: percentile(m.ttft, 99),
		HostBlocked: ms(m.blocked), GateIdle: ms(m.idle),
		HoldP50: percentile(m.holds, 50), HoldP99: percentile(m.holds, 99),
		ZeroedBytes: e.zeroing.bytes, LoadedBytes: m.loaded,
		CorruptedBlocks: e.ledger.corrupted,
		PeakBatch:       m.batch, Preemptions: e.preemptions, PTXLaunches: e.zeroing.kernels,
		ReusedBlocks: float64(e.allocations) / float64(e.cache.arena.Blocks-1),
		Later:        e.ledger.later, Strays: e.ledger.strays, Checks: e.ledger.checks, Late: e.lates, Steps: e.launchedSteps,
	}
	if s := (m.end - e.start).Seconds(); s > 0 {
		r.TokensPerS = float64(m.tokens) / s
	}
	if m.loads > 0 {
		r.HeldShare = float64(m.heldLoads) / float64(m.loads)
	}
	times := m.stepTimes()
	r.StepP50, r.StepP99 = percentile(times, 50), percentile(times, 99)
	window := span{e.full, e.last}
	if e.full == 0 && len(m.work) > 0 {
		window.from = m.work[0].from
	}
	r.GPUIdleShare = m.idleShare(window)
	for i := range e.requests {
		if e.requests[i].corrupted {
			r.CorruptedRequests++
		}
	}
	return r
}

// CostModel says in one line what the figures are made of.
func CostModel() string {
	c := sim.DefaultCosts()
	return fmt.Sprintf("a step: weights, KV and states at %.1f %% of HBM, beside zeroing and the NIC, and %v a layer; a post: %v, and %v a descriptor",
		100*c.MemoryShare, kernelsPerLayer*c.KernelGap, softnic.DefaultPostCost.Round(time.Microsecond), softnic.DefaultPostPerDescriptor)
}
