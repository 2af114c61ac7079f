package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/bench/pipeline/engine"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/loadgate/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pipeline(args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(context.Background(), args, &o, &e, false)
	return status, o.String(), e.String()
}

// Fields of the JSON object and of each mode, as promised to its readers.
const (
	topFields  = "model trace clock seed params needs_zeroing modes"
	modeFields = "mode requests output_tokens tokens_per_s ttft_ms_p50 ttft_ms_p99 step_ms_p50 step_ms_p99 host_blocked_ms " +
		"gate_idle_ms held_share hold_ms_p50 hold_ms_p99 gpu_idle_share zeroed_bytes loaded_bytes corrupted_blocks " +
		"corrupted_requests peak_batch preemptions reused_blocks ptx_launches overhead_vs_ungated"
	modeNames = "Ungated FullSync EventSync StepFIFO PerBlock SkipCovered PerBlock+SkipCovered"
)

// fields returns the names of a JSON object in order.
func fields(t *testing.T, raw []byte) (names []string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	for depth := 0; ; {
		tok, err := d.Token()
		require.NoError(t, err)
		if c, ok := tok.(json.Delim); ok {
			if depth += map[json.Delim]int{'{': 1, '[': 1, '}': -1, ']': -1}[c]; depth == 0 {
				return names
			}
			continue
		}
		if depth == 1 {
			names = append(names, tok.(string))
			var skip json.RawMessage
			require.NoError(t, d.Decode(&skip))
		}
	}
}

type report struct {
	Model        string           `json:"model"`
	Trace        string           `json:"trace"`
	Clock        string           `json:"clock"`
	Seed         uint64           `json:"seed"`
	Params       map[string]any   `json:"params"`
	NeedsZeroing bool             `json:"needs_zeroing"`
	Modes        []map[string]any `json:"modes"`
}

func jsonOf(t *testing.T, args ...string) (report, []byte) {
	status, out, errs := pipeline(append(args, "-json")...)
	require.Equal(t, 0, status, errs)
	require.Empty(t, errs)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r, []byte(out)
}

// small is a run that takes a moment, of so many requests.
var small = func() []string {
	requests = 40
	if raceDetector {
		requests = 25
	}
	return []string{"-pool", "9e9", "-weights", "2e10", "-requests", strconv.Itoa(requests)}
}()

var requests int

func TestJSON(t *testing.T) {
	r, raw := jsonOf(t, small...)
	require.Equal(t, strings.Fields(topFields), fields(t, raw))
	var top map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &top))
	var modes []json.RawMessage
	require.NoError(t, json.Unmarshal(top["modes"], &modes))
	for i, m := range modes {
		require.Equal(t, strings.Fields(modeFields), fields(t, m))
		require.Equal(t, strings.Fields(modeNames)[i], r.Modes[i]["mode"])
	}
	require.Len(t, modes, 7)
	require.Equal(t, "built-in hybrid", r.Model)
	require.Equal(t, "virtual", r.Clock)
	require.EqualValues(t, 1, r.Seed)
	require.True(t, r.NeedsZeroing)
	for _, p := range strings.Fields("weights pool hbm nic nic_us host_us block_tokens tp kv_dtype requests clip") {
		require.Contains(t, r.Params, p)
	}
	require.Equal(t, true, r.Params["simulated"])
	require.EqualValues(t, requests, r.Params["requests"])
	for _, m := range r.Modes {
		require.EqualValues(t, requests, m["requests"])
		for _, share := range []string{"held_share", "gpu_idle_share"} {
			require.GreaterOrEqual(t, m[share], 0.0)
			require.LessOrEqual(t, m[share], 1.0)
		}
		u := r.Modes[0]["tokens_per_s"].(float64)
		require.InDelta(t, 1-m["tokens_per_s"].(float64)/u, m["overhead_vs_ungated"], 1e-12)
	}
	require.Greater(t, r.Modes[0]["corrupted_blocks"], 0.0)
}

// Seeds are paired: those of a run of several are those of runs of one.
func TestSeeds(t *testing.T) {
	var sum, squares float64
	for _, seed := range []string{"4", "5", "6"} {
		r, _ := jsonOf(t, append(small, "-requests", "12", "-seed", seed)...)
		v := r.Modes[4]["tokens_per_s"].(float64)
		sum += v
		squares += v * v
	}
	r, raw := jsonOf(t, append(small, "-requests", "12", "-seed", "4", "-seeds", "3")...)
	m := r.Modes[4]
	require.InEpsilon(t, sum/3, m["tokens_per_s"], 1e-9)
	sd := math.Sqrt((squares - sum*sum/3) / 2)
	ci := m["ci95"].(map[string]any)
	require.InEpsilon(t, 4.303*sd/math.Sqrt(3), ci["tokens_per_s"], 1e-6)
	require.Len(t, ci, len(metrics))
	require.Equal(t, 2*len(r.Modes), strings.Count(string(raw), `"tokens_per_s"`))
}

