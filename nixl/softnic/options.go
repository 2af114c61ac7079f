package softnic

import (
	"math"
	"time"
)

// The cost model. Each figure is a default of [Options].
const (
	// DefaultBandwidth is one direction of one link in bytes per second: a
	// 400 Gb/s port (NVIDIA ConnectX-7, vendor data).
	DefaultBandwidth = 50e9
	// DefaultLatency is the way from one agent to another. No published figure
	// was at hand; it is a little more than what NIXL 1.5.1 takes from post to
	// done for 4 KiB over shared memory, measured at 1.2 us.
	DefaultLatency = 2 * time.Microsecond
	// DefaultPostCost is the caller's time for one post: vLLM reports about
	// 5 ms for 72 requests (vllm-project/vllm #53333). Their descriptors are
	// in that figure, so together with DefaultPostPerDescriptor it is on the
	// high side.
	DefaultPostCost = 5 * time.Millisecond / 72
	// DefaultPostPerDescriptor is what NIXL 1.5.1 with UCX was measured to
	// take per descriptor of a post.
	DefaultPostPerDescriptor = 1300 * time.Nanosecond
	// DefaultMakeCost and DefaultMakePerDescriptor are the same measurement
	// for making a request: 0.2 us with one descriptor, 20 us with 512.
	DefaultMakeCost          = 200 * time.Nanosecond
	DefaultMakePerDescriptor = 39 * time.Nanosecond
	// DefaultStatusCost is that measurement for the status of a request that
	// is done, 34 to 44 ns.
	DefaultStatusCost = 40 * time.Nanosecond
	// DefaultChunk is how much lands at once. It is not a property of any
	// transport (those deliver packets of at most 4 KiB): smaller chunks are
	// more faithful and cost more of the simulator's own time.
	DefaultChunk = 256 << 10
	// DefaultMinChunks makes every entry land torn, small pages too.
	DefaultMinChunks = 2
	// DefaultLinger bounds how long bytes go on landing after a disconnect. No
	// published figure was at hand; what matters is that it is longer than a
	// host needs to reuse the memory.
	DefaultLinger = time.Millisecond
)

// reorderWindow is among how many chunks the next one to leave is chosen.
const reorderWindow = 4

// None, as a duration in [Options], means zero where zero means the default.
const None time.Duration = -1

// Options shape a fabric. The zero value means the defaults above. Durations
// are in the world's model time, as on hardware: a slowed world stretches them.
type Options struct {
	Bandwidth         float64 // bytes per second of each link and direction
	Latency           time.Duration
	Jitter            time.Duration // each chunk is late by a random part of it; default none
	PostCost          time.Duration
	PostPerDescriptor time.Duration
	MakeCost          time.Duration
	MakePerDescriptor time.Duration
	StatusCost        time.Duration // of a poll, and of taking in notifications
	Linger            time.Duration

	Chunk     int // bytes, after the memory's cost scale
	MinChunks int // in how many chunks an entry lands at least, if it has the bytes

	// Reorder lets chunks leave in an order that the world's chooser picks,
	// within a small window over all entries of the transfer.
	Reorder bool

	Listener Listener
}

// withDefaults fills in what is zero and stretches the result by slow.
func (o Options) withDefaults(slow float64) Options {
	if !(o.Bandwidth > 0) || math.IsInf(o.Bandwidth, 0) {
		o.Bandwidth = DefaultBandwidth
	}
	if !(slow >= 1) {
		slow = 1
	}
	o.Bandwidth /= slow
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&o.Latency, DefaultLatency}, {&o.Jitter, 0},
		{&o.PostCost, DefaultPostCost}, {&o.PostPerDescriptor, DefaultPostPerDescriptor},
		{&o.MakeCost, DefaultMakeCost}, {&o.MakePerDescriptor, DefaultMakePerDescriptor},
		{&o.StatusCost, DefaultStatusCost}, {&o.Linger, DefaultLinger},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
		*d.v = time.Duration(float64(max(*d.v, 0)) * slow)
	}
	if o.Chunk <= 0 {
		o.Chunk = DefaultChunk
	}
	if o.MinChunks <= 0 {
		o.MinChunks = DefaultMinChunks
	}
	o.Listener = o.Listener.withDefaults()
	return o
}
