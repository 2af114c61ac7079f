package sim

import (
	"math"
	"time"
)

// Costs is the model of time: what each call costs the host and how long work
// takes on the device. All figures that the simulator uses are here. Where the
// source says "assumption" there is no published figure behind it.
//
// [New] refuses a table with a negative time or one of more than a day, with a
// rate or share that is not positive and finite, or with a limit below 1. Both
// bounds hold after stretching: see [Options].
type Costs struct {
	// Host side: time that passes for the caller.

	// Crossing is one call into the driver (Submit, Poll or any other).
	// Source: measured cgo call of 37-44 ns, doubled for saving and restoring
	// the thread's context (assumption).
	Crossing time.Duration
	// Launch is one kernel launch. Source: 3 us on an RTX 3080 (velox #6096).
	Launch time.Duration
	// Copy is one asynchronous copy, Fill one asynchronous fill. Source:
	// assumption, the same driver path as a launch.
	Copy, Fill time.Duration
	// Record is one event record and Query the question after one event,
	// together 0.47 us without timing (parsec #576); their split is an
	// assumption.
	Record, Query time.Duration
	// WaitEvent is one wait of a stream for an event. Source: record and wait
	// together take about 1 us (cudarc #335).
	WaitEvent time.Duration
	// Graph is one launch of a graph, GraphNode what each node adds. Source:
	// 2.5 us and about 1 ns a node for a chain of kernels (NVIDIA's blog,
	// "Constant Time Launch for Straight-Line CUDA Graphs", 2024).
	Graph, GraphNode time.Duration
	// WordOp puts one write of a word or wait for one into a stream. Source:
	// assumption, as a record.
	WordOp time.Duration
	// Signal puts one call of a host function into a stream. Source: 6 us on HIP
	// (kokkos #8020).
	Signal time.Duration
	// Word is the read of one mapped word. Source: assumption, a cache miss.
	Word time.Duration
	// Wake is how long a thread blocked in a synchronisation runs after the
	// work. Source: assumption for a spinning wait; the 30-50 us estimated for
	// one synchronisation in a decode step (sglang-omni #564) contain the
	// drained pipeline, which the simulator brings about by itself.
	Wake time.Duration
	// BlockingWake is the same for a thread that sleeps meanwhile. Source:
	// assumption, that it is as late as one woken by an eventfd, 28 us measured
	// on an idle machine.
	BlockingWake time.Duration
	// Alloc, AllocPinned and Free are one allocation or one release.
	// Source: assumption.
	Alloc, AllocPinned, Free time.Duration
	// HostCopy is what the host takes to copy a MiB of pageable memory to memory
	// that a copy engine can read, or back. Source: assumption, 10 GB/s.
	HostCopy time.Duration
	// Handle makes or destroys a stream or event; Module loads or unloads a
	// module. Source: assumption.
	Handle, Module time.Duration

	// Device side.

	// LaunchLatency is the time from the launch call to the first thread block
	// on an idle stream. Source: the intercept of zero-fill times on a B200,
	// 5.1 us at 2.1 MB to 148 us at 1.09 GB (sglang #22688), less KernelMin.
	LaunchLatency time.Duration
	// KernelGap separates kernels that follow each other in a stream. Source:
	// assumption; a memset of 4 bytes takes 2.4 us more than a fill kernel
	// (TransformerEngine #1716), which bounds it.
	KernelGap time.Duration
	// KernelMin is the least running time of a kernel. Source: an own fill
	// kernel of 4 bytes takes 0.8 us (TransformerEngine #1716).
	KernelMin time.Duration
	// CopyLatency is the time from the call to the first byte of a copy or
	// fill, CopyGap separates them in a stream. Source: a memset of 4 bytes
	// with its gap takes 3.2 us (TransformerEngine #1716); the same for copies
	// is an assumption.
	CopyLatency, CopyGap time.Duration
	// EventLatency is the time from the end of the work before a record until
	// the event is seen as fired. Source: assumption.
	EventLatency time.Duration
	// WordLatency is the time from the end of the work before a write of a word
	// until the word is there. Source: assumption, a write over PCIe.
	WordLatency time.Duration
	// HostFunc is the time from the end of the work before a host function until
	// it is called. Source: about 100 us (velox #6096).
	HostFunc time.Duration
	// StreamWait is the time from an event's firing until the stream that
	// waits for it goes on. Source: record and device wait take about 1 us
	// (cudarc #335).
	StreamWait time.Duration

	// MemoryShare is the part of the memory's peak bandwidth that can be
	// reached. Source: 91.8 % (sglang #22688), 85-90 % (pantheongpu hbm_write).
	MemoryShare float64
	// SMBandwidth is the most that one thread block moves, in bytes a second:
	// 64 bytes a clock between L2 and one SM (NVIDIA's architecture papers) at
	// 1.7 GHz.
	SMBandwidth float64
	// HostLink is the bandwidth of a copy engine, in bytes a second. Source:
	// PCIe 5.0 x16, 64 GB/s; reaching 85 % of it is an assumption.
	HostLink float64

	// PeerLink is the bandwidth from one device's memory to another's, in bytes a
	// second. Source: NVLink of an H100, 900 GB/s both ways together (vendor data);
	// reaching 85 % of half of it is an assumption.
	PeerLink float64

	// Limits.

	// KernelTime is how long a launch of PTX may take; 0: a minute. One that takes longer ends the
	// device with [cuda.ErrLaunchTimeout]. Source: assumption, no forward or copy comes
	// near it; a driver that watches a display's GPU gives some seconds.
	KernelTime time.Duration
	// PendingLaunches is how many launches a stream holds before Submit blocks.
	// Source: about 1,000, observed; no vendor page states it.
	PendingLaunches int
	// ResidentGrids is how many kernels run at the same time. Source: CUDA C++
	// Programming Guide, "Technical Specifications per Compute Capability",
	// 128 for 7.0 and later.
	ResidentGrids int
	// Chunks is into how many pieces work is torn, and MaxChunk the most bytes
	// (of fills and copies) in one. Source: none, it is how fine races are seen.
	Chunks   int
	MaxChunk uint64
}