func TestTable(t *testing.T) {
	status, out, errs := pipeline(small...)
	require.Equal(t, 0, status)
	require.Empty(t, errs, "progress is for terminals")
	require.True(t, strings.HasPrefix(out, "simulated"))
	require.Contains(t, out, "zeroing is needed")
	require.Contains(t, out, "simulated costs: ")
	for _, name := range strings.Fields(modeNames) {
		require.Regexp(t, `(?m)^ *`+strings.ReplaceAll(name, "+", `\+`)+` +\d`, out)
	}
	status, out, _ = pipeline(append(small, "-seeds", "2", "-late", "0.2", "-defer", "off")...)
	require.Equal(t, 0, status)
	require.Contains(t, out, "±")
	require.Contains(t, out, "requests were canceled")
	require.Contains(t, out, "means over seeds 1 to 2")
}

func TestProgressGoesToTheTerminal(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, 0, run(context.Background(), append(small, "-requests", "66", "-trace", testutil.Shared(t, "traces", "azure_llm_2023_code_2000.csv")), &out, &errs, true))
	require.Regexp(t, `64 of 66 requests`, errs.String())
	require.True(t, strings.HasSuffix(errs.String(), "\r\x1b[K"))
	require.NotContains(t, out.String(), "\x1b")
}

// Models of files: which need zeroing, and prompts that are too long for one.
func TestModels(t *testing.T) {
	model := func(name string) string { return name }
	for name, needs := range map[string]bool{"llama-3.1-8b": false, "gpt-oss-20b": false, "qwen3.5-35b-a3b": true} {
		r, _ := jsonOf(t, "-requests", "40", "-model", model(name), "-pool", "2e10")
		require.Equal(t, needs, r.NeedsZeroing, name)
		for _, m := range r.Modes {
			require.Equal(t, needs, m["zeroed_bytes"].(float64) > 0, m)
		}
	}
	status, out, _ := pipeline("-requests", "20", "-model", model("llama-3.1-8b"), "-pool", "2e10")
	require.Equal(t, 0, status)
	require.Contains(t, out, "zeroing is not needed, and nothing is zeroed")
	r, _ := jsonOf(t, "-requests", "40", "-model", model("llama-3.1-8b"), "-pool", "2e10", "-zero", "always")
	require.False(t, r.NeedsZeroing)
	require.Greater(t, r.Modes[4]["zeroed_bytes"], 0.0)

	short := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(short, []byte(`{"architectures": ["SomethingNew"], "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
		"num_hidden_layers": 4, "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}`), 0o600))
	status, _, errs := pipeline("-model", short)
	require.Equal(t, 2, status)
	require.Contains(t, errs, `unknown architecture "SomethingNew"`)
	r, _ = jsonOf(t, "-requests", "20", "-model", "deepseek-v4-flash", "-pool", "2e10")
	require.True(t, r.NeedsZeroing)

	recorded := testutil.Shared(t, "traces", "mooncake_conversation_2000.jsonl")
	args := []string{"-model", short, "-as", "gqa", "-trace", recorded, "-requests", "40"}
	status, _, errs = pipeline(args...)
	require.Equal(t, 2, status)
	require.Regexp(t, `mooncake_conversation_2000.jsonl:\d+: input_length: \d+: .*8192`, errs)
	require.Equal(t, 1, strings.Count(errs, "\n"))
	r, _ = jsonOf(t, append(args, "-clip")...)
	require.Greater(t, r.Params["clipped"], 0.0)
	r, _ = jsonOf(t, "-trace", testutil.Shared(t, "traces", "azure_llm_2023_code_2000.csv"), "-requests", "60", "-rate", "50")
	require.EqualValues(t, 50, r.Params["rate"])
}

