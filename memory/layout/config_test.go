package layout

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
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
	"qwen2": `{"architectures": ["Qwen2ForCausalLM"], "hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 2,
		"sliding_window": 64, "use_sliding_window": false, "max_window_layers": 2}`,
	"mistral": `{"architectures": ["MistralForCausalLM"], "head_dim": 64, "num_key_value_heads": 2, "num_hidden_layers": 2, "sliding_window": 64}`,
	"gemma4": `{"architectures": ["Gemma4ForConditionalGeneration"], "text_config": {"head_dim": 64, "global_head_dim": 128, "num_key_value_heads": 4,
		"num_global_key_value_heads": 2, "attention_k_eq_v": true, "num_hidden_layers": 3, "sliding_window": 64, "num_kv_shared_layers": 0,
		"layer_types": ["sliding_attention", "full_attention", "full_attention"]}}`,
	"llama4": `{"architectures": ["Llama4ForConditionalGeneration"], "text_config": {"head_dim": 64, "num_key_value_heads": 2, "num_hidden_layers": 5,
		"attention_chunk_size": 64, "no_rope_layers": []}}`,
	"mimo": `{"architectures": ["MiMoV2FlashForCausalLM"], "head_dim": 192, "v_head_dim": 128, "num_key_value_heads": 2, "num_hidden_layers": 2,
		"swa_num_key_value_heads": 4, "swa_head_dim": 192, "swa_v_head_dim": 128, "sliding_window_size": 128, "hybrid_layer_pattern": [0, 1]}`,
	"step": `{"architectures": ["Step3p5ForCausalLM"], "head_dim": 64, "num_attention_groups": 2, "num_hidden_layers": 2, "sliding_window": 64,
		"num_nextn_predict_layers": 1, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}`,
	"glm": `{"architectures": ["GlmMoeDsaForCausalLM"], "num_hidden_layers": 6, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128,
		"index_topk": 2048, "index_topk_freq": 2, "index_topk_pattern": null}`,
	"deepseek4": `{"architectures": ["DeepseekV4ForCausalLM"], "num_hidden_layers": 3, "head_dim": 512, "qk_rope_head_dim": 64, "index_head_dim": 128,
		"sliding_window": 128, "compress_ratios": [0, 4, 128, 0]}`,
	"minimax3": `{"architectures": ["MiniMaxM3SparseForCausalLM"], "head_dim": 128, "num_key_value_heads": 4, "num_hidden_layers": 2,
		"sparse_attention_config": {"sparse_attention_freq": [0, 1], "sparse_index_dim": 128}}`,
	"lfm2": `{"architectures": ["Lfm2ForCausalLM"], "hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 3,
		"conv_L_cache": 3, "conv_dim": 128, "full_attn_idxs": [1]}`,
	"kimi25": `{"architectures": ["KimiK25ForConditionalGeneration"], "text_config": {"num_hidden_layers": 2, "kv_lora_rank": 512, "qk_rope_head_dim": 64}}`,
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
	second, third := layer, layer
	second.Index, third.Index = 1, 2
	require.Equal(t, &Model{Name: "c.json", Architecture: "LlamaForCausalLM", DType: BFloat16, MaxTokens: 4096, Depth: 3,
		Layers: []Layer{layer, second, third}}, m)

	m = read(t, configs["qwen"])
	require.Equal(t, Float16, m.DType, "of the file around it")
	require.Equal(t, Float32, m.Layers[0].State.DType)
	require.Equal(t, DefaultDType, read(t, strings.Replace(configs["qwen"], `"mamba_ssm_dtype": "float32"`, `"mamba_ssm_dtype": null`, 1)).Layers[0].State.DType)

	for name, want := range map[string]string{
		"llama": "FFF", "gpt-oss": "SFS", "gemma": "SSSSSFS", "deepseek": "ILIL", "qwen": "RFRF", "kimi": "RRL", "nemotron": "RF",
		"falcon": "FRFR", "granite": "RF", "jamba": "RFRR", "zamba": "RRF", "mamba2": "RR", "falcon-mamba": "RR",
		"qwen2": "FF", "mistral": "SS", "gemma4": "SFF", "llama4": "CCCFC", "mimo": "FS", "step": "FS", "glm": "ILILLILLIL",
		"deepseek4": "WWILicWLc", "minimax3": "FFI", "lfm2": "RFR", "kimi25": "LL",
	} {
		require.Equal(t, want, kinds(read(t, configs[name])), name)
	}
	require.Len(t, configs, 24)
}