// DefaultCosts returns the table that is used when [Options] names none.
func DefaultCosts() Costs {
	return Costs{
		Crossing:  80 * time.Nanosecond,
		Launch:    3 * time.Microsecond,
		Copy:      3 * time.Microsecond,
		Fill:      3 * time.Microsecond,
		Record:    300 * time.Nanosecond,
		Query:     170 * time.Nanosecond,
		WaitEvent: 700 * time.Nanosecond,
		Graph:     2500 * time.Nanosecond,
		GraphNode: time.Nanosecond,
		WordOp:    300 * time.Nanosecond,
		Signal:    6 * time.Microsecond,
		Word:      100 * time.Nanosecond,
		Wake:      5 * time.Microsecond,

		BlockingWake: 28 * time.Microsecond,

		Alloc:       10 * time.Microsecond,
		AllocPinned: 100 * time.Microsecond,
		Free:        10 * time.Microsecond,
		HostCopy:    105 * time.Microsecond,
		Handle:      2 * time.Microsecond,
		Module:      time.Millisecond,

		LaunchLatency: 4 * time.Microsecond,
		KernelGap:     time.Microsecond,
		KernelMin:     800 * time.Nanosecond,
		CopyLatency:   4 * time.Microsecond,
		CopyGap:       2400 * time.Nanosecond,
		EventLatency:  200 * time.Nanosecond,
		WordLatency:   500 * time.Nanosecond,
		HostFunc:      100 * time.Microsecond,
		StreamWait:    time.Microsecond,

		MemoryShare: 0.918,
		SMBandwidth: 64 * 1.7e9,
		HostLink:    0.85 * 64e9,
		PeerLink:    0.85 * 450e9,

		KernelTime:      kernelTime,
		PendingLaunches: 1000,
		ResidentGrids:   128,
		Chunks:          8,
		MaxChunk:        4 << 20,
	}
}

