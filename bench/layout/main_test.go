package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/memory/layout"
)

func show(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(args, &o, &e)
	return status, o.String(), e.String()
}

func TestTable(t *testing.T) {
	status, out, errs := show(t, "-model", "qwen3.5-35b-a3b", "-tokens", "13721")
	require.Zero(t, status, errs)
	for _, want := range []string{
		"blocks of 1056 tokens and 21626880 bytes",
		"zeroing is needed: 30 recurrent layers share blocks with 10 attention layers",
		"recurrent  bfloat16 and float32     10      -  262144       -     2162688       0.76",
		"42949672960 bytes hold 1985 blocks, the null block among them, and leave 20316160 bytes",
		"a request of 13721 tokens holds 16 blocks: 124 such requests fit",
		"for its blocks 281149440 bytes are zeroed, and 64389120 of states reset",
	} {
		require.Contains(t, out, want)
	}
}

// Every model of the library is shown, as a table, in JSON and as a picture.
func TestAllModels(t *testing.T) {
	_, list, _ := show(t, "-list")
	require.Equal(t, strings.Join(layout.Names(), "\n")+"\n", list)
	for _, name := range layout.Names() {
		t.Run(name, func(t *testing.T) {
			svg := filepath.Join(t.TempDir(), "p.svg")
			status, out, errs := show(t, "-model", name, "-json", "-svg", svg)
			require.Zero(t, status, errs)
			var r report
			require.NoError(t, json.Unmarshal([]byte(out), &r))
			require.Equal(t, name, r.Model)
			used, boxes := uint64(0), len(r.Groups)
			for _, g := range r.Groups {
				var bytes, fill uint64
				for _, p := range g.Pages {
					bytes += uint64(p.Pages) * p.Bytes
					fill += uint64(p.Pages) * p.Used
					boxes += 2 * p.Pages
				}
				require.Equal(t, g.Bytes, bytes)
				require.Equal(t, g.Padding, bytes-fill)
				require.Equal(t, r.BlockBytes, g.Bytes+g.Empty)
				used = max(used, g.Bytes)
			}
			require.Equal(t, r.BlockBytes, used, "the widest group")
			require.Equal(t, r.Memory, uint64(r.Blocks)*r.BlockBytes+r.Unused)
			picture, err := os.ReadFile(svg)
			require.NoError(t, err)
			require.Equal(t, boxes, checkPicture(t, picture))
			status, _, errs = show(t, "-model", name)
			require.Zero(t, status, errs)
		})
	}
}

// checkPicture parses a picture and returns how many boxes it has, none of which
// leaves it.
func checkPicture(t *testing.T, data []byte) (boxes int) {
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return boxes
		}
		require.NoError(t, err)
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local != "rect" {
			continue
		}
		boxes++
		v := map[string]float64{}
		for _, a := range e.Attr {
			v[a.Name.Local], _ = strconv.ParseFloat(a.Value, 64)
		}
		require.GreaterOrEqual(t, v["width"], 0.0)
		require.LessOrEqual(t, v["x"]+v["width"], labels+barWidth+0.02)
	}
}

func TestDiff(t *testing.T) {
	status, out, errs := show(t, "-model", "llama-3.1-8b", "-diff", "tp=2,kv-dtype=fp8")
	require.Zero(t, status, errs)
	require.Contains(t, out, "first:  llama-3.1-8b, TP 1")
	require.Regexp(t, `bytes of a block +2097152 +524288`, out)
	require.Regexp(t, `group 0: page 0: heads +8 +4`, out)
	require.Regexp(t, `group 0: page 0: dtype +bfloat16 +fp8`, out)
	require.NotContains(t, out, "tokens in a block")
	require.Contains(t, out, "a request can't move: ")
	for args, want := range map[string]string{
		"qwen3.5-35b-a3b -tokens 1500 -tp 2 -rank 1/tp=1,rank=0": "rank 1 of the first reads a request of the second: ",
		"qwen3.5-35b-a3b -order LBHNC/tp=4":                      "from ranks [0 1 2 3]; ranks [] are told only",
		"deepseek-v3/tp=4":                                       "from ranks [0]; ranks [1 2 3] are told only",
		"gpt-oss-20b -tokens 1600/block-tokens=32":               "a request of the second: ",
		"llama-3.1-8b -tokens 64/pp=2":                           "8388608 bytes in 32 moves, from ranks [0.0 1.0]",
		"llama-3.1-8b -tokens 64/rank=0":                         "8388608 bytes in 32 moves, from ranks [0]",
		"deepseek-v4-flash -tokens 1000/memory=0":                "",
	} {
		flags, other, _ := strings.Cut(args, "/")
		status, out, errs := show(t, append(append([]string{"-model"}, strings.Fields(flags)...), "-diff", other)...)
		if want == "" {
			require.Equal(t, 2, status)
			continue
		}
		require.Zero(t, status, errs)
		require.Contains(t, out, want, args)
	}
	_, out, _ = show(t, "-model", "llama-3.1-8b", "-diff", "rank=0")
	require.Contains(t, out, "sizes are equal")
	status, out, errs = show(t, "-model", "llama-3.1-8b", "-json", "-diff", "pp=4,stage=3")
	require.Zero(t, status, errs)
	var both []report
	require.NoError(t, json.Unmarshal([]byte(out), &both))
	require.Equal(t, []int{32, 8}, []int{both[0].Groups[0].Layers, both[1].Groups[0].Layers})
}

