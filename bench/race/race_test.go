package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/bench/internal/wheel"
	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
)

func TestMain(m *testing.M) {
	if os.Getenv(prefillVariable) != "" { // the program itself is this, too
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func race(args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(args, &o, &e)
	return status, o.String(), e.String()
}

// In every mode, on both pacers: Ungated loses blocks, gated modes none.
func TestRace(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "20"},
		{"-rounds", "20", "-seed", "0"},
		{"-rounds", "20", "-seed", "7"},
		{"-rounds", "10", "-pacer", "real"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			status, out, errs := race(append(args, "-json")...)
			require.Equal(t, 0, status, errs)
			require.Empty(t, errs)
			var results []result
			require.NoError(t, json.Unmarshal([]byte(out), &results))
			require.Len(t, results, len(core.Modes()))
			for i, r := range results {
				mode := core.Modes()[i]
				require.Equal(t, mode.String(), r.Mode)
				require.True(t, r.Simulated)
				require.Equal(t, r.Rounds*arriving, r.Blocks)
				require.Equal(t, mode.Gated(), r.Corrupted == 0, "%+v", r)
				held := mode.Wait == core.StepOrder || mode.Wait == core.OwnBlocks
				require.Equal(t, held, r.Held > 0, "%+v", r)
			}
		})
	}
}

// Real bytes from another process: Ungated loses blocks, the gate none.
func TestRaceOverNIXL(t *testing.T) {
	if _, err := wheel.Open(); errors.Is(err, dl.ErrNoCgo) {
		t.Skip(err)
	} else if err != nil {
		testutil.SkipOrFail(t, "no NIXL: %v", err)
	}
	for mode, corrupts := range map[string]bool{"Ungated": true, "SkipCovered": true, "PerBlock": false, "PerBlock+SkipCovered": false} {
		t.Run(mode, func(t *testing.T) {
			status, out, errs := race("-transport", "nixl", "-rounds", "6", "-mode", mode, "-json")
			require.Equal(t, 0, status, errs)
			var results []result
			require.NoError(t, json.Unmarshal([]byte(out), &results))
			require.Len(t, results, 1)
			r := results[0]
			require.Equal(t, "nixl", r.Transport)
			require.Equal(t, "real", r.Pacer)
			require.Equal(t, corrupts, r.Corrupted > 0, "%+v", r)
			require.Equal(t, !corrupts, r.Held > 0, "%+v", r)
		})
	}
}

func TestReplays(t *testing.T) {
	_, first, _ := race("-rounds", "10", "-seed", "3")
	_, second, _ := race("-rounds", "10", "-seed", "3")
	require.Equal(t, first, second)
	require.Contains(t, first, "simulated")
}

func TestOneMode(t *testing.T) {
	status, out, _ := race("-rounds", "2", "-mode", "PerBlock")
	require.Equal(t, 0, status)
	require.Contains(t, out, "PerBlock ")
	require.NotContains(t, out, "Ungated")
}

// The check has teeth: a gate in name only does not pass it. PerBlock's places
// and coverage with nothing held back lose blocks, torn ones among them.
func TestCheckSeesLostBlocks(t *testing.T) {
	for _, mode := range []loadgate.Mode{
		{Place: core.IdleBusy, Wait: core.AtOnce},
		{Place: core.GateStream, Wait: core.AtOnce, Coverage: core.ZeroUncovered},
	} {
		r, err := config{rounds: 10, pacer: "virtual", seed: 1}.race(mode, overSoftnic)
		require.NoError(t, err)
		require.Positive(t, r.Corrupted, mode)
	}
}

func TestBadCommandLine(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-rounds 0", "-rounds 0: want 1 to 1000000000"},
		{"-rounds -3", "-rounds -3"},
		{"-rounds x", `"x"`},
		{"-rounds 99999999999999999999", "-rounds"},
		{"-mode perblock", `-mode "perblock": want one of Ungated, FullSync`},
		{"-pacer fast", `-pacer "fast": want virtual or real`},
		{"-seed -1", `"-1"`},
		{"-transport rdma", `-transport "rdma": want softnic or nixl`},
		{"-transport nixl -pacer virtual", "-pacer virtual: a real transport needs real time"},
		{"more", `unexpected argument "more"`},
	} {
		status, out, errs := race(strings.Fields(c.args)...)
		require.Equal(t, 2, status, c.args)
		require.Empty(t, out, c.args)
		require.Contains(t, errs, c.want)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	status, out, errs := race("-h")
	require.Equal(t, 0, status)
	require.Contains(t, out, "usage: go run ./bench/race")
	require.Empty(t, errs)
}

// One gated mode alone shows no race, and the program says so; where blocks were
// lost there is nothing to say.
func TestUnshown(t *testing.T) {
	const note = "only gated modes ran: that the race occurs was not shown\n"
	status, out, errs := race("-rounds", "5", "-mode", "PerBlock")
	require.Equal(t, 0, status, errs)
	require.True(t, strings.HasSuffix(out, note), out)
	status, out, errs = race("-rounds", "5", "-mode", "PerBlock", "-json")
	require.Equal(t, 0, status)
	require.Equal(t, note, errs)
	require.True(t, json.Valid([]byte(out)), out)
	for _, args := range [][]string{{"-rounds", "20"}, {"-rounds", "20", "-mode", "Ungated"}, {"-rounds", "20", "-mode", "SkipCovered"}} {
		status, out, errs = race(args...)
		require.Equal(t, 0, status, errs)
		require.NotContains(t, out+errs, "not shown")
	}
}
