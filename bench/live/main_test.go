package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/bench/internal/wheel"
	"github.com/kvgate/kvgate/bench/live/decode"
	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/loadgate/core"
)

const (
	// openerVariable names the opener that a test and its NIC's process use.
	openerVariable = "KVGATE_LIVE_TEST_DEVICE"
	// mainVariable makes the test's program the command.
	mainVariable = "KVGATE_LIVE_TEST_MAIN"
)

var openers = map[string]func(io.Writer, float64) (cuda.Device, error){"": openDevice}

func opener() func(io.Writer, float64) (cuda.Device, error) {
	return openers[os.Getenv(openerVariable)]
}

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(openerVariable) != "" && nic.Asked():
		if err := nic.Serve(func(slow float64) (cuda.Device, error) { return opener()(nil, slow) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case nic.Asked() || os.Getenv(mainVariable) != "":
		main()
		return
	}
	if os.Getenv(auto.Variable) == "" { // a GPU takes its own time
		if err := os.Setenv(auto.Variable, "sim"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func live(args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(context.Background(), args, &o, &e, opener())
	return status, o.String(), e.String()
}

// A mode's figures are there as soon as its round is over, and say what they are of.
func TestBenchLines(t *testing.T) {
	status, out, errs := live(append([]string{"-bench", "-nic", "copy", "-for", "200ms", "-rounds", "1", "-mode", "Ungated,PerBlock"}, little...)...)
	require.Zero(t, status, errs)
	for name, end := range map[string]string{"Ungated/round-1": "corrupted-blocks", "PerBlock/round-1": "\\t0 corrupted-blocks",
		"Ungated": "simulated-overhead-%", "PerBlock": "\\t0 corrupted-blocks\\t\\S+ simulated-overhead-%"} {
		require.Regexp(t, `(?m)^BenchmarkLive/`+name+`\t\d+\t[\d.e+]+ simulated-steps/s\t.*`+end+`$`, out)
	}
	require.Equal(t, 4, strings.Count(out, "BenchmarkLive/"), out)
	status, _, errs = live("-bench", "-json")
	require.Equal(t, 2, status)
	require.Contains(t, errs, "-json and -bench: want one of them")
}

func needNIXL(t *testing.T) {
	t.Helper()
	if _, err := wheel.Open(); errors.Is(err, dl.ErrNoCgo) {
		t.Skip(err)
	} else if err != nil {
		testutil.SkipOrFail(t, "no NIXL: %v", err)
	}
}

// little is for an engine that the race detector does not slow down too much.
var little = []string{"-requests", "4", "-prompt", "3", "-page", "2048"}

// measured runs the command and returns what -json says.
func measured(t *testing.T, args ...string) (s summary) {
	t.Helper()
	status, out, errs := live(append(append(args, "-json"), little...)...)
	require.Equal(t, 0, status, errs)
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&s))
	require.False(t, d.More(), "one object, and nothing else")
	require.Empty(t, s.Failure)
	for _, r := range s.Modes {
		mode, err := core.ParseMode(r.Mode)
		require.NoError(t, err)
		require.Equal(t, mode.Gated(), r.Gated)
		if r.Gated {
			require.Zero(t, r.CorruptedBlocks, "%+v", r)
			require.Zero(t, r.CorruptedRequests, "%+v", r)
		}
		if r.Mode == core.Ungated.String() {
			require.Positive(t, r.CorruptedRequests, "%+v", r)
		}
		require.Equal(t, r.Simulated, s.Device.Simulated)
		require.Len(t, r.RoundStepsPerS, r.Rounds)
		for _, v := range []float64{r.StepsPerS, r.TokensPerS, r.StepP50, r.SubmitsPerStep, r.PollsPerStep, float64(r.LoadedBytes), float64(r.ZeroedBytes)} {
			require.Positive(t, v, "%+v", r)
		}
		require.GreaterOrEqual(t, r.StepP99, r.StepP50)
		// No step is shorter than it is told to be, but the host may see the end of
		// the first late, and then those of others that are over already.
		least := float64(r.Steps-2*r.Rounds) * s.Config.StepUS * 1e-6
		require.GreaterOrEqual(t, r.Seconds, least, "%+v", r)
	}
	return s
}

// All modes, with a copy engine of the process: Ungated loses blocks, gated modes
// none.
func TestModes(t *testing.T) {
	t.Parallel()
	s := measured(t, "-nic", "copy", "-for", "200ms", "-rounds", "1")
	require.Equal(t, "copy", s.NIC.Kind)
	require.Empty(t, s.NIC.Skipped)
	require.True(t, s.Device.Simulated)
	require.True(t, s.NIC.Simulated)
	require.Len(t, s.Modes, len(core.Modes()))
	for i, r := range s.Modes {
		mode := core.Modes()[i]
		require.Equal(t, mode.String(), r.Mode)
		require.Equal(t, 1, r.Rounds)
		require.NotNil(t, r.Overhead)
		require.Equal(t, mode.Wait == core.HostDevice || mode.Wait == core.HostBlocks, r.HostBlocked > 0, "%+v", r)
		if mode.Wait == core.StepOrder || mode.Wait == core.OwnBlocks {
			require.Positive(t, r.HeldLoads, "%+v", r)
		} else {
			require.Zero(t, r.HeldLoads, "%+v", r)
		}
	}
}

func TestTable(t *testing.T) {
	status, out, errs := live(append([]string{"-nic", "copy", "-for", "200ms", "-rounds", "1", "-mode", "PerBlock"}, little...)...)
	require.Equal(t, 0, status, errs)
	require.Empty(t, errs)
	require.Contains(t, out, "simulated device: all figures are simulated")
	require.Contains(t, out, "nic: copy: a copy engine of this process")
	require.Contains(t, out, "PerBlock ")
	require.NotContains(t, out, "Ungated ")
	require.True(t, strings.HasSuffix(out, "only gated modes ran: that the race occurs was not shown\n"), out)
}

// Another process brings the prompts: by NIXL, and by CUDA IPC.
func TestOtherProcess(t *testing.T) {
	for _, kind := range []string{nic.NIXL, nic.IPC} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if kind == nic.NIXL {
				needNIXL(t)
			}
			s := measured(t, "-nic", kind, "-for", "300ms", "-rounds", "2", "-mode", "Ungated,PerBlock")
			require.Equal(t, kind, s.NIC.Kind)
			require.Equal(t, kind == nic.IPC, s.NIC.Simulated, "NIXL moves real bytes")
			require.Len(t, s.Modes, 2)
			require.Equal(t, 2, s.Modes[1].Rounds)
		})
	}
}

