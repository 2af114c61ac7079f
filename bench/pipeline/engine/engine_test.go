package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/bench/trace"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/layout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config is the default run of bench/pipeline, with that many requests.
func config(t testing.TB, requests int) Config {
	p, err := layout.NewPlan(Builtin(), layout.Options{})
	require.NoError(t, err)
	tr, err := trace.Generate(trace.GenerateOptions{Requests: requests})
	require.NoError(t, err)
	return Config{Plan: p, Trace: tr, Zero: p.NeedsZeroing, Weights: 6e9, Pool: 60e9, HBM: 4.8e12, NIC: 50e9,
		Latency: 10 * time.Microsecond, Host: 500 * time.Microsecond, Seed: 1}
}

// short has a pool so small that its few requests reuse it again and again.
func short(t testing.TB) Config {
	c := config(t, 80)
	c.Pool, c.Weights = 7e9, 2e10
	for i := range c.Trace.Requests {
		r := &c.Trace.Requests[i]
		r.Input, r.Output = min(r.Input, 40_000), min(r.Output, 40)
		r.HashIDs = r.HashIDs[:(r.Input+trace.Stretch-1)/trace.Stretch]
	}
	return c
}

func run(t testing.TB, c Config, m loadgate.Mode) Result {
	t.Helper()
	r, err := Run(context.Background(), c, m)
	require.NoError(t, err, m)
	want := 0
	for i := range c.Trace.Requests {
		want += c.Trace.Requests[i].Output
	}
	if c.Late == 0 {
		require.Equal(t, len(c.Trace.Requests), r.Requests, m)
		require.Equal(t, want, r.OutputTokens, m)
	}
	require.Equal(t, len(c.Trace.Requests), r.Requests+r.Late, m)
	return r
}

// What every mode has to show, for several seeds, under each deferral.
func TestPromises(t *testing.T) {
	seeds := uint64(3)
	if raceDetector {
		seeds = 1
	}
	for _, mode := range core.Modes() {
		t.Run(mode.String(), func(t *testing.T) {
			for seed := range seeds {
				c := short(t)
				c.Seed, c.Defer = seed, []Deferral{DeferAuto, DeferOff, DeferOn}[seed]
				r := run(t, c, mode)
				bad := mode == core.Ungated || mode == core.SkipCovered && c.Defer == DeferOff
				require.Equal(t, bad, r.CorruptedBlocks > 0, "seed %d, defer %v: %+v", seed, c.Defer, r)
				require.Equal(t, bad, r.CorruptedRequests > 0)
				require.GreaterOrEqual(t, r.CorruptedBlocks, r.CorruptedRequests)
				if mode.Gated() {
					require.False(t, r.Corrupted(), "%+v", r)
				}
				waits := mode.Wait == core.HostDevice || mode.Wait == core.HostBlocks
				require.Equal(t, waits, r.HostBlocked > 0, "%+v", r)
				holds := mode.Wait == core.StepOrder || mode.Wait == core.OwnBlocks && mode.Coverage == core.ZeroAll
				if holds || !mode.Gated() || waits {
					require.Equal(t, holds, r.HeldShare > 0, "%+v", r)
				}
				require.Equal(t, r.HeldShare > 0, r.HoldP99 > 0)
				require.Positive(t, r.PTXLaunches)
				require.GreaterOrEqual(t, r.ReusedBlocks, 3.0)
				if mode.Coverage == core.ZeroAll {
					require.GreaterOrEqual(t, r.ZeroedBytes, r.LoadedBytes)
				} else {
					require.Less(t, r.ZeroedBytes, r.LoadedBytes/4)
				}
			}
		})
	}
}

// The default run is a real load, and the figures belong together.
func TestDefaultRun(t *testing.T) {
	requests, reused := 1000, 3.0
	if raceDetector {
		requests, reused = 150, 0.5
	}
	c := config(t, requests)
	n, err := c.Outstanding()
	require.NoError(t, err)
	r := run(t, c, core.Ungated)
	require.GreaterOrEqual(t, 1-r.GPUIdleShare, 0.8)
	require.GreaterOrEqual(t, r.ReusedBlocks, reused)
	require.Positive(t, r.CorruptedBlocks)
	require.Less(t, r.PeakBatch, n, "memory is the limit")
	require.Greater(t, r.PeakBatch, n/2)
	require.Less(t, r.StepP50, r.StepP99)
	require.Less(t, r.TTFTP50, r.TTFTP99)
	// A full step moves weights and a full pool; the longest can't take much
	// more than that.
	full := (c.Weights + c.Pool) / (c.HBM * 0.918) * 1e3
	require.InDelta(t, full, r.StepP99, 0.25*full)
}

