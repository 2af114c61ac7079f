package layout

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/testutil"
)

// One small configuration for each shape of file.
var configs = map[string]string{
	"llama": `{"architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2,
		"num_hidden_layers": 3, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"}`,
	"gpt-oss": `{"architectures": ["GptOssForCausalLM"], "head_dim": 64, "num_key_value_heads": 2, "num_hidden_layers": 3, "sliding_window": 128,
		"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}`,
	"gemma":    `{"architectures": ["Gemma3ForCausalLM"], "head_dim": 64, "num_key_value_heads": 2, "num_hidden_layers": 7, "sliding_window": 128}`,
	"deepseek": `{"architectures": ["DeepseekV32ForCausalLM"], "num_hidden_layers": 2, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128}`,
	"qwen": `{"architectures": ["Qwen3_5ForConditionalGeneration"], "torch_dtype": "float16", "text_config": {"full_attention_interval": 2, "head_dim": 64,
		"num_key_value_heads": 2, "num_hidden_layers": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 64,
		"linear_num_value_heads": 4, "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4, "mamba_ssm_dtype": "float32"}}`,
	"kimi": `{"architectures": ["KimiLinearForCausalLM"], "num_hidden_layers": 3, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
		"linear_attn_config": {"num_heads": 4, "head_dim": 64, "short_conv_kernel_size": 4, "full_attn_layers": [3], "kda_layers": [1, 2]}}`,
	"nemotron": `{"architectures": ["NemotronHForCausalLM"], "hybrid_override_pattern": "M-*E", "num_hidden_layers": 4, "attention_head_dim": 64,
		"num_key_value_heads": 2, "mamba_num_heads": 4, "mamba_head_dim": 64, "n_groups": 1, "ssm_state_size": 64, "conv_kernel": 4}`,
	"falcon": `{"architectures": ["FalconH1ForCausalLM"], "num_hidden_layers": 2, "head_dim": 64, "num_key_value_heads": 2, "mamba_n_heads": 4,
		"mamba_d_head": 64, "mamba_d_ssm": 256, "mamba_n_groups": 1, "mamba_d_state": 64, "mamba_d_conv": 4}`,
	"granite": `{"architectures": ["GraniteMoeHybridForCausalLM"], "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2,
		"mamba_expand": 2, "mamba_n_heads": 4, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 64, "mamba_d_conv": 4,
		"layer_types": ["mamba", "attention"]}`,
	"jamba": `{"architectures": ["JambaForCausalLM"], "num_hidden_layers": 4, "hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2,
		"mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "attn_layer_period": 4, "attn_layer_offset": 1}`,
	"zamba": `{"architectures": ["Zamba2ForCausalLM"], "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2,
		"mamba_expand": 2, "mamba_headdim": 64, "mamba_ngroups": 1, "mamba_d_state": 64, "mamba_d_conv": 4, "layers_block_type": ["mamba", "hybrid"]}`,
	"mamba2":       `{"architectures": ["Mamba2ForCausalLM"], "num_hidden_layers": 2, "num_heads": 4, "head_dim": 64, "n_groups": 1, "state_size": 64, "conv_kernel": 4}`,
	"falcon-mamba": `{"architectures": ["FalconMambaForCausalLM"], "num_hidden_layers": 2, "intermediate_size": 256, "state_size": 16, "conv_kernel": 4}`,
}

func read(t testing.TB, text string) *Model {
	t.Helper()
	m, err := ReadConfig("c.json", strings.NewReader(text))
	require.NoError(t, err)
	return m
}

func TestReadConfig(t *testing.T) {
	m := read(t, configs["llama"])
	layer := Layer{Kind: FullAttention, KVHeads: 2, KeyDim: 128, ValueDim: 128}
	require.Equal(t, &Model{Name: "c.json", Architecture: "LlamaForCausalLM", DType: BFloat16, MaxTokens: 4096,
		Layers: []Layer{layer, layer, layer}}, m)

	m = read(t, configs["qwen"])
	require.Equal(t, Float16, m.DType, "of the file around it")
	require.Equal(t, Float32, m.Layers[0].State.DType)
	require.Equal(t, DefaultDType, read(t, strings.Replace(configs["qwen"], `"mamba_ssm_dtype": "float32"`, `"mamba_ssm_dtype": null`, 1)).Layers[0].State.DType)

	kinds := func(name string) (k string) {
		for _, l := range read(t, configs[name]).Layers {
			k += string("FSLIR"[l.Kind])
		}
		return k
	}
	for name, want := range map[string]string{
		"llama": "FFF", "gpt-oss": "SFS", "gemma": "SSSSSFS", "deepseek": "LILI", "qwen": "RFRF", "kimi": "RRL", "nemotron": "RF",
		"falcon": "FRFR", "granite": "RF", "jamba": "RFRR", "zamba": "RRF", "mamba2": "RR", "falcon-mamba": "RR",
	} {
		require.Equal(t, want, kinds(name), name)
	}
	require.Len(t, configs, 13)
}