// kinds has a letter for each cache.
func kinds(m *Model) (k string) {
	for _, l := range m.Layers {
		k += string("FSCLWIciR"[l.Kind])
	}
	return k
}

// The spellings of published files, and keys of which one decides.
func TestSpellings(t *testing.T) {
	for name, c := range map[string]struct{ config, old, new, want string }{
		"chunks by list":         {"llama4", `"no_rope_layers": []`, `"no_rope_layers": [1, 0, 1, 0, 1]`, "CFCFC"},
		"chunks by interval":     {"llama4", `"no_rope_layers": []`, `"no_rope_layer_interval": 2`, "CFCFC"},
		"no chunks":              {"llama4", `"attention_chunk_size": 64`, `"attention_chunk_size": null`, "FFFFF"},
		"last layer is full":     {"gemma4", `"full_attention", "full_attention"]`, `"full_attention", "sliding_attention"]`, "SFF"},
		"shared caches":          {"gemma4", `"num_kv_shared_layers": 0`, `"num_kv_shared_layers": 1`, "SF"},
		"pattern by default":     {"gemma4", `"layer_types": [`, `"x": [`, "SSF"},
		"even layers slide":      {"gpt-oss", `["sliding_attention", "full_attention", "sliding_attention"]`, `["full_attention"]`, "SFS"},
		"layers_block_type":      {"nemotron", `"hybrid_override_pattern": "M-*E", "num_hidden_layers": 4`, `"layers_block_type": ["mamba", "moe", "attention"]`, "RF"},
		"names of transformers":  {"nemotron", `"hybrid_override_pattern": "M-*E", "num_hidden_layers": 4`, `"layer_types": ["linear_attention", "mlp", "full_attention"]`, "RF"},
		"length counts":          {"nemotron", `"num_hidden_layers": 4`, `"num_hidden_layers": 400`, "RF"},
		"granite by other names": {"granite", `"layer_types": ["mamba", "attention"]`, `"layers_block_type": ["linear_attention", "full_attention"]`, "RF"},
		"granite, auto":          {"granite", `"mamba_d_head": 64`, `"mamba_d_head": "auto"`, "RF"},
		"granite without Mamba": {"granite", `"mamba_n_heads": 4, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 64, "mamba_d_conv": 4,
		"layer_types": ["mamba", "attention"]`, `"layer_types": ["attention", "attention"]`, "FF"},
		"falcon, auto": {"falcon", `"mamba_d_head": 64`, `"mamba_d_head": "auto"`, "FRFR"},
		"kimi, both":   {"kimi", `"kv_lora_rank"`, `"layer_types": ["linear_attention", "linear_attention", "full_attention"], "kv_lora_rank"`, "RRL"},
		"kimi of transformers 5": {"kimi", `"linear_attn_config": {"num_heads": 4, "head_dim": 64, "short_conv_kernel_size": 4, "full_attn_layers": [3], "kda_layers": [1, 2]}`,
			`"linear_num_heads": 4, "linear_head_dim": 64, "linear_conv_kernel_dim": 4, "layer_types": ["full_attention", "linear_attention", "linear_attention"]`, "LRR"},
		"lfm2 by names":      {"lfm2", `"full_attn_idxs": [1]`, `"layer_types": ["conv", "conv", "full_attention"]`, "RRF"},
		"lfm2 moe":           {"lfm2", `Lfm2ForCausalLM"], `, `Lfm2MoeForCausalLM"], "x": 1, `, "RFR"},
		"index by pattern":   {"glm", `"index_topk_pattern": null`, `"index_topk_pattern": "FSS"`, "ILLLILILIL"},
		"index by letters":   {"glm", `"index_topk_pattern": null`, `"index_topk_pattern": ["F", "S", "S"]`, "ILLLILILIL"},
		"index by frequency": {"glm", `"index_topk_freq": 2`, `"index_topk_freq": 4, "index_skip_topk_offset": 3`, "ILILILLLL"},
		"index in each":      {"glm", `"index_topk_freq": 2,`, ``, "ILILILILILIL"},
		"sparse DeepSeek-V3": {"glm", `GlmMoeDsa`, `DeepseekV3`, "ILILLILLIL"},
		"ratios by kind":     {"deepseek4", `"compress_ratios": [0, 4, 128, 0]`, `"compress_rates": {"a": 4, "b": 128}, "layer_types": ["b", "a", "c"]`, "WLcWILicW"},
		"nothing sparse":     {"minimax3", `[0, 1]`, `[0, 0]`, "FF"},
		"window turned on":   {"qwen2", `"use_sliding_window": false, "max_window_layers": 2`, `"use_sliding_window": true, "max_window_layers": 0`, "SS"},
		"window in no layer": {"qwen2", `"use_sliding_window": false`, `"use_sliding_window": true`, "FF"},
		"full by names":      {"qwen2", `"max_window_layers": 2`, `"layer_types": ["full_attention", "full_attention"]`, "FF"},
		"windows by names":   {"mistral", `"num_hidden_layers": 2`, `"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]`, "FS"},
		"no window":          {"mistral", `"sliding_window": 64`, `"sliding_window": null`, "FF"},
		"numbers of Python":  {"nemotron", `"num_hidden_layers": 4`, `"time_step_limit": [0.0, Infinity], "a": -Infinity, "b": NaN, "c": "NaN \" Infinity"`, "RF"},
		"either, at top":     {"qwen2", `Qwen2ForCausalLM`, `Qwen2_5_VLForConditionalGeneration`, "FF"},
		"nested as published": {"gemma", `["Gemma3ForCausalLM"], "head_dim": 64, "num_key_value_heads": 2, "num_hidden_layers": 7, "sliding_window": 128`,
			`["Gemma3ForConditionalGeneration"], "text_config": {"head_dim": 64, "num_key_value_heads": 2, "num_hidden_layers": 3, "sliding_window": 128, "sliding_window_pattern": 2}`, "SFS"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, configs[c.config], c.old)
			m := read(t, strings.Replace(configs[c.config], c.old, c.new, 1))
			require.Equal(t, c.want, kinds(m))
			for i := range m.Layers {
				require.Less(t, m.Layers[i].Index, m.Depth)
			}
		})
	}
}