// writer is a buffer that is read while it is written.
type writer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

var (
	wall    = clock.Wall()
	process = regexp.MustCompile(`\(process ([0-9]+)\)`)
)

// The command is a program of its own here: what hung NIXL may still do is left
// to the end of a process.
func command(t *testing.T, args ...string) (c *exec.Cmd, out, errs *writer) {
	exe, err := os.Executable()
	require.NoError(t, err)
	c, out, errs = exec.Command(exe, args...), &writer{}, &writer{}
	c.Stdout, c.Stderr = out, errs
	c.Env = append(os.Environ(), mainVariable+"=1")
	return c, out, errs
}

// A NIC whose process is killed ends the run, soon and with the reason; one whose
// process hangs, too, but after a while.
func TestKilledNIC(t *testing.T) {
	for _, kind := range []string{nic.NIXL, nic.IPC} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if kind == nic.NIXL {
				needNIXL(t)
			}
			c, out, errs := command(t, "-nic", kind, "-for", "1h", "-mode", "PerBlock")
			require.NoError(t, c.Start())
			done := make(chan error, 1)
			wall.Go("command", func() { done <- c.Wait() })
			t.Cleanup(func() { _ = c.Process.Kill() })
			var pid int
			require.NoError(t, wall.WaitUntil(context.Background(), clock.Func("a process", func() bool {
				m := process.FindStringSubmatch(out.String())
				if m != nil {
					pid, _ = strconv.Atoi(m[1])
				}
				return m != nil || len(done) > 0
			}), wall.Now()+time.Minute))
			require.NotZero(t, pid, errs.String())
			require.NoError(t, wall.Sleep(context.Background(), 300*time.Millisecond))
			require.NoError(t, unix.Kill(pid, unix.SIGKILL))
			require.NoError(t, wall.WaitUntil(context.Background(), clock.Func("the end", func() bool { return len(done) > 0 }),
				wall.Now()+20*time.Second), "it hangs")
			<-done
			require.Equal(t, 1, c.ProcessState.ExitCode(), errs.String())
			require.Contains(t, errs.String(), "live: PerBlock: ")
			require.Contains(t, errs.String(), fmt.Sprintf("process %d: signal: killed", pid))
			require.Equal(t, 1, strings.Count(errs.String(), "live: "), errs.String())
		})
	}
}