// What a file may leave out, and what stands for it.
func TestWhatConfigsLeaveOut(t *testing.T) {
	without := func(name, old, new string) *Model {
		require.Contains(t, configs[name], old)
		return read(t, strings.Replace(configs[name], old, new, 1))
	}
	require.Equal(t, 8, without("llama", `"num_key_value_heads": 2,`, "").Layers[0].KVHeads)
	require.Zero(t, without("llama", `"max_position_embeddings": 4096,`, "").MaxTokens)
	nemotron := without("nemotron", `"attention_head_dim": 64`, `"hidden_size": 1024, "num_attention_heads": 8`)
	require.Equal(t, 128, nemotron.Layers[1].KeyDim)

	m := without("llama", `, "torch_dtype": "bfloat16"`, "")
	require.Equal(t, DefaultDType, m.DType)
	p, err := NewPlan(m, Options{})
	require.NoError(t, err)
	require.Contains(t, p.String(), "the model names no dtype: bfloat16")
	p, err = NewPlan(read(t, configs["llama"]), Options{})
	require.NoError(t, err)
	require.NotContains(t, p.String(), "names no dtype")
}

// The line is that of the key that counts.
func TestConfigErrorLines(t *testing.T) {
	for text, want := range map[string]string{
		"{\"architectures\": [\"LlamaForCausalLM\"],\n\n\"num_key_value_heads\":\n-1}": "c.json:3: num_key_value_heads: -1: ",
		"{\"x\": {\"architectures\": 1},\n\"architectures\": 5}":                       "c.json:2: architectures: 5: ",
		"{\"architectures\": [],\n\"architectures\": 5}":                               "c.json:2: architectures: 5: ",
		"{\"architectures\": [\"Qwen3_5ForConditionalGeneration\"], \"text_config\":\n {\n\"num_key_value_heads\": 2, \"head_dim\":\t8,\n \"linear_num_key_heads\": 0}}": "c.json:4: text_config.linear_num_key_heads: 0: ",
	} {
		_, err := ReadConfig("c.json", strings.NewReader(text))
		require.ErrorContains(t, err, want)
	}
}

func TestConfigErrorsNameTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		config, old, new string
		want             string
	}{
		"missing":               {"llama", `"num_hidden_layers": 3`, `"x": 3`, "c.json: num_hidden_layers: missing"},
		"no KV heads":           {"qwen", `"num_key_value_heads": 2`, `"x": 2`, "c.json: text_config.num_key_value_heads: missing"},
		"no KV heads of Gemma":  {"gemma", `"num_key_value_heads": 2, `, "", "c.json: num_key_value_heads: missing"},
		"no KV heads of Jamba":  {"jamba", `"num_key_value_heads": 2`, `"x": 2`, "c.json: num_key_value_heads: missing"},
		"no head_dim, Qwen":     {"qwen", `"head_dim": 64`, `"hidden_size": 128, "num_attention_heads": 2`, "c.json: text_config.head_dim: missing"},
		"no head_dim, GPT-OSS":  {"gpt-oss", `"head_dim": 64`, `"hidden_size": 128, "num_attention_heads": 2`, "c.json: head_dim: missing"},
		"no head_dim, Gemma":    {"gemma", `"head_dim": 64`, `"hidden_size": 128, "num_attention_heads": 2`, "c.json: head_dim: missing"},
		"no head_dim, Falcon":   {"falcon", `"head_dim": 64`, `"hidden_size": 128, "num_attention_heads": 2`, "c.json: head_dim: missing"},
		"no head_dim, Nemotron": {"nemotron", `"attention_head_dim": 64`, `"hidden_size": 128, "num_attention_heads": 2`, "c.json: head_dim: missing, and hidden_size / num_attention_heads = 64 is not the usual 128"},
		"null":                  {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": null`, "num_hidden_layers: null: missing"},
		"negative":              {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": -3`, "num_hidden_layers: -3: want an integer of 1 to"},
		"too many layers":       {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": 2049`, "num_hidden_layers: 2049: want"},
		"fraction":              {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": 3.5`, "num_hidden_layers: 3.5: want"},
		"exponent":              {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": 1e999`, "num_hidden_layers: 1e999: want"},
		"text":                  {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": "3"`, `num_hidden_layers: "3": want`},
		"too large":             {"llama", `"hidden_size": 1024`, `"hidden_size": 99999999999`, "hidden_size: 99999999999: want"},
		"no head size":          {"llama", `"num_attention_heads": 8`, `"num_attention_heads": 7`, "hidden_size: 1024: 1024 can't be divided by 7"},
		"no positions":          {"llama", `4096`, `0`, "max_position_embeddings: 0: want"},
		"dtype":                 {"llama", `"bfloat16"`, `"bf17"`, `torch_dtype: "bf17": want a dtype`},
		"dtype of no elements":  {"llama", `"bfloat16"`, `"fp8_ds_mla"`, `torch_dtype: "fp8_ds_mla": want a dtype`},
		"dtype of another type": {"llama", `"bfloat16"`, `5`, `torch_dtype: 5: want a string`},
		"nested":                {"qwen", `"linear_num_key_heads": 2`, `"linear_num_key_heads": 0`, "c.json:2: text_config.linear_num_key_heads: 0: want"},
		"nothing nested":        {"qwen", `"text_config"`, `"vision_config"`, "text_config: missing"},
		"nested list":           {"qwen", `"text_config": {`, `"text_config": [{}], "x": {`, "text_config: [{}]: want an object"},
		"layer kind":            {"gpt-oss", `"full_attention"`, `"some_attention"`, `layer_types: ["sliding_attention", "some_attention", "sliding_attention"]: layer 1 is "some_attention"`},
		"layer count":           {"gpt-oss", `, "full_attention"`, ``, "2 entries for 3 layers"},
		"window":                {"gemma", `"sliding_window": 128`, `"sliding_window": null`, "sliding_window: null: missing"},
		"index":                 {"deepseek", `"index_head_dim": 128`, `"index_head_dim": 100`, "KeyDim is 100, want a multiple of 128"},
		"layer twice":           {"kimi", `"kda_layers": [1, 2]`, `"kda_layers": [1, 3]`, "linear_attn_config.kda_layers: [1, 3]: layer 3 is not of 1 to 3, or named twice"},
		"layer left out":        {"kimi", `"kda_layers": [1, 2]`, `"kda_layers": [1]`, "kda_layers: [1]: layer 2 is neither"},
		"layer 0":               {"kimi", `"kda_layers": [1, 2]`, `"kda_layers": [0, 2]`, "layer 0 is not of"},
		"letter":                {"nemotron", `"M-*E"`, `"M-*X"`, `hybrid_override_pattern: "M-*X": letter 3 is 'X', want`},
		"letters":               {"nemotron", `"M-*E"`, `"M-*"`, "3 letters for 4 layers"},
		"no cache":              {"nemotron", `"M-*E"`, `"--EE"`, "no layer has a cache"},
		"inner size":            {"falcon", `"mamba_d_ssm": 256`, `"mamba_d_ssm": 255`, "mamba_d_ssm: 255: want mamba_n_heads * mamba_d_head = 256"},
		"expansion":             {"granite", `"mamba_expand": 2`, `"mamba_expand": 3`, "mamba_n_heads: 4: with mamba_d_head 64, want"},
		"offset":                {"jamba", `"attn_layer_offset": 1`, `"attn_layer_offset": 4`, "attn_layer_offset: 4: want an integer of 0 to 3"},
		"product":               {"jamba", `"hidden_size": 128`, `"hidden_size": 16777216`, "mamba_expand: 2: times hidden_size is 33554432"},
		"spelling":              {"zamba", `"mamba_d_state"`, `"d_state"`, "mamba_d_state: missing"},
		"heads":                 {"zamba", `"mamba_headdim": 64`, `"mamba_headdim": 60`, "mamba_headdim: 60: 256 can't be divided by 60"},
		"conv":                  {"mamba2", `"conv_kernel": 4`, `"conv_kernel": 1`, "ConvKernel is 1, want 2 to"},
		"no architecture":       {"llama", `"architectures": ["LlamaForCausalLM"]`, `"model_type": "llama"`, "architectures: missing"},
		"architecture":          {"llama", `["LlamaForCausalLM"]`, `"LlamaForCausalLM"`, `architectures: "LlamaForCausalLM": want a list of strings`},
		"two of them":           {"llama", `["LlamaForCausalLM"]`, `["A", "B"]`, `architectures: ["A", "B"]: 2 names, want one`},
		"line":                  {"gpt-oss", `"full_attention"`, `full`, "c.json:2: invalid character"},
		"cut off":               {"llama", `"bfloat16"}`, `"bfloat16"`, "c.json:2: unexpected end"},
		"more behind":           {"llama", `"bfloat16"}`, `"bfloat16"}}`, "c.json:2: invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, configs[c.config], c.old)
			m, err := ReadConfig("c.json", strings.NewReader(strings.Replace(configs[c.config], c.old, c.new, 1)))
			require.Nil(t, m)
			require.ErrorIs(t, err, ErrConfig)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			var e *ConfigError
			require.ErrorAs(t, err, &e)
			require.Equal(t, "c.json", e.File)
		})
	}
}

func TestUnknownArchitecture(t *testing.T) {
	_, err := ReadConfig("c.json", strings.NewReader(`{"architectures": ["RwkvForCausalLM"]}`))
	require.ErrorIs(t, err, ErrArchitecture)
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, `c.json:1: architectures: ["RwkvForCausalLM"]: unknown architecture "RwkvForCausalLM"; known are `)
	require.Contains(t, Architectures(), "LlamaForCausalLM")
}

func TestConfigAsSuch(t *testing.T) {
	for text, want := range map[string]string{
		"": "c.json:1: unexpected end", "null": "null, want an object", "[]": "c.json: array, want an object", "5": "number, want an object",
		strings.Repeat(" ", maxConfig+1): "more than 4194304 bytes", strings.Repeat("[", 20000): "c.json:1: ",
	} {
		_, err := ReadConfig("c.json", strings.NewReader(text))
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, want)
	}
	_, err := ReadConfig("c.json", iotest.ErrReader(errors.New("disk on fire")))
	require.ErrorContains(t, err, "c.json: disk on fire")
	_, err = LoadConfig(filepath.Join(t.TempDir(), "config.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzReadConfig: a model or an error, and a model can be planned or refused,
// and a plan makes tables that make sense.
func FuzzReadConfig(f *testing.F) {
	for _, c := range configs {
		f.Add([]byte(c), uint8(1), uint8(0))
	}
	files, err := filepath.Glob(testutil.Root(f) + "/../shared/models/*/config.json")
	require.NoError(f, err)
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data, uint8(2), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, tp, order uint8) {
		m, err := ReadConfig("fuzz", strings.NewReader(string(data)))
		if err != nil {
			require.Nil(t, m)
			require.ErrorIs(t, err, ErrConfig)
			return
		}
		require.NoError(t, m.Validate())
		p, err := NewPlan(m, Options{TP: int(tp), Order: Order(order % 6), StateMode: StateMode(order / 6 % 2), SpeculativeTokens: int(order) / 12})
		if err != nil {
			require.Nil(t, p)
			require.True(t, errors.Is(err, ErrModel) || errors.Is(err, ErrOptions), err)
			return
		}
		checkPlan(t, p)
	})
}

// checkPlan looks at a plan whose sizes may be anything.
func checkPlan(t testing.TB, p *Plan) {
	t.Helper()
	seen := map[int]bool{}
	for g := range p.Groups {
		for i := range p.Groups[g].Pages {
			pg := &p.Groups[g].Pages[i]
			require.False(t, seen[pg.Layer], "a layer in two groups")
			seen[pg.Layer] = true
			require.LessOrEqual(t, pg.Used, pg.Bytes)
			var at uint64
			for _, r := range pg.Regions {
				require.Equal(t, at, r.Off)
				at += r.Len
			}
			require.True(t, len(pg.Regions) == 0 || at == pg.Used)
		}
		require.GreaterOrEqual(t, p.BlockBytes, p.Groups[g].Bytes())
	}
	require.Len(t, seen, len(p.Model.Layers))
	if k := p.MaxScale(4); k > 1 {
		_, err := p.Scaled(k)
		require.NoError(t, err)
	}
	a, err := p.Place(1, 3)
	require.NoError(t, err)
	merged := 0
	for g := range p.Groups {
		merged += len(p.Groups[g].Pages) * p.Groups[g].Ratio * max(p.Groups[g].Pages[0].Heads, 1)
	}
	if merged > 1<<12 {
		return // too many to look at each
	}
	for _, table := range []Table{a.Tables().Transfer, a.SegmentsMerged(), a.Segments(0)} {
		require.NoError(t, table.Validate())
	}
}