func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	azure := testutil.Shared(t, "traces", "azure_llm_2023_code_2000.csv")
	bare := file("bare.json", `{"architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 3}`)
	two := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,%s,44\n2023-11-16 18:15:47.6805900,%s,44\n"
	status, out, errs := pipeline("-model", bare, "-trace", file("two.csv", fmt.Sprintf(two, "300", "400")), "-late", "0.999999999")
	require.Equal(t, 0, status, errs)
	require.Contains(t, out, "the model names no dtype: activations are taken as bfloat16\n")
	require.Contains(t, out, "no limit known")
	require.Contains(t, out, "no request completed in PerBlock\n")
	// What lies behind the first n requests is not looked at.
	long := file("long.csv", fmt.Sprintf(two, "300", "400000"))
	status, _, errs = pipeline("-trace", long, "-requests", "1")
	require.Equal(t, 0, status, errs)
	require.Equal(t, "12345", format(counts, 12345.4))
	require.Equal(t, "12.5", format(counts, 12.5))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-trace", long}, "long.csv:3: ContextTokens: 400000: the model's sequences have at most 262144 tokens, prompt and answer together (-clip"},
		{[]string{"-no-such"}, "-no-such"},
		{[]string{"more"}, `unexpected argument "more"`},
		{[]string{"-defer", "never"}, `-defer "never": want auto or on or off`},
		{[]string{"-zero", "no"}, "-zero"},
		{[]string{"-check", "none"}, "-check"},
		{[]string{"-content", "none"}, "-content"},
		{[]string{"-pool", "-1"}, "-pool -1"},
		{[]string{"-pool", "NaN"}, "-pool NaN"},
		{[]string{"-pool", "1e6"}, "-pool 1000000: layout: "},
		{[]string{"-late", "2"}, "-late 2"},
		{[]string{"-rate", "-2"}, "-rate -2"},
		{[]string{"-host-us", "-1"}, "-host-us"},
		{[]string{"-seeds", "0"}, "-seeds 0: want 1"},
		{[]string{"-requests", "-1"}, "-requests -1"},
		{[]string{"-tp", "0"}, "-tp 0"},
		{[]string{"-tp", "5"}, "-tp 5: layout: "},
		{[]string{"-kv-dtype", "int3"}, "-kv-dtype"},
		{[]string{"-block-tokens", "7"}, "-block-tokens 7: layout: "},
		{[]string{"-rate", "2", "-concurrency", "3"}, "-rate and -concurrency"},
		{[]string{"-content", "full"}, "-content full: -pool 60000000000: want at most 1300000000"},
		{[]string{"-content", "full", "-pool", "1.3e9", "-requests", "400", "-trace", azure}, "-content full: 400 requests write"},
		{[]string{"-late", "1"}, "-late 1: want less than 1"},
		{[]string{"-requests", "5000000"}, "-requests 5000000: want 0 to 4194304"},
		{[]string{"-trace", filepath.Join(dir, "none.jsonl")}, "none.jsonl"},
		{[]string{"-trace", file("t.txt", "")}, "t.txt"},
		{[]string{"-trace", file("empty.jsonl", "")}, "no requests"},
		{[]string{"-trace", file("neg.jsonl", `{"timestamp": 0, "input_length": -4, "output_length": 1, "hash_ids": []}`)}, "neg.jsonl:1: input_length: -4"},
		{[]string{"-trace", file("big.jsonl", "\n")}, "big.jsonl:1"},
		{[]string{"-trace", file("huge.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,200000,44\n"), "-pool", "1e9"}, "huge.csv:2"},
		{[]string{"-model", filepath.Join(dir, "none.json")}, "none.json"},
		{[]string{"-model", file("bad.json", "{")}, "bad.json"},
		{[]string{"-model", file("arch.json", `{"architectures": ["NoSuchModel"], "model_type": "nosuch"}`)}, "NoSuchModel"},
	} {
		status, out, errs := pipeline(c.args...)
		require.Equal(t, 2, status, "%q: %s", c.args, errs)
		require.Empty(t, out, c.args)
		require.Contains(t, errs, c.want, c.args)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	status, out, errs = pipeline("-h")
	require.Equal(t, 0, status)
	require.Contains(t, out, "usage: go run ./bench/pipeline")
	require.Empty(t, errs)
}

// Exit status 1 is for a gated mode that did not keep its promise.
func TestJudge(t *testing.T) {
	ok := []engine.Result{{Mode: "Ungated", CorruptedBlocks: 5, Strays: 1}, {Mode: "SkipCovered", CorruptedBlocks: 1}, {Mode: "PerBlock"}}
	require.NoError(t, judge([][]engine.Result{ok, ok}))
	for _, bad := range []engine.Result{{CorruptedBlocks: 3}, {Later: 3}, {Strays: 3}} {
		bad.Mode = core.PerBlock.String()
		require.ErrorContains(t, judge([][]engine.Result{ok, {bad}}), "PerBlock is gated")
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	require.Equal(t, 1, run(ctx, small, &out, &errs, false))
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "canceled")
}

func TestSeedOneBeginsAtTheBeginning(t *testing.T) {
	o, err := parse(nil)
	require.NoError(t, err)
	j, err := o.prepare()
	require.NoError(t, err)
	require.Equal(t, j.trace.Requests, j.seeded(0).Trace.Requests)
	at := map[int]bool{}
	for i := range 20 {
		first := j.seeded(i).Trace.Requests[0]
		for k := range j.trace.Requests {
			if r := j.trace.Requests[k]; r.Input == first.Input && r.Output == first.Output && r.HashIDs[0] == first.HashIDs[0] {
				at[k] = true
				break
			}
		}
	}
	require.Len(t, at, 20)
}

func TestStudent(t *testing.T) {
	require.InDelta(t, 12.706, student(1), 1e-9)
	require.InDelta(t, 2.776, student(4), 1e-9)
	require.InDelta(t, 2.080, student(21), 1e-3)
	require.InDelta(t, 1.984, student(100), 1e-3)
	require.Equal(t, estimate{2, 0}, estimateOf([]float64{2}))
}