// An unknown architecture is read as one of a family on request, if its keys say
// all that is needed and nothing else.
func TestUnknownAsFamily(t *testing.T) {
	as := func(text, family string) (*Model, error) {
		return ReadConfigWithOptions("c.json", strings.NewReader(text), ConfigOptions{As: family})
	}
	gqa := strings.Replace(configs["llama"], "Llama", "NewThing", 1)
	m, err := as(gqa, "gqa")
	require.NoError(t, err)
	require.Equal(t, read(t, configs["llama"]).Layers, m.Layers)
	require.Equal(t, "NewThingForCausalLM", m.Architecture)
	mla := strings.Replace(configs["kimi25"], "KimiK25", "NewThing", 1)
	m, err = as(mla, "mla")
	require.NoError(t, err)
	require.Equal(t, read(t, configs["kimi25"]).Layers, m.Layers, "under text_config")
	m, err = as(configs["mistral"], "mla")
	require.NoError(t, err)
	require.Equal(t, "SS", kinds(m), "a known architecture is what it is")

	_, err = as(gqa, "nonsense")
	require.ErrorIs(t, err, ErrOptions)
	for name, c := range map[string]struct{ text, old, new, family, want string }{
		"no KV heads":  {gqa, `"num_key_value_heads": 2,`, ``, "gqa", "num_key_value_heads: missing"},
		"latent":       {gqa, `"hidden_size"`, `"kv_lora_rank": 512, "hidden_size"`, "gqa", "kv_lora_rank: 512: is not known of this architecture"},
		"narrow value": {gqa, `"hidden_size"`, `"v_head_dim": 64, "hidden_size"`, "gqa", "v_head_dim: 64: is not known of plain attention"},
		"other layers": {gqa, `"hidden_size"`, `"layer_types": ["full_attention", "magic", "full_attention"], "hidden_size"`, "gqa", `layer 1 is "magic"`},
		"index":        {mla, `"kv_lora_rank"`, `"index_topk": 2048, "kv_lora_rank"`, "mla", "text_config.index_topk: 2048: is not known of plain latent attention"},
		"not asked":    {gqa, `"x"`, ``, "", `unknown architecture "NewThingForCausalLM"`},
	} {
		_, err := as(strings.Replace(c.text, c.old, c.new, 1), c.family)
		require.ErrorIs(t, err, ErrConfig, name)
		require.ErrorContains(t, err, c.want, name)
	}
	_, err = as(gqa, "")
	require.ErrorIs(t, err, ErrArchitecture)
	require.ErrorContains(t, err, "can be read as one of [gqa mla] on request")
}

