package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/nvrtc"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
	"github.com/kvgate/kvgate/kernels"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a config.json of a model with small blocks.
const small = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 4,
	"hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 128,
	"max_position_embeddings": 8192, "torch_dtype": "bfloat16"}`

func config(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(small), 0o644))
	return path
}

func runHere(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	t.Setenv(auto.Variable, "sim")
	var o, e bytes.Buffer
	status = run(context.Background(), args, &o, &e, false)
	return status, o.String(), e.String()
}

// What is written is a tuning that the kernels take on such a device, and refuse on
// another; and the run says that its figures are simulated.
func TestTuningOfTheSimulator(t *testing.T) {
	dir := t.TempDir()
	file, plot := filepath.Join(dir, "tuning.json"), filepath.Join(dir, "tuning.svg")
	model := config(t)
	status, out, errs := runHere(t, "-model", model, "-nvrtc", "off", "-o", file, "-plot", plot)
	require.Zero(t, status, errs)
	for _, s := range []string{"simulated device: ranked by instructions of warps and sectors of memory", "(default)",
		"compiled at run time: -nvrtc off", "instructions and sectors for a KiB", "simulated time, bytes alone: rate", "best: ", "and 48 more"} {
		require.Contains(t, out, s)
	}
	require.Equal(t, 1, strings.Count(errs, "\n"), "the line about the device, and no progress: %q", errs)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	tuning, err := kernels.ParseTuning(text)
	require.NoError(t, err)
	require.Equal(t, "instructions", tuning.RankedBy)
	require.Zero(t, tuning.SMs)
	for sms, want := range map[int]error{0: nil, 64: kernels.ErrOtherDevice} {
		dev, err := sim.New(sim.Options{SMs: sms})
		require.NoError(t, err)
		set, err := kernels.LoadWithOptions(dev, kernels.LoadOptions{Tuning: tuning})
		require.ErrorIs(t, err, want)
		if want == nil {
			require.NoError(t, set.Close())
		}
		require.NoError(t, dev.Close())
	}
	svg, err := os.ReadFile(plot)
	require.NoError(t, err)
	require.Contains(t, string(svg), "Zeroing on a simulated device")
	require.Contains(t, string(svg), "tile, KiB")

	// Counts are the same each time.
	status, again, errs := runHere(t, "-model", model, "-nvrtc", "off", "-budget", "0.5")
	require.Zero(t, status, errs)
	upTo := func(s string) string { return s[:strings.Index(s, "\nbest")] }
	require.Equal(t, upTo(out), upTo(again))
	var withBudget kernels.Tuning
	require.NoError(t, json.Unmarshal([]byte(again[strings.Index(again, "\n{")+1:]), &withBudget))
	require.Positive(t, withBudget.SMs)
	require.Less(t, withBudget.SMs, 132)
}

func TestVariantsCompiledAtRunTime(t *testing.T) {
	found, err := filepath.Glob("../../.cache/nvidia-cuda-nvrtc-*/nvidia/*/lib/libnvrtc.so.*")
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("no NVRTC: ./build.sh deps fetches it")
	}
	status, out, errs := runHere(t, "-model", config(t), "-quick", "-nvrtc", found[0])
	if strings.Contains(errs, "without cgo") {
		t.Skip("built without cgo: no C library can be called")
	}
	require.Zero(t, status, errs)
	require.Contains(t, out, "compiled at run time: NVRTC 11.8")
	require.Contains(t, out, "unrolled 16 times")
	tuning, err := kernels.ParseTuning([]byte(out[strings.Index(out, "\n{")+1:]))
	require.NoError(t, err)
	require.Equal(t, 16, tuning.Variant.Unroll, "fewest instructions")
	dev, err := sim.New(sim.Options{})
	require.NoError(t, err)
	_, err = kernels.LoadWithOptions(dev, kernels.LoadOptions{Tuning: tuning})
	require.ErrorIs(t, err, kernels.ErrTuning, "it is not embedded")
	l, err := nvrtc.Open(found[0])
	require.NoError(t, err)
	tuner := &tuner{compiler: l}
	set, err := kernels.LoadWithOptions(dev, kernels.LoadOptions{Tuning: tuning, Compile: tuner.compile})
	require.NoError(t, err)
	require.NoError(t, set.Close())

	// What the compiler refuses is told, and the others are ranked.
	o, err := parse([]string{"-model", config(t), "-quick"})
	require.NoError(t, err)
	require.NoError(t, o.prepare())
	tuner, err = newTuner(dev, o, l)
	require.NoError(t, err)
	old := defaults()
	old.Variant.Arch = "compute_11"
	tuner.space = []candidate{defaults(), old, {defaults().Variant, 4 << 10, 8}}
	r, err := tuner.tune(context.Background())
	require.NoError(t, err)
	require.Equal(t, old, r.Rows[2].candidate)
	require.ErrorIs(t, r.Rows[2].Err, nvrtc.ErrInvalidOption)
	var text bytes.Buffer
	require.NoError(t, r.write(&text))
	require.Contains(t, text.String(), "not to be had: streaming, unrolled 8 times, compute_11: ")
	require.NoError(t, tuner.close())
	require.NoError(t, l.Close())
	require.NoError(t, dev.Close())
}

func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(bad, []byte("{"), 0o644))
	for says, args := range map[string][]string{
		`unexpected argument "x"`: {"x"},
		"-tp 0":                   {"-tp", "0"},
		"-block-tokens -1":        {"-block-tokens", "-1"},
		"-rounds 0":               {"-rounds", "0"},
		"-budget 1":               {"-budget", "1"},
		"-pool -1":                {"-pool", "-1"},
		`-plot "x.gif"`:           {"-plot", "x.gif"},
		"-nvrtc: want a path":     {"-nvrtc", ""},
		"no-such-model":           {"-model", "no-such-model"},
		"config.json":             {"-model", bad},
		"no such file":            {"-model", filepath.Join(dir, "none.json")},
		"flag provided but not defined: -what (-h lists": {"-what"},
	} {
		status, out, errs := runHere(t, args...)
		require.Equal(t, 2, status, says)
		require.Empty(t, out)
		require.Contains(t, errs, says)
		require.True(t, strings.HasPrefix(errs, "tune: "), errs)
	}
	status, _, errs := runHere(t, "-model", config(t), "-nvrtc", filepath.Join(dir, "libnvrtc.so"))
	require.Equal(t, 1, status)
	require.Contains(t, errs, "no usable NVRTC")
	status, _, errs = runHere(t, "-model", config(t), "-pool", "1000")
	require.Equal(t, 1, status)
	require.Contains(t, errs, "-pool: ")
	status, out, _ := runHere(t, "-h")
	require.Zero(t, status)
	require.Equal(t, usage, out)
}

func TestCanceled(t *testing.T) {
	t.Setenv(auto.Variable, "sim")
	ctx, stop := context.WithCancelCause(context.Background())
	stop(errors.New("enough"))
	var out, errs bytes.Buffer
	require.Equal(t, 1, run(ctx, []string{"-model", config(t), "-nvrtc", "off"}, &out, &errs, false))
	require.Contains(t, errs.String(), "tune: enough")
}

// On a terminal progress is shown, and cleared at the end.
func TestProgress(t *testing.T) {
	t.Setenv(auto.Variable, "sim")
	var out, errs bytes.Buffer
	require.Zero(t, run(context.Background(), []string{"-model", config(t), "-quick", "-nvrtc", "off"}, &out, &errs, true))
	require.Contains(t, errs.String(), "tiles of 32 KiB")
	require.NotContains(t, out.String(), "\r")
}

// ranked is a result of made-up times: of two figures, three rounds each.
func ranked(counts bool, times ...[2][3]float64) *result {
	r := &result{Counts: counts, Figures: make([]figure, 2)}
	for i, t := range times {
		c := defaults()
		c.Tile <<= i
		w := row{candidate: c}
		for _, f := range t {
			w.rounds = append(w.rounds, append([]float64(nil), f[:]...))
		}
		r.Rows = append(r.Rows, w)
	}
	return r
}

// The best is the least of the geometric means of medians, held against a plain one;
// the defaults stay unless another is better by more than noise.
func TestChoice(t *testing.T) {
	r := ranked(false, [2][3]float64{{100, 90, 300}, {50, 50, 50}}, [2][3]float64{{80, 10, 95}, {45, 60, 40}}, [2][3]float64{{400, 1, 200}, {10, 20, 99}})
	require.NoError(t, r.choose())
	require.InDelta(t, math.Sqrt(80./100*45/50), r.Rows[0].Cost, 1e-12)
	require.InDelta(t, math.Sqrt(200./100*20/50), r.Rows[1].Cost, 1e-12)
	require.InDelta(t, 1, r.Rows[2].Cost, 1e-12)
	require.False(t, r.Kept)
	require.EqualValues(t, 2*defaults().Tile, r.Tuning.Tile)
	require.Equal(t, "time", r.Tuning.RankedBy)

	r = ranked(false, [2][3]float64{{100, 100, 100}, {50, 50, 50}}, [2][3]float64{{99, 99, 99}, {50, 50, 50}})
	require.NoError(t, r.choose())
	require.True(t, r.Kept, "1 % is noise")
	require.Equal(t, defaults().Tile, r.Tuning.Tile)
	r = ranked(true, [2][3]float64{{100, 100, 100}, {50, 50, 50}}, [2][3]float64{{99, 99, 99}, {50, 50, 50}})
	require.NoError(t, r.choose())
	require.False(t, r.Kept, "counts have none")

	r = ranked(false, [2][3]float64{{100, 100, 100}, {50, 50, 50}}, [2][3]float64{})
	r.Rows[1].Err, r.Rows[1].rounds = cuda.ErrUnsupportedPTX, nil
	require.NoError(t, r.choose(), "one that can not be had is last")
	require.True(t, math.IsInf(r.Rows[1].Cost, 1))
	r.Rows[0].Err = cuda.ErrUnsupportedPTX
	require.ErrorIs(t, r.choose(), cuda.ErrUnsupportedPTX)
}

func TestRefusedVariantsEndNothing(t *testing.T) {
	for _, err := range []error{&nvrtc.Error{Code: nvrtc.ErrInvalidOption}, cuda.ErrUnsupportedPTX, cuda.ErrInvalidPTX, cuda.ErrInvalidImage} {
		require.True(t, refused(err))
	}
	for _, err := range []error{cuda.ErrOutOfMemory, cuda.ErrIllegalAddress, cuda.ErrLaunchFailed, errors.New("x")} {
		require.False(t, refused(err))
	}
}

// A counted figure of one block is what its longest warp does, of more what all do
// for a KiB.
func TestCounted(t *testing.T) {
	c := ptx.Count{Instructions: 800, Longest: 100, StoreSectors: 2048, LoadSectors: 24}
	require.InDelta(t, 100, counted(c, figure{n: 1, bytes: 64 << 10}), 1e-9)
	require.InDelta(t, (800+2048+24)/128., counted(c, figure{n: 2, bytes: 128 << 10}), 1e-9)
}
