package decode

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
)

func TestMain(m *testing.M) {
	if !nic.Asked() {
		goleak.VerifyTestMain(m)
		return
	}
	if err := nic.Serve(func(float64) (cuda.Device, error) { return sim.New(sim.Options{Real: true, SMs: 2}) }); err != nil {
		os.Exit(1)
	}
}

var bg = context.Background()

var small = Config{Step: 2 * time.Millisecond, Requests: 4, PromptBlocks: 2, AnswerTokens: 6, BlockTokens: 16, Segments: 2, PageBytes: 1024, Seed: 3}

func device(t *testing.T) cuda.Device {
	dev, err := sim.New(sim.Options{Real: true, SMs: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

func machine(t *testing.T, c Config) *Machine {
	m, err := Open(bg, device(t), c, nic.Copy, 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// The stamps have teeth: a gate in name only does not pass them, nor does one
// that zeroes nothing.
func TestStampsCatchCorruption(t *testing.T) {
	m := machine(t, small)
	for _, mode := range []loadgate.Mode{
		core.Ungated,
		{Place: core.IdleBusy, Wait: core.AtOnce},
		{Place: core.GateStream, Wait: core.AtOnce, Coverage: core.ZeroUncovered},
	} {
		r, err := m.Round(bg, mode, 300*time.Millisecond)
		require.NoError(t, err)
		require.Positive(t, r.CorruptedBlocks, mode)
		require.Positive(t, r.CorruptedRequests, mode)
		require.LessOrEqual(t, r.CorruptedBlocks, r.Blocks)
		require.LessOrEqual(t, r.CorruptedRequests, r.Requests)
	}
	// After all that the same memory serves a gated mode.
	r, err := m.Round(bg, core.PerBlock, 300*time.Millisecond)
	require.NoError(t, err)
	require.Zero(t, r.CorruptedBlocks)
	require.Positive(t, r.Requests)
}

// What a round says of itself adds up.
func TestRound(t *testing.T) {
	m := machine(t, small)
	const d = 400 * time.Millisecond
	begin := m.wall.Now()
	r, err := m.Round(bg, core.PerBlock, d)
	took := m.wall.Now() - begin
	require.NoError(t, err)
	require.GreaterOrEqual(t, took, d)
	require.Positive(t, r.Steps)
	require.LessOrEqual(t, r.Span, took)
	require.LessOrEqual(t, len(r.StepTimes), r.Steps)
	require.LessOrEqual(t, r.Tokens, r.Steps*small.Requests)
	require.GreaterOrEqual(t, r.Span, time.Duration(r.Steps-2)*small.Step, "no step is shorter than it is told to be")
	require.Equal(t, uint64(r.Loads*small.PromptBlocks)*small.BlockBytes(), r.LoadedBytes)
	require.GreaterOrEqual(t, r.ZeroedBytes, r.LoadedBytes, "all new blocks are zeroed, and those of answers too")
	require.LessOrEqual(t, len(r.Holds), r.Loads)
	require.Len(t, r.LoadTimes, r.Loads)
	require.GreaterOrEqual(t, r.Submits, uint64(r.Steps)-1)
	require.LessOrEqual(t, r.Blocks, r.Requests*(small.PromptBlocks+small.answerBlocks()))
	require.GreaterOrEqual(t, r.Blocks, r.Requests*small.PromptBlocks)
	require.Zero(t, r.HostBlocked)
}

// Requests come and go as the configuration says.
func TestConfig(t *testing.T) {
	require.NoError(t, small.Check())
	require.Equal(t, 4*(2+1)+1, small.Blocks())
	for want, change := range map[string]func(c *Config){
		"0 requests":                  func(c *Config) { c.Requests = 0 },
		"0 blocks of a prompt":        func(c *Config) { c.PromptBlocks = 0 },
		"-1 tokens of an answer":      func(c *Config) { c.AnswerTokens = -1 },
		"a step of -1ns":              func(c *Config) { c.Step = -1 },
		"65 segments":                 func(c *Config) { c.Segments = 65 },
		"a slot of 8 bytes":           func(c *Config) { c.PageBytes = 128 },
		"tokens of a request":         func(c *Config) { c.PromptBlocks = 1 << 17 },
		"pages in a step":             func(c *Config) { c.Requests, c.Segments, c.PageBytes = 1<<20, 8, 1024 },
		"1048577 requests: want 1 to": func(c *Config) { c.Requests = 1<<20 + 1 },
	} {
		c := small
		change(&c)
		require.ErrorContains(t, c.Check(), want)
		_, err := Open(bg, device(t), c, nic.Copy, 1)
		require.ErrorContains(t, err, want)
	}
	// Answers of one token, blocks of one token, no time for a step.
	m := machine(t, Config{Requests: 2, PromptBlocks: 1, AnswerTokens: 1, BlockTokens: 1, Segments: 1, PageBytes: 16})
	r, err := m.Round(bg, core.PerBlock, time.Millisecond)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Steps, leastSteps)
	require.Positive(t, r.Requests)
	require.Zero(t, r.CorruptedBlocks)
}

func TestCanceled(t *testing.T) {
	m := machine(t, small)
	ctx, cancel := context.WithCancelCause(bg)
	why := errors.New("enough")
	m.wall.Go("cancel", func() {
		_ = m.wall.Sleep(bg, 100*time.Millisecond)
		cancel(why)
	})
	begin := m.wall.Now()
	_, err := m.Round(ctx, core.PerBlock, time.Hour)
	require.ErrorIs(t, err, why)
	require.Less(t, m.wall.Now()-begin, 10*time.Second)
	// The machine is as good as new.
	_, err = m.Round(bg, core.PerBlock, 50*time.Millisecond)
	require.NoError(t, err)
}

// Loads that do not come end the round, too: nobody can tell why they do not.
func TestHungNIC(t *testing.T) {
	dev, err := sim.New(sim.Options{Real: true, SMs: 2, Shareable: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	for _, after := range []time.Duration{0, 200 * time.Millisecond} {
		m, err := Open(bg, dev, small, nic.IPC, 1)
		require.NoError(t, err)
		m.patience = 300 * time.Millisecond
		stop := func() { _ = unix.Kill(m.nic.Process(), unix.SIGSTOP) }
		if after == 0 {
			stop()
		} else {
			m.wall.Go("stop", func() {
				_ = m.wall.Sleep(bg, after)
				stop()
			})
		}
		begin := m.wall.Now()
		_, err = m.Round(bg, core.PerBlock, time.Hour)
		require.ErrorContains(t, err, " for 300ms")
		require.Less(t, m.wall.Now()-begin, giveUp)
		require.ErrorContains(t, m.Close(), "killed")
	}
}

// A device that dies ends the round.
func TestDeviceDies(t *testing.T) {
	copies := 0
	dev := faultdev.Wrap(device(t), func(c faultdev.Call) error {
		if c.Op == cuda.OpCopy {
			if copies++; copies > 40 {
				return &cuda.Error{Code: cuda.ErrECC, Op: "copy"}
			}
		}
		return nil
	})
	m, err := Open(bg, dev, small, nic.Copy, 1)
	require.NoError(t, err)
	_, err = m.Round(bg, core.PerBlock, time.Hour)
	require.ErrorIs(t, err, cuda.ErrECC)
	require.ErrorIs(t, m.Close(), cuda.ErrECC)
}

// Crossings are counted, and the device's optional sides stay.
func TestCounted(t *testing.T) {
	dev := device(t)
	c, as := count(dev)
	require.Implements(t, (*cuda.Watcher)(nil), as)
	require.Implements(t, (*cuda.RDMADevice)(nil), as)
	require.NoError(t, as.Submit(&cuda.Batch{}))
	require.NoError(t, as.Poll(nil))
	require.NoError(t, as.Poll(nil))
	require.EqualValues(t, 1, c.submits.Load())
	require.EqualValues(t, 2, c.polls.Load())
	_, as = count(struct{ cuda.Device }{dev})
	_, watches := as.(cuda.Watcher)
	_, rdma := as.(cuda.RDMADevice)
	require.False(t, watches || rdma)
}
