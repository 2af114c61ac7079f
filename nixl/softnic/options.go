package softnic

import (
	"fmt"
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
//
// What makes no sense is refused by [Fabric.NewAgent]: a number that is not
// finite, a negative one other than [None], a duration that is longer than a
// day when it is stretched.
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

// maxTime bounds every duration, so that sums of them do not overflow.
const maxTime = 24 * time.Hour

// complete fills in what is zero and stretches the result by slow. The error
// names the option that makes no sense.
func (o Options) complete(slow float64) (Options, error) {
	if o.Bandwidth == 0 {
		o.Bandwidth = DefaultBandwidth
	}
	if !(o.Bandwidth/slow > 0) || math.IsInf(o.Bandwidth, 0) || !(slow >= 1) {
		return o, fmt.Errorf("option Bandwidth of %g, slowed by %g: want a positive finite number", o.Bandwidth, slow)
	}
	o.Bandwidth /= slow
	for _, d := range []struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{
		{"Latency", &o.Latency, DefaultLatency}, {"Jitter", &o.Jitter, 0},
		{"PostCost", &o.PostCost, DefaultPostCost}, {"PostPerDescriptor", &o.PostPerDescriptor, DefaultPostPerDescriptor},
		{"MakeCost", &o.MakeCost, DefaultMakeCost}, {"MakePerDescriptor", &o.MakePerDescriptor, DefaultMakePerDescriptor},
		{"StatusCost", &o.StatusCost, DefaultStatusCost}, {"Linger", &o.Linger, DefaultLinger},
	} {
		switch *d.v {
		case 0:
			*d.v = d.def
		case None:
			*d.v = 0
		}
		if *d.v < 0 || float64(*d.v)*slow > float64(maxTime) {
			return o, fmt.Errorf("option %s of %v, slowed by %g: want None or 0 to %v", d.name, *d.v, slow, maxTime)
		}
		*d.v = time.Duration(float64(*d.v) * slow)
	}
	for _, n := range []struct {
		name string
		v    *int
		def  int
	}{{"Chunk", &o.Chunk, DefaultChunk}, {"MinChunks", &o.MinChunks, DefaultMinChunks}} {
		if *n.v == 0 {
			*n.v = n.def
		}
		if *n.v < 0 {
			return o, fmt.Errorf("option %s of %d: want at least 1", n.name, *n.v)
		}
	}
	o.Listener = o.Listener.withDefaults()
	return o, nil
}

// times returns n times d, at most [maxTime].
func times(n int, d time.Duration) time.Duration {
	if d > 0 && time.Duration(n) > maxTime/d {
		return maxTime
	}
	return time.Duration(n) * d
}
