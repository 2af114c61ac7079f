package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/kvgate/kvgate/bench/trace"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/layout"
)

// ErrConfig is wrapped by errors about a configuration that makes no sense.
var ErrConfig = errors.New("bad configuration")

// Deferral says whether blocks of a request that a step in flight still uses
// are kept out of the pool until that step was processed.
type Deferral uint8

const (
	// DeferAuto: in the modes in which nothing else holds their reuse back, as
	// vLLM does: Ungated, SkipCovered and StepFIFO.
	DeferAuto Deferral = iota
	DeferOn
	DeferOff
)

var deferralNames = [...]string{"auto", "on", "off"}

func (d Deferral) String() string { return deferralNames[d] }

// ParseDeferral reads "auto", "on" or "off".
func ParseDeferral(s string) (Deferral, error) {
	for d, name := range deferralNames {
		if s == name {
			return Deferral(d), nil
		}
	}
	return 0, fmt.Errorf("%q: want auto, on or off: %w", s, ErrConfig)
}

func (d Deferral) in(m loadgate.Mode) bool {
	switch d {
	case DeferOn:
		return true
	case DeferOff:
		return false
	}
	return m.Wait == core.AtOnce || m.Wait == core.StepOrder
}

// Config is a run but for its mode. Rates are in bytes a second.
type Config struct {
	Plan  *layout.Plan // with true sizes
	Trace *trace.Trace // fitted to the model's longest sequence
	Zero  bool         // new blocks are zeroed

	Weights float64       // bytes that a step reads beside KV and states
	Pool    float64       // bytes
	HBM     float64       // peak of the device's memory
	NIC     float64       // one link and direction
	Latency time.Duration // of the NIC
	Host    time.Duration // of the host's own work in a step

	// Rate 0 is a closed loop of Concurrency requests (0: 1.2 times what the
	// pool holds of the trace's mean request); else arrivals are replayed that
	// many times as fast.
	Rate        float64
	Concurrency int

	// Late is the share of requests that are canceled once the step that zeroes
	// their blocks was launched, before any step uses them.
	Late  float64
	Defer Deferral

	CheckAll bool // blocks are checked at every use, not only after a write
	Full     bool // pages are held at their true size
	Seed     uint64

	// Progress, if not nil, is told now and then how many requests are over.
	// Runs of several modes call it from several goroutines.
	Progress func(mode loadgate.Mode, over, of int)
}

// MaxFullPool bounds a pool that is held at its true size, in bytes: each of
// them is written and compared in every mode, on the processor.
const MaxFullPool = 1_300_000_000

func (c *Config) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrConfig)
	}
	for _, f := range []struct {
		name  string
		v     float64
		least float64
	}{
		{"weights", c.Weights, 0}, {"pool", c.Pool, 1}, {"hbm", c.HBM, 1e6}, {"nic", c.NIC, 1e6}, {"rate", c.Rate, 0},
	} {
		if !(f.v >= f.least) || f.v > 1e18 {
			return bad("%s of %g: want %g to 1e18", f.name, f.v, f.least)
		}
	}
	switch {
	case c.Plan == nil || c.Trace == nil || len(c.Trace.Requests) == 0:
		return bad("no plan or no requests")
	case !(c.Late >= 0 && c.Late <= 1):
		return bad("a share of %g late requests: want 0 to 1", c.Late)
	case c.Latency < 0 || c.Latency > time.Hour:
		return bad("a NIC latency of %v", c.Latency)
	case c.Host < 0 || c.Host > time.Hour:
		return bad("host work of %v a step", c.Host)
	case c.Concurrency < 0 || c.Concurrency > math.MaxInt32:
		return bad("concurrency of %d", c.Concurrency)
	case c.Rate > 0 && c.Concurrency > 0:
		return bad("concurrency is of the closed loop, rate of the open one: only one can be")
	case c.Full && c.Pool > MaxFullPool:
		return bad("the full content of a pool of %g bytes takes too long: at most %d", c.Pool, MaxFullPool)
	}
	return nil
}

// Fit checks that each request fits into the pool by itself, and returns the
// number of blocks that hold KV. An error about a request is a *[trace.Error].
func (c *Config) Fit() (blocks int, err error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	n, err := c.Plan.Blocks(uint64(c.Pool))
	if err != nil {
		return 0, err
	}
	for i := range c.Trace.Requests {
		r := &c.Trace.Requests[i]
		if need := c.blocksOf(r.Input + r.Output + 1); need > n-1 {
			return 0, &trace.Error{File: c.Trace.Name, Line: r.Line, Field: "input_length", Value: fmt.Sprint(r.Input),
				Err: fmt.Errorf("with its answer of %d tokens the request takes %d blocks, the pool has %d", r.Output, need, n-1)}
		}
	}
	return n - 1, nil
}

// CacheBytes returns the bytes of the blocks that the requests take, one after
// the other.
func (c *Config) CacheBytes() float64 {
	n := 0.0
	for i := range c.Trace.Requests {
		r := &c.Trace.Requests[i]
		n += float64(c.blocksOf(r.Input+r.Output)) * float64(c.Plan.BlockBytes)
	}
	return n
}

// blocksOf returns the blocks of a request of so many tokens.
func (c *Config) blocksOf(tokens int) (n int) {
	for g := range c.Plan.Groups {
		n += c.Plan.RequestBlocks(g, tokens, 1)
	}
	return n
}

// Outstanding returns how many requests a closed loop keeps outstanding.
func (c *Config) Outstanding() (int, error) {
	blocks, err := c.Fit()
	if err != nil || c.Concurrency > 0 || c.Rate > 0 {
		return c.Concurrency, err
	}
	all := 0.0
	for i := range c.Trace.Requests {
		all += float64(c.blocksOf(c.Trace.Requests[i].Input + c.Trace.Requests[i].Output))
	}
	mean := all / float64(len(c.Trace.Requests))
	return max(1, int(math.Ceil(overcommit*float64(blocks)/mean))), nil
}

// overcommit is how much more is outstanding than fits, so that memory is what
// limits the load.
const overcommit = 1.2
