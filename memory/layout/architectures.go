package layout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// architectures reads the layers of each known architecture. Defaults of
// missing keys are those of the configuration classes in transformers 5.20.
var architectures = map[string]func(*config) []Layer{
	"LlamaForCausalLM":      (*config).llama,
	"GptOssForCausalLM":     (*config).gptOss,
	"Gemma3ForCausalLM":     (*config).gemma3,
	"DeepseekV3ForCausalLM": (*config).deepseek,
	// Sparse attention: an index cache in every layer.
	"DeepseekV32ForCausalLM": (*config).deepseekSparse,

	"Qwen3NextForCausalLM":               (*config).qwenNext,
	"Qwen3_5ForConditionalGeneration":    (*config).qwen35,
	"Qwen3_5MoeForConditionalGeneration": (*config).qwen35,
	"KimiLinearForCausalLM":              (*config).kimi,
	"KimiK3ForConditionalGeneration":     (*config).kimi,
	"NemotronHForCausalLM":               (*config).nemotronH,
	"FalconH1ForCausalLM":                (*config).falconH1,
	"GraniteMoeHybridForCausalLM":        (*config).granite,
	"JambaForCausalLM":                   (*config).jamba,
	"Zamba2ForCausalLM":                  (*config).zamba2,
	"Mamba2ForCausalLM":                  (*config).mamba2,
	"FalconMambaForCausalLM":             (*config).falconMamba,
}

// nested architectures keep the language model's keys under text_config.
var nested = map[string]bool{
	"Qwen3_5ForConditionalGeneration":    true,
	"Qwen3_5MoeForConditionalGeneration": true,
	"KimiK3ForConditionalGeneration":     true,
}

// Architectures returns the names that [ReadConfig] knows, sorted.
func Architectures() []string { return slices.Sorted(maps.Keys(architectures)) }

func (c *config) model() (*Model, error) {
	names := c.strs("architectures")
	if *c.err != nil {
		return nil, *c.err
	}
	if len(names) != 1 {
		c.fail("architectures", fmt.Errorf("%d names, want one", len(names)))
		return nil, *c.err
	}
	layers, ok := architectures[names[0]]
	if !ok {
		c.fail("architectures", fmt.Errorf("%w %q; known are %s", ErrArchitecture, names[0], strings.Join(Architectures(), ", ")))
		return nil, *c.err
	}
	in := c
	if nested[names[0]] {
		in = c.object("text_config")
	}
	m := &Model{Name: c.file, Architecture: names[0], DType: in.dtype()}
	if in.has("max_position_embeddings") {
		m.MaxTokens = in.integer("max_position_embeddings", 1, MaxTokens)
	}
	m.Layers = layers(in)
	if *c.err != nil {
		return nil, *c.err
	}
	if err := m.Validate(); err != nil {
		return nil, &ConfigError{File: c.file, Err: err}
	}
	return m, nil
}

func (c *config) layerCount() int { return c.integer("num_hidden_layers", 1, MaxLayers/2) }

// pattern reads one of names for each of n layers.
func (c *config) pattern(key string, n int, names ...string) []string {
	kinds := c.strs(key)
	if *c.err == nil && len(kinds) != n {
		c.fail(key, fmt.Errorf("%d entries for %d layers", len(kinds), n))
	}
	for i, k := range kinds {
		if !slices.Contains(names, k) {
			c.fail(key, fmt.Errorf("layer %d is %q, want one of %q", i, k, names))
		}
	}
	if *c.err != nil {
		return make([]string, n)
	}
	return kinds
}

// attention reads a layer of full attention. The head size is that of the first
// of keys that is there, else of head_dim. The number of key and value heads and
// the head size have to be there: the defaults of the architectures that use it
// alone are constants, and no guess from other keys meets them.
func (c *config) attention(keys ...string) Layer {
	l := Layer{Kind: FullAttention, KVHeads: c.dim("num_key_value_heads"), KeyDim: c.dimOf(append(keys, "head_dim")...)}
	l.ValueDim = l.KeyDim
	return l
}

// evenAttention is attention, of architectures that make the head size the
// hidden size over the heads where head_dim is missing.
func (c *config) evenAttention() Layer {
	return c.even(c.dim("num_key_value_heads"))
}

func (c *config) even(kvHeads int) Layer {
	l := Layer{Kind: FullAttention, KVHeads: kvHeads}
	if c.has("head_dim") {
		l.KeyDim = c.dim("head_dim")
	} else {
		l.KeyDim = c.quotient("hidden_size", c.dim("hidden_size"), c.dim("num_attention_heads"))
	}
	l.ValueDim = l.KeyDim
	return l
}

// quotient divides a size that key has a part in.
func (c *config) quotient(key string, n, by int) int {
	if n%by != 0 || n < by {
		c.fail(key, fmt.Errorf("%d can't be divided by %d", n, by))
		return 1
	}
	return n / by
}

// latent reads a layer of latent attention.
func (c *config) latent() Layer {
	return Layer{Kind: LatentAttention, KVHeads: 1, KeyDim: c.dim("kv_lora_rank") + c.dim("qk_rope_head_dim")}
}

func sliding(l Layer, window int) Layer {
	l.Kind, l.Window = SlidingWindow, window
	return l
}

// llama has as many key and value heads as heads where the file doesn't say, as
// those of the first models don't.
func (c *config) llama() []Layer {
	full := c.even(c.dimOf("num_key_value_heads", "num_attention_heads"))
	return slices.Repeat([]Layer{full}, c.layerCount())
}

func (c *config) gptOss() []Layer {
	full := c.attention()
	return c.alternate(full, sliding(full, c.dim("sliding_window")))
}

// alternate reads layer_types of full and sliding window attention.
func (c *config) alternate(full, window Layer) []Layer {
	var layers []Layer
	for _, k := range c.pattern("layer_types", c.layerCount(), "full_attention", "sliding_attention") {
		if k == "full_attention" {
			layers = append(layers, full)
		} else {
			layers = append(layers, window)
		}
	}
	return layers
}

func (c *config) gemma3() []Layer {
	full := c.attention()
	window := sliding(full, c.dim("sliding_window"))
	if c.has("layer_types") {
		return c.alternate(full, window)
	}
	every := c.dimOr("sliding_window_pattern", 6)
	layers := slices.Repeat([]Layer{window}, c.layerCount())
	for i := range layers {
		if (i+1)%every == 0 {
			layers[i] = full
		}
	}
	return layers
}

func (c *config) deepseek() []Layer {
	return slices.Repeat([]Layer{c.latent()}, c.layerCount())
}

func (c *config) deepseekSparse() []Layer {
	index := Layer{Kind: LatentIndex, KVHeads: 1, KeyDim: c.dim("index_head_dim")}
	return slices.Repeat([]Layer{c.latent(), index}, c.layerCount())
}