// What a checkpoint declares for its cache.
func TestDeclaredKV(t *testing.T) {
	for name, c := range map[string]struct {
		entry, quant string // of config.json and in hf_quant_config.json
		want         DType
	}{
		"nothing":             {``, ``, DefaultDType},
		"weights alone":       {`{"quant_method": "fp8"}`, ``, DefaultDType},
		"object":              {`{"quant_method": "modelopt", "kv_cache_scheme": {"dynamic": false, "num_bits": 8, "type": "float"}}`, ``, FP8},
		"dynamic":             {`{"quant_method": "modelopt", "kv_cache_scheme": {"dynamic": true, "num_bits": 8, "type": "float"}}`, ``, DefaultDType},
		"four bits":           {`{"quant_method": "modelopt_fp4", "kv_cache_scheme": {"num_bits": 4, "type": "float"}}`, ``, NVFP4},
		"string":              {`{"quant_method": "ModelOpt", "kv_cache_quant_algo": "Fp8"}`, ``, FP8},
		"string, nvfp4":       {`{"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "NVFP4"}}`, ``, NVFP4},
		"string, other":       {`{"quant_method": "modelopt", "kv_cache_quant_algo": "INT8"}`, ``, DefaultDType},
		"null":                {`{"quant_method": "modelopt", "kv_cache_quant_algo": null}`, ``, DefaultDType},
		"empty scheme":        {`{"quant_method": "modelopt", "kv_cache_scheme": {}, "kv_cache_quant_algo": "FP8"}`, ``, FP8},
		"scheme first":        {`{"quant_method": "modelopt", "kv_cache_quant_algo": "FP8", "kv_cache_scheme": {"num_bits": 4, "type": "float"}}`, ``, NVFP4},
		"the part first":      {`{"quant_method": "modelopt", "kv_cache_quant_algo": "FP8", "quantization": {"kv_cache_quant_algo": "NVFP4"}}`, ``, NVFP4},
		"no method":           {`{"kv_cache_quant_algo": "FP8"}`, ``, DefaultDType},
		"beside":              {``, `{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}`, FP8},
		"beside, no producer": {``, `{"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}`, DefaultDType},
		"beside, older":       {``, `{"quantization": {"modelopt_quant_config": {}, "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}`, FP8},
		"the entry counts":    {`{"quant_method": "modelopt"}`, `{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}`, DefaultDType},
		"compressed":          {`{"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float", "symmetric": true}}`, ``, FP8},
		"compressed, head":    {`{"quant_method": "compressed_tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float", "symmetric": true, "strategy": "attn_head"}}`, ``, FP8},
		"compressed, none":    {`{"quant_method": "compressed-tensors", "kv_cache_scheme": null}`, ``, DefaultDType},
	} {
		t.Run(name, func(t *testing.T) {
			text := configs["llama"]
			if c.entry != "" {
				text = strings.Replace(text, `"hidden_size"`, `"quantization_config": `+c.entry+`, "hidden_size"`, 1)
			}
			var o ConfigOptions
			if c.quant != "" {
				o.Quantization = strings.NewReader(c.quant)
			}
			m, err := ReadConfigWithOptions("c.json", strings.NewReader(text), o)
			require.NoError(t, err)
			require.Equal(t, c.want, m.KVDType)
			if c.want == FP8 {
				p, err := NewPlan(m, Options{})
				require.NoError(t, err)
				require.Equal(t, FP8, p.Groups[0].Pages[0].DType)
				p, err = NewPlan(m, Options{KVDType: BFloat16})
				require.NoError(t, err)
				require.Equal(t, BFloat16, p.Groups[0].Pages[0].DType, "what is asked for wins")
			}
		})
	}
	m := read(t, strings.Replace(configs["kimi25"], `{"num_hidden`, `{"quantization_config": {"quant_method": "compressed-tensors",
		"kv_cache_scheme": {"num_bits": 8, "type": "float", "symmetric": true}}, "num_hidden`, 1))
	require.Equal(t, FP8, m.KVDType, "of compressed-tensors the language model's entry counts, too")

	_, err := ReadConfigWithOptions("dir/c.json", strings.NewReader(configs["llama"]), ConfigOptions{Quantization: strings.NewReader(
		`{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "INT3"}}`)})
	require.ErrorContains(t, err, `dir/hf_quant_config.json:1: quantization.quant_algo: "INT3": is not known`)
	_, err = ReadConfigWithOptions("c.json", strings.NewReader(configs["llama"]), ConfigOptions{Quantization: strings.NewReader(`[]`)})
	require.ErrorContains(t, err, "hf_quant_config.json: array, want an object")
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
	gemma := read(t, `{"architectures": ["Gemma3ForConditionalGeneration"], "text_config": {"num_hidden_layers": 6, "sliding_window": 1024}}`)
	require.Equal(t, fullLayer(4, 256, 256), Layer{KVHeads: gemma.Layers[5].KVHeads, KeyDim: gemma.Layers[5].KeyDim, ValueDim: gemma.Layers[5].ValueDim})

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
		"layer kind":            {"granite", `"attention"]`, `"some"]`, `layer_types: ["mamba", "some"]: layer 1 is "some"`},
		"layer count":           {"granite", `, "attention"]`, `]`, "1 entries for 2 layers"},
		"window":                {"gemma", `"sliding_window": 128`, `"sliding_window": null`, "sliding_window: null: missing"},
		"index":                 {"deepseek", `"index_head_dim": 128`, `"index_head_dim": 100`, "KeyDim is 100, want a multiple of 128"},
		"layer twice":           {"kimi", `"kda_layers": [1, 2]`, `"kda_layers": [1, 3]`, "linear_attn_config.kda_layers: [1, 3]: layer 3 is not of 1 to 3, or named twice"},
		"layer left out":        {"kimi", `"kda_layers": [1, 2]`, `"kda_layers": [1]`, "kda_layers: [1]: layer 2 is neither"},
		"layer 0":               {"kimi", `"kda_layers": [1, 2]`, `"kda_layers": [0, 2]`, "layer 0 is not of"},
		"letter":                {"nemotron", `"M-*E"`, `"M-*X"`, `hybrid_override_pattern: "M-*X": letter 3 is 'X', want`},
		"window in some":        {"qwen2", `"use_sliding_window": false, "max_window_layers": 2`, `"use_sliding_window": true, "max_window_layers": 1`, "max_window_layers: 1: a window in some layers only"},
		"window in some, names": {"qwen2", `"use_sliding_window": false`, `"use_sliding_window": true, "layer_types": ["full_attention", "sliding_attention"]`, "layer_types: "},
		"window turned off":     {"qwen2", `"max_window_layers": 2`, `"layer_types": ["full_attention", "sliding_attention"]`, `layer 1 is "sliding_attention", want one of`},
		"not a bool":            {"qwen2", `"use_sliding_window": false`, `"use_sliding_window": 5`, "use_sliding_window: 5: want true or false"},
		"other cache":           {"mistral", `"head_dim"`, `"swa_head_dim": 5, "head_dim"`, "swa_head_dim: 5: is not known of this architecture"},
		"shared by none":        {"gemma4", `"num_kv_shared_layers": 0`, `"num_kv_shared_layers": 2`, "num_kv_shared_layers: 2: layer 1 has no earlier layer of full_attention"},
		"shared by all":         {"gemma4", `"num_kv_shared_layers": 0`, `"num_kv_shared_layers": 3`, "num_kv_shared_layers: 3: want an integer of 0 to 2"},
		"halved window":         {"gemma", `"head_dim"`, `"use_bidirectional_attention": true, "head_dim"`, "use_bidirectional_attention: true: halves the window"},
		"halved window, 4":      {"gemma4", `"head_dim"`, `"use_bidirectional_attention": "all", "head_dim"`, `text_config.use_bidirectional_attention: "all": halves the window`},
		"rope list":             {"llama4", `"no_rope_layers": []`, `"no_rope_layers": [1]`, "no_rope_layers: [1]: 1 entries for 5 layers"},
		"pattern list":          {"mimo", `[0, 1]`, `[0]`, "hybrid_layer_pattern: [0]: 1 entries for 2 layers"},
		"step attention":        {"step", `"head_dim"`, `"att_impl_type": "MFA", "head_dim"`, `att_impl_type: "MFA": want "GQA"`},
		"step list":             {"step", `, "sliding_attention", "sliding_attention"]`, `]`, "1 entries for 2 layers"},
		"index letter":          {"glm", `"index_topk_pattern": null`, `"index_topk_pattern": "FX"`, `index_topk_pattern: "FX": layer 1 is "X", want F or S`},
		"index frequency":       {"glm", `"index_topk_freq": 2`, `"index_topk_freq": 0`, "index_topk_freq: 0: want an integer of 1 to"},
		"ratio":                 {"deepseek4", `[0, 4, 128, 0]`, `[0, 2, 128, 0]`, "layer 1 has 2, want 0, 1, 4 or 128"},
		"ratios":                {"deepseek4", `[0, 4, 128, 0]`, `[0]`, "compress_ratios: [0]: 1 entries for 3 layers"},
		"packed form":           {"deepseek4", `"head_dim": 512`, `"head_dim": 256`, "head_dim: 256: want 512, for which the packed form is known"},
		"sparse list":           {"minimax3", `[0, 1]`, `[1]`, "sparse_attention_config.sparse_attention_freq: [1]: 1 entries for 2 layers"},
		"attention index":       {"lfm2", `[1]`, `[3]`, "full_attn_idxs: [3]: layer 3 is not of 0 to 2"},
		"jamba with a list":     {"jamba", `"mamba_d_conv": 4`, `"mamba_d_conv": 4, "layers_block_type": ["mamba"]`, `layers_block_type: ["mamba"]: is not read by this architecture`},
		"kimi, two opinions":    {"kimi", `"kv_lora_rank"`, `"layer_types": ["linear_attention", "full_attention", "full_attention"], "kv_lora_rank"`, `layer 1 is "full_attention" here, but "linear_attention" in`},
		"compressed, bits":      {"llama", `"hidden_size"`, `"quantization_config": {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 4, "type": "float", "symmetric": true}}, "hidden_size"`, "quantization_config.kv_cache_scheme.num_bits: 4: want 8"},
		"compressed, symmetric": {"llama", `"hidden_size"`, `"quantization_config": {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "hidden_size"`, "quantization_config.kv_cache_scheme.symmetric: missing"},
		"compressed, strategy":  {"llama", `"hidden_size"`, `"quantization_config": {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float", "symmetric": true, "strategy": "token"}}, "hidden_size"`, `strategy: "token": want "tensor" or`},
		"Infinity":              {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": Infinity`, "num_hidden_layers: Infinity: want an integer"},
		"minus Infinity":        {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": -Infinity`, "num_hidden_layers: -Infinity: want an integer"},
		"NaN":                   {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": NaN`, "num_hidden_layers: NaN: want an integer"},
		"NaN in a list":         {"mimo", `[0, 1]`, `[0, NaN]`, "hybrid_layer_pattern: [0, NaN]: want a list of integers"},
		"NotANumber":            {"llama", `"num_hidden_layers": 3`, `"num_hidden_layers": Nope`, "c.json:2: invalid character 'N'"},
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
	for _, name := range allModels(f) {
		all, err := named()
		require.NoError(f, err)
		m, ok := all[name]
		if !ok {
			m = testModels(f)[name]
		}
		data, err := json.Marshal(m.config)
		require.NoError(f, err)
		f.Add(data, uint8(2), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, tp, order uint8) {
		m, err := ReadConfigWithOptions("fuzz", strings.NewReader(string(data)), ConfigOptions{As: Families()[tp%2]})
		if err != nil {
			require.Nil(t, m)
			require.ErrorIs(t, err, ErrConfig)
			return
		}
		require.NoError(t, m.Validate())
		p, err := NewPlan(m, Options{TP: int(tp), PP: int(tp) / 100, Order: Order(order % 6), StateMode: StateMode(order / 6 % 2), SpeculativeTokens: int(order) / 12})
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
	if p.Options.PP == 1 {
		require.Len(t, seen, len(p.Model.Layers))
	}
	if k := p.MaxScale(4); k > 1 {
		_, err := p.Scaled(k)
		require.NoError(t, err)
	}
	a, err := p.Place(1, 3)
	require.NoError(t, err)
	merged := 0
	for g := range p.Groups {
		for i := range p.Groups[g].Pages {
			merged += p.Groups[g].Ratio * max(p.Groups[g].Pages[i].Heads, 1)
		}
	}
	if merged > 1<<12 {
		return // too many to look at each
	}
	for _, table := range []Table{a.Tables().Transfer, a.SegmentsMerged(), a.Segments(0)} {
		require.NoError(t, table.Validate())
	}
}