const kernelTime = time.Minute

// maxCost bounds every time in a table, so that sums of them do not overflow.
const maxCost = 24 * time.Hour

// times returns the table's durations with their names.
func (c *Costs) times() []namedTime {
	return []namedTime{
		{"Crossing", &c.Crossing}, {"Launch", &c.Launch}, {"Copy", &c.Copy}, {"Fill", &c.Fill},
		{"Graph", &c.Graph}, {"GraphNode", &c.GraphNode},
		{"Record", &c.Record}, {"Query", &c.Query}, {"WaitEvent", &c.WaitEvent}, {"WordOp", &c.WordOp}, {"Signal", &c.Signal},
		{"Word", &c.Word}, {"Wake", &c.Wake}, {"BlockingWake", &c.BlockingWake},
		{"Alloc", &c.Alloc}, {"AllocPinned", &c.AllocPinned}, {"Free", &c.Free},
		{"HostCopy", &c.HostCopy},
		{"Handle", &c.Handle}, {"Module", &c.Module},
		{"LaunchLatency", &c.LaunchLatency}, {"KernelGap", &c.KernelGap}, {"KernelMin", &c.KernelMin},
		{"CopyLatency", &c.CopyLatency}, {"CopyGap", &c.CopyGap},
		{"EventLatency", &c.EventLatency}, {"WordLatency", &c.WordLatency}, {"HostFunc", &c.HostFunc}, {"StreamWait", &c.StreamWait},
	}
}

type namedTime struct {
	name string
	d    *time.Duration
}

// check refuses a table that makes no sense when it is stretched by slow, and
// names the field.
func (c Costs) check(slow float64) error {
	const op = "open simulator"
	for _, t := range c.times() {
		if *t.d < 0 || float64(*t.d)*slow > float64(maxCost) {
			return invalid(op, "Costs.%s of %v, slowed by %g: may be 0 to %v", t.name, *t.d, slow, maxCost)
		}
	}
	for _, r := range []struct {
		name string
		v    float64
	}{{"SMBandwidth", c.SMBandwidth}, {"HostLink", c.HostLink}, {"PeerLink", c.PeerLink}, {"MemoryShare", c.MemoryShare}} {
		if !(r.v/slow > 0) || math.IsInf(r.v, 1) {
			return invalid(op, "Costs.%s of %g, slowed by %g: want a positive finite number", r.name, r.v, slow)
		}
	}
	for _, l := range []struct {
		name string
		v    uint64
		bad  bool
	}{
		{"PendingLaunches", uint64(c.PendingLaunches), c.PendingLaunches < 1},
		{"ResidentGrids", uint64(c.ResidentGrids), c.ResidentGrids < 1},
		{"Chunks", uint64(c.Chunks), c.Chunks < 1},
		{"MaxChunk", c.MaxChunk, c.MaxChunk < 1},
		{"KernelTime", uint64(c.KernelTime), c.KernelTime < 0 || c.KernelTime > maxCost},
	} {
		if l.bad {
			return invalid(op, "Costs.%s of %d: want at least 1, and a day at most where it is a time", l.name, int64(l.v))
		}
	}
	return nil
}

// slow returns the table with every time k times as long and every bandwidth a
// k-th. Limits and shares stay.
func (c Costs) slow(k float64) Costs {
	for _, t := range c.times() {
		*t.d = time.Duration(float64(*t.d) * k)
	}
	if c.KernelTime == 0 {
		c.KernelTime = kernelTime
	}
	c.KernelTime = time.Duration(min(float64(c.KernelTime)*k, float64(maxCost)))
	c.SMBandwidth /= k
	c.HostLink /= k
	c.PeerLink /= k
	return c
}
