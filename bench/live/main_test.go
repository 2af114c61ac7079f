package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/loadgate/core"
)

func TestMain(m *testing.M) {
	if nic.Asked() { // the program itself is this, too
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
	status = run(context.Background(), args, &o, &e, openDevice)
	return status, o.String(), e.String()
}

// measured runs the command and returns what -json says.
func measured(t *testing.T, args ...string) (s summary) {
	t.Helper()
	status, out, errs := live(append(args, "-json")...)
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
		require.GreaterOrEqual(t, 1.01, r.StepsPerS*s.Config.StepUS*1e-6, "no step is shorter than it is told to be")
	}
	return s
}

// All modes, with a copy engine of the process: Ungated loses blocks, gated modes
// none.
func TestModes(t *testing.T) {
	s := measured(t, "-nic", "copy", "-for", "400ms", "-rounds", "2")
	require.Equal(t, "copy", s.NIC.Kind)
	require.Empty(t, s.NIC.Skipped)
	require.True(t, s.Device.Simulated)
	require.True(t, s.NIC.Simulated)
	require.Len(t, s.Modes, len(core.Modes()))
	for i, r := range s.Modes {
		mode := core.Modes()[i]
		require.Equal(t, mode.String(), r.Mode)
		require.Equal(t, 2, r.Rounds)
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
	status, out, errs := live("-nic", "copy", "-for", "200ms", "-rounds", "1", "-mode", "PerBlock")
	require.Equal(t, 0, status, errs)
	require.Empty(t, errs)
	require.Contains(t, out, "simulated device: all figures are simulated")
	require.Contains(t, out, "nic: copy: a copy engine of this process")
	require.Contains(t, out, "PerBlock ")
	require.NotContains(t, out, "Ungated ")
	require.True(t, strings.HasSuffix(out, "only gated modes ran: that the race occurs was not shown\n"), out)
}