func TestStagesAndDrafts(t *testing.T) {
	status, out, errs := show(t, "-model", "qwen3.5-35b-a3b", "-pp", "40", "-stage", "3")
	require.Zero(t, status, errs)
	require.Regexp(t, `0 +recurrent +- +0 `, out)
	status, out, errs = show(t, "-model", "llama-3.1-70b", "-draft", "llama-3.1-8b", "-kernel", "16,32,64", "-block-tokens", "32")
	require.Zero(t, status, errs)
	require.Contains(t, out, "llama-3.1-70b + llama-3.1-8b")
	require.Regexp(t, ` 112 +8 +32 +32 +131072`, out)
}

func TestBadInput(t *testing.T) {
	unknown := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(unknown, []byte(`{"architectures": ["New"], "num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 64}`), 0o600))
	for want, args := range map[string][]string{
		"-model is missing":                  {},
		"unexpected argument":                {"-model", "llama-3.1-8b", "x"},
		"flag provided but not defined":      {"-wrong"},
		`unknown model "x"`:                  {"-model", "x"},
		`unknown architecture "New"`:         {"-model", unknown},
		`as "x": want one of [gqa mla]`:      {"-model", unknown, "-as", "x"},
		"-tokens -1":                         {"-model", "llama-3.1-8b", "-tokens", "-1"},
		`-order: unknown order "x"`:          {"-model", "llama-3.1-8b", "-order", "x"},
		`-kv-dtype: unknown dtype "x"`:       {"-model", "llama-3.1-8b", "-kv-dtype", "x"},
		`-state-mode: unknown state mode`:    {"-model", "llama-3.1-8b", "-state-mode", "x"},
		`-kernel "x": want numbers`:          {"-model", "llama-3.1-8b", "-kernel", "x"},
		`-kernel "0+": want a number and +`:  {"-model", "llama-3.1-8b", "-kernel", "0+"},
		"8 kv heads can't be spread":         {"-model", "llama-3.1-8b", "-tp", "3"},
		"-memory 5: model":                   {"-model", "llama-3.1-8b", "-memory", "5"},
		`-diff "x": want name=value`:         {"-model", "llama-3.1-8b", "-diff", "x"},
		`"model" is no engine flag`:          {"-model", "llama-3.1-8b", "-diff", "model=x"},
		`-diff "tp=x"`:                       {"-model", "llama-3.1-8b", "-diff", "tp=x"},
		"a block has to be one run of bytes": {"-model", "deepseek-v4-flash", "-order", "LBNHC"},
	} {
		status, out, errs := show(t, args...)
		require.Equal(t, 2, status, want)
		require.Empty(t, out)
		require.Contains(t, errs, want)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	status, out, _ := show(t, "-model", unknown, "-as", "gqa")
	require.Zero(t, status)
	require.Contains(t, out, "2 full attention")
	status, out, _ = show(t, "-h")
	require.Zero(t, status)
	require.Equal(t, usage, out)
	status, _, errs := show(t, "-model", "llama-3.1-8b", "-svg", filepath.Join(unknown, "no", "folder"))
	require.Equal(t, 1, status)
	require.Contains(t, errs, "folder")
}