// In an empty folder and an empty environment, with no NIXL to be found, the
// program works, and starts itself for the other end.
func TestStandalone(t *testing.T) {
	c, out, errs := command(t, "-for", "200ms", "-rounds", "1", "-mode", "Ungated,EventSync", "-json")
	c.Dir = t.TempDir()
	c.Env = []string{mainVariable + "=1", auto.Variable + "=sim", "KVGATE_NIXL_LIB=/nowhere/libnixl_capi.so"}
	require.NoError(t, c.Run(), errs.String())
	var s summary
	require.NoError(t, json.Unmarshal([]byte(out.String()), &s))
	require.Equal(t, nic.Auto, s.NIC.Asked)
	require.Equal(t, nic.IPC, s.NIC.Kind)
	require.Len(t, s.NIC.Skipped, 1)
	require.Equal(t, nic.NIXL, s.NIC.Skipped[0].Kind)
	require.Contains(t, errs.String(), "nic: not nixl: ")
	require.Len(t, s.Modes, 2)

	c, _, errs = command(t, "-nic", "nixl")
	c.Env = []string{mainVariable + "=1", auto.Variable + "=sim", "KVGATE_NIXL_LIB=/nowhere/libnixl_capi.so"}
	require.Error(t, c.Run())
	require.Equal(t, 1, c.ProcessState.ExitCode())
	require.Contains(t, errs.String(), "live: nic nixl: ")
}

func TestNoSuchDevice(t *testing.T) {
	t.Setenv(auto.Variable, "cuda")
	status, out, errs := live()
	require.Equal(t, 1, status)
	require.Empty(t, out)
	require.Contains(t, errs, `KVGATE_DRIVER="cuda": unknown`)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var out, errs writer
	wall.Go("interrupt", func() {
		begun := clock.Func("the first mode", func() bool { return strings.Contains(out.String(), "rounds of") })
		assert.NoError(t, wall.WaitUntil(ctx, begun, clock.Never))
		cancel(errors.New("interrupted"))
	})
	require.Equal(t, 1, run(ctx, []string{"-nic", "copy", "-for", "1h"}, &out, &errs, opener()))
	require.Equal(t, "live: Ungated: interrupted\n", errs.String())
}