// A step takes as long as what it moves, and the launches of its kernels.
func TestStepTime(t *testing.T) {
	c := config(t, 1)
	r := &c.Trace.Requests[0]
	r.Input, r.Output = 100_000, 50
	moved := c.Weights + 100_025*2048*10 + 2*30*2146304
	want := moved*(1+stepJitter/2)/(c.HBM*0.918)*1e3 + 40*kernelsPerLayer*1e-3
	require.InEpsilon(t, want, run(t, c, core.PerBlock).StepP50, 0.005)
}

// The same seed gives the same run, whatever else runs; another seed does not.
func TestReplays(t *testing.T) {
	c := short(t)
	want := run(t, c, core.PerBlock)
	other := c
	other.Seed++
	require.NotEqual(t, want.TokensPerS, run(t, other, core.PerBlock).TokensPerS)
	for range 2 {
		t.Run("again", func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, run(t, c, core.PerBlock))
		})
	}
}

// Modes in which the host waits nowhere and nothing is held lose nothing either
// when they are a gate in name only: the check finds what they corrupt.
func TestCheckFindsWhatAGateInNameCorrupts(t *testing.T) {
	for _, mode := range []loadgate.Mode{
		{Place: core.IdleBusy, Wait: core.AtOnce},
		{Place: core.GateStream, Wait: core.AtOnce, Coverage: core.ZeroUncovered},
	} {
		c := short(t)
		c.Defer = DeferOff
		require.Positive(t, run(t, c, mode).CorruptedBlocks, mode)
	}
}

// SkipCovered is right as long as loads arrive; zeroing that is under way when
// its blocks change hands is what it does not see.
func TestLateRequests(t *testing.T) {
	for _, late := range []float64{0, 0.2} {
		c := short(t)
		c.Late = late
		shipped, gated := run(t, c, core.SkipCovered), run(t, c, core.PerBlockSkipCovered)
		require.Equal(t, late > 0, shipped.CorruptedBlocks > 0, "%+v", shipped)
		require.Equal(t, late > 0, shipped.Late > 0)
		require.Equal(t, shipped.Late, gated.Late)
		require.False(t, gated.Corrupted(), "%+v", gated)
		require.False(t, func() bool { r := run(t, c, core.StepFIFO); return r.Corrupted() }())
	}
}

// Every use is checked, at full size too; what was found does not change.
func TestChecks(t *testing.T) {
	c := short(t)
	few := run(t, c, core.PerBlock)
	c.CheckAll = true
	all := run(t, c, core.PerBlock)
	require.Greater(t, all.Checks, 3*few.Checks/2)
	all.Checks = few.Checks
	require.Equal(t, few, all)
}

func TestFullContent(t *testing.T) {
	m := &layout.Model{Name: "small", MaxTokens: 4096}
	for i := range 4 {
		l := layout.Layer{Kind: layout.FullAttention, KVHeads: 1, KeyDim: 32, ValueDim: 32}
		if i < 3 {
			l = layout.Layer{Kind: layout.Recurrent, State: &layout.State{ConvKernel: 4,
				Conv: []layout.Part{{Name: "x", Units: 1, Width: 64}}, Temporal: []int{4, 32, 32}}}
		}
		m.Layers = append(m.Layers, l)
	}
	c := short(t)
	var err error
	c.Plan, err = layout.NewPlan(m, layout.Options{})
	require.NoError(t, err)
	require.Less(t, c.Plan.BlockBytes, uint64(100_000))
	for i := range c.Trace.Requests {
		r := &c.Trace.Requests[i]
		r.Input, r.Output, r.HashIDs = 20+3*i, 3+i%7, nil
	}
	c.Trace.Prefixes = false
	c.Pool, c.Full = 2e6, true
	for _, all := range []bool{false, true} {
		c.CheckAll = all
		for _, mode := range core.Modes() {
			r := run(t, c, mode)
			require.Equal(t, mode == core.Ungated, r.CorruptedBlocks > 0, "%+v", r)
			require.Equal(t, mode == core.Ungated, r.Corrupted(), "%+v", r)
		}
	}
}