// Exit status 1 is for results that are not as promised.
func TestJudge(t *testing.T) {
	judge := func(m core.Mode, steps, blocks, corrupted int) error {
		s := &summary{o: options{modes: []core.Mode{m}}, rounds: [][]decode.Round{{{Steps: steps, Span: time.Second, Blocks: blocks, CorruptedBlocks: corrupted}}}}
		return s.judge()
	}
	require.NoError(t, judge(core.Ungated, 5, 8, 8))
	require.NoError(t, judge(core.PerBlock, 5, 8, 0))
	require.NoError(t, judge(core.SkipCovered, 5, 8, 0))
	require.ErrorContains(t, judge(core.Ungated, 5, 8, 0), "Ungated corrupted none of 8 blocks: the race did not show")
	require.ErrorContains(t, judge(core.PerBlock, 5, 8, 1), "PerBlock is gated, and 1 of 8 blocks were corrupted")
	require.ErrorContains(t, judge(core.PerBlock, 0, 8, 0), "PerBlock made 0 steps over 8 blocks: -for is too short")
	require.ErrorContains(t, judge(core.PerBlock, 5, 0, 0), "over 0 blocks")
}

// Rounds of a mode are put together, and held against Ungated.
func TestTotals(t *testing.T) {
	ms := time.Millisecond
	s := &summary{o: options{modes: []core.Mode{core.Ungated, core.PerBlock, core.FullSync}}, rounds: [][]decode.Round{
		{{Span: 4 * time.Second, Steps: 400, Tokens: 800}},
		{{Span: time.Second, Steps: 100, Tokens: 300, StepTimes: []time.Duration{9 * ms, 11 * ms}, Holds: []time.Duration{ms}, Submits: 150, Polls: 500, ZeroedBytes: 7},
			{Span: 3 * time.Second, Steps: 260, Tokens: 60, StepTimes: []time.Duration{10 * ms}, HostBlocked: 2 * ms, Submits: 210, Polls: 220, ZeroedBytes: 1}},
		nil,
	}}
	s.finish()
	require.Len(t, s.Modes, 2, "a mode without rounds has no figures")
	r := s.Modes[1]
	require.Equal(t, "PerBlock", r.Mode)
	require.InDelta(t, 10, *r.Overhead, 1e-9)
	require.Zero(t, *s.Modes[0].Overhead)
	r.Overhead = nil
	require.Equal(t, result{Mode: "PerBlock", Gated: true, Rounds: 2, Seconds: 4, Steps: 360, StepsPerS: 90, TokensPerS: 90, StepP50: 10, StepP99: 10,
		HostBlocked: 2, HoldP50: 1, HoldP99: 1, SubmitsPerStep: 1, PollsPerStep: 2, ZeroedBytes: 8, RoundStepsPerS: []float64{100, 260. / 3}}, r)
}

func TestBadCommandLine(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-nic rdma", `-nic "rdma": want auto, nixl, ipc, copy`},
		{"-rounds 0", "-rounds 0: want 1 to 1000"},
		{"-rounds x", `"x"`},
		{"-for 0s", "-for 0s: want a millisecond a round to 1h"},
		{"-for 2h", "-for 2h0m0s"},
		{"-for 2ms -rounds 3", "-for 2ms"},
		{"-for 10", `"10"`},
		{"-mode perblock", `-mode "perblock": want one of Ungated, FullSync`},
		{"-mode PerBlock,", `-mode "": want one of`},
		{"-mode PerBlock,Ungated,PerBlock", "-mode PerBlock: twice"},
		{"-step -1ms", "-step -1ms: want 0 to 1m"},
		{"-step 2m", "-step 2m0s"},
		{"-requests 0", "-requests 0: want 1 to"},
		{"-page -4", "-page -4: want 1 to"},
		{"-slow 0.5", "-slow 0.5: want 1 to"},
		{"-slow NaN", "-slow NaN"},
		{"-seed -1", `"-1"`},
		{"more", `unexpected argument "more"`},
		{"-segments 65 -nic copy", "65 segments: want 1 to 64"},
		{"-page 100 -nic copy", "32 tokens in a page of 100 bytes"},
	} {
		status, _, errs := live(strings.Fields(c.args)...)
		require.Equal(t, 2, status, c.args)
		require.Contains(t, errs, c.want)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	status, out, errs := live("-h")
	require.Equal(t, 0, status)
	require.Contains(t, out, "usage: live [flags]")
	require.Empty(t, errs)
}