// In an open loop requests come when the trace says, and the time between them
// costs nothing.
func TestOpenLoop(t *testing.T) {
	c := short(t)
	c.Rate, c.Pool = 0.001, 60e9
	r := run(t, c, core.PerBlock)
	require.Less(t, r.TTFTP50, 100.0)
	require.Less(t, r.TokensPerS, 100.0, "the trace's own time counts")
	require.Greater(t, r.GPUIdleShare, 0.9)
	require.Less(t, r.StepP99, 15.0, "pauses are no steps")
	c.Rate = 1e6
	burst := run(t, c, core.PerBlock)
	require.Greater(t, burst.TTFTP99, r.TTFTP99)
	require.Greater(t, burst.TokensPerS, 10*r.TokensPerS)
}

func attention(t testing.TB, name string) Config {
	m, err := layout.Named(name)
	require.NoError(t, err)
	c := short(t)
	c.Plan, err = layout.NewPlan(m, layout.Options{BlockTokens: 128})
	require.NoError(t, err)
	c.Zero, c.Pool = c.Plan.NeedsZeroing, 8e9
	return c
}

// Models without states share prefixes, and need no zeroing.
func TestAttentionOnly(t *testing.T) {
	names := []string{"llama-3.1-8b", "gpt-oss-20b"}
	if raceDetector {
		names = names[1:]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			c := attention(t, name)
			require.False(t, c.Zero)
			for _, mode := range []loadgate.Mode{core.Ungated, core.StepFIFO, core.PerBlock} {
				r := run(t, c, mode)
				require.False(t, r.Corrupted(), "%+v", r)
				require.Zero(t, r.ZeroedBytes)
				require.Zero(t, r.PTXLaunches)
			}
			shared := run(t, c, core.PerBlock)
			bare := *c.Trace
			bare.Requests = append([]trace.Request(nil), c.Trace.Requests...)
			for i := range bare.Requests {
				bare.Requests[i].HashIDs = nil
			}
			alone := c
			alone.Trace = &bare
			require.Less(t, shared.LoadedBytes, run(t, alone, core.PerBlock).LoadedBytes)
			c.Zero = true
			for _, mode := range core.Modes() {
				r := run(t, c, mode)
				require.Equal(t, mode == core.Ungated, r.CorruptedBlocks > 0, "%+v", r)
				require.Equal(t, mode == core.Ungated, r.Corrupted(), "%+v", r)
			}
		})
	}
}

// Where memory runs out requests give way, and are whole again.
func TestPreemption(t *testing.T) {
	c := short(t)
	for i := range c.Trace.Requests {
		r := &c.Trace.Requests[i]
		r.Input, r.Output, r.HashIDs = 1020, 60, nil
	}
	c.Trace.Prefixes, c.Pool = false, 2e9
	for _, mode := range core.Modes() {
		r := run(t, c, mode)
		require.Positive(t, r.Preemptions, mode)
		if mode.Gated() {
			require.False(t, r.Corrupted(), "%+v", r)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for says, change := range map[string]func(*Config){
		"no plan":           func(c *Config) { c.Plan = nil },
		"rate of -1":        func(c *Config) { c.Rate = -1 },
		"hbm of 0":          func(c *Config) { c.HBM = 0 },
		"late requests":     func(c *Config) { c.Late = 1.5 },
		"host work of -1ns": func(c *Config) { c.Host = -1 },
		"only one can be":   func(c *Config) { c.Rate, c.Concurrency = 1, 1 },
		"takes too long":    func(c *Config) { c.Full = true },
		"hold":              func(c *Config) { c.Pool = 1e6 },
		"blocks, the pool":  func(c *Config) { c.Trace.Requests[7].Input = 4_000_000; c.Trace.Requests[7].Line = 8 },
	} {
		c := short(t)
		change(&c)
		_, err := Run(context.Background(), c, core.PerBlock)
		require.ErrorContains(t, err, says)
		require.True(t, errors.Is(err, ErrConfig) || errors.Is(err, trace.ErrTrace) || errors.Is(err, layout.ErrOptions), err)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := config(t, 200)
	c.Progress = func(_ loadgate.Mode, over, of int) {
		require.LessOrEqual(t, over, of)
		cancel()
	}
	_, err := Run(ctx, c, core.PerBlock)
	require.ErrorIs(t, err, context.Canceled)
}

func TestDeferral(t *testing.T) {
	for _, d := range []Deferral{DeferAuto, DeferOn, DeferOff} {
		back, err := ParseDeferral(d.String())
		require.NoError(t, err)
		require.Equal(t, d, back)
	}
	_, err := ParseDeferral("never")
	require.ErrorIs(t, err, ErrConfig)
	for _, m := range core.Modes() {
		want := m == core.Ungated || m == core.SkipCovered || m == core.StepFIFO
		require.Equal(t, want, DeferAuto.in(m), m)
	}
}
