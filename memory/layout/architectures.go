package layout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// architecture says how the layers of a class are read.
type architecture struct {
	layers func(*config) []Layer
	keys   where // of the language model
}

// where says where the language model's keys are.
type where uint8

const (
	atTop  where = iota
	nested       // under text_config
	either       // there in newer files
)

// architectures reads the layers of each known architecture. Rules are those of
// the model classes in vLLM 0.33, defaults of missing keys those of the
// configuration classes in transformers 5.20.
var architectures = map[string]architecture{
	"LlamaForCausalLM":                   {layers: (*config).llama},
	"MistralForCausalLM":                 {layers: (*config).llama},
	"MixtralForCausalLM":                 {layers: (*config).llama},
	"Mistral3ForConditionalGeneration":   {(*config).llama, nested},
	"Phi3ForCausalLM":                    {layers: (*config).llama},
	"GraniteForCausalLM":                 {layers: (*config).llama},
	"GraniteMoeForCausalLM":              {layers: (*config).llama},
	"Glm4MoeForCausalLM":                 {layers: (*config).llama},
	"MiniMaxM2ForCausalLM":               {layers: (*config).minimax},
	"Qwen2ForCausalLM":                   {layers: (*config).qwen2},
	"Qwen2MoeForCausalLM":                {layers: (*config).qwen2},
	"Qwen2VLForConditionalGeneration":    {(*config).qwen2, either},
	"Qwen2_5_VLForConditionalGeneration": {(*config).qwen2, either},
	"Qwen3ForCausalLM":                   {layers: (*config).qwen3},
	"Qwen3MoeForCausalLM":                {layers: (*config).qwen3},

	"Qwen3VLForConditionalGeneration":    {(*config).qwen3, nested},
	"Qwen3VLMoeForConditionalGeneration": {(*config).qwen3, nested},

	"GptOssForCausalLM":               {layers: (*config).gptOss},
	"Gemma3ForCausalLM":               {layers: (*config).gemma3},
	"Gemma3ForConditionalGeneration":  {(*config).gemma3Nested, nested},
	"Gemma4ForCausalLM":               {layers: (*config).gemma4},
	"Gemma4ForConditionalGeneration":  {(*config).gemma4, nested},
	"Llama4ForCausalLM":               {layers: (*config).llama4},
	"Llama4ForConditionalGeneration":  {(*config).llama4, nested},
	"MiMoV2FlashForCausalLM":          {layers: (*config).mimo},
	"MiMoV2ForCausalLM":               {layers: (*config).mimo},
	"Step3p5ForCausalLM":              {layers: (*config).step},
	"Step3p7ForConditionalGeneration": {(*config).step, nested},

	"DeepseekV2ForCausalLM":                   {layers: (*config).deepseek},
	"Glm4MoeLiteForCausalLM":                  {layers: (*config).deepseek},
	"DeepseekV3ForCausalLM":                   {layers: (*config).deepseek},
	"KimiK25ForConditionalGeneration":         {(*config).deepseek, nested},
	"DeepseekV32ForCausalLM":                  {layers: (*config).deepseekSparse},
	"GlmMoeDsaForCausalLM":                    {layers: (*config).deepseekSparse},
	"DeepseekV4ForCausalLM":                   {layers: (*config).deepseekV4},
	"MiniMaxM3SparseForCausalLM":              {layers: (*config).minimaxSparse},
	"MiniMaxM3SparseForConditionalGeneration": {(*config).minimaxSparse, nested},

	"Qwen3NextForCausalLM":               {layers: (*config).qwenNext},
	"Qwen3_5ForCausalLM":                 {layers: (*config).qwen35},
	"Qwen3_5MoeForCausalLM":              {layers: (*config).qwen35},
	"Qwen3_5ForConditionalGeneration":    {(*config).qwen35, nested},
	"Qwen3_5MoeForConditionalGeneration": {(*config).qwen35, nested},
	"KimiLinearForCausalLM":              {layers: (*config).kimi},
	"KimiK3ForConditionalGeneration":     {(*config).kimi, nested},
	"NemotronHForCausalLM":               {layers: (*config).nemotronH},
	"FalconH1ForCausalLM":                {layers: (*config).falconH1},
	"GraniteMoeHybridForCausalLM":        {layers: (*config).granite},
	"JambaForCausalLM":                   {layers: (*config).jamba},
	"Zamba2ForCausalLM":                  {layers: (*config).zamba2},
	"Mamba2ForCausalLM":                  {layers: (*config).mamba2},
	"FalconMambaForCausalLM":             {layers: (*config).falconMamba},
	"Lfm2ForCausalLM":                    {layers: (*config).lfm2},
	"Lfm2MoeForCausalLM":                 {layers: (*config).lfm2Moe},
}

// families are what an unknown architecture can be read as, see
// [ConfigOptions.As].
var families = map[string]func(*config) []Layer{
	"gqa": (*config).anyGQA,
	"mla": (*config).anyMLA,
}

// Architectures returns the names that [ReadConfig] knows, sorted.
func Architectures() []string { return slices.Sorted(maps.Keys(architectures)) }

// Families returns what [ConfigOptions.As] takes, sorted.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

// model reads the model. A known architecture is read as what it is, whatever
// the options say.
func (c *config) model(o *ConfigOptions) (*Model, error) {
	names := c.strs("architectures")
	if *c.err != nil {
		return nil, *c.err
	}
	if len(names) != 1 {
		c.fail("architectures", fmt.Errorf("%d names, want one", len(names)))
		return nil, *c.err
	}
	a, ok := architectures[names[0]]
	if !ok && o.As == "" {
		c.fail("architectures", fmt.Errorf("%w %q; known are %s; an unknown one can be read as one of %v on request",
			ErrArchitecture, names[0], strings.Join(Architectures(), ", "), Families()))
		return nil, *c.err
	}
	if !ok {
		a = architecture{families[o.As], either}
	}
	in := c
	if a.keys == nested || a.keys == either && c.has("text_config") {
		in = c.object("text_config")
	}
	m := &Model{Name: c.file, Architecture: names[0], DType: in.dtype(), KVDType: c.declaredKV(in)}
	for _, key := range []string{"max_position_embeddings", "model_max_length"} {
		if m.MaxTokens == 0 && in.has(key) {
			m.MaxTokens = in.integer(key, 1, MaxTokens)
		}
	}
	m.Layers = a.layers(in)
	m.Depth = c.depth
	if *c.err != nil {
		return nil, *c.err
	}
	if err := m.Validate(); err != nil {
		return nil, &ConfigError{File: c.file, Err: err}
	}
	return m, nil
}

// layerCount reads the number of the model's layers.
func (c *config) layerCount() int {
	c.depth = c.integer("num_hidden_layers", 1, MaxLayers/2)
	return c.depth
}

// stack returns the caches of n layers, numbered.
func stack(n int, caches func(i int) []Layer) []Layer {
	var layers []Layer
	for i := range n {
		for _, l := range caches(i) {
			l.Index = i
			layers = append(layers, l)
		}
	}
	return layers
}

// all returns n layers with the same caches.
func all(n int, caches ...Layer) []Layer {
	return stack(n, func(int) []Layer { return caches })
}

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

// numbers reads an integer for each of n layers; the list may go on.
func (c *config) numbers(key string, n int) []int {
	v := c.ints(key)
	if *c.err == nil && len(v) < n {
		c.fail(key, fmt.Errorf("%d entries for %d layers", len(v), n))
	}
	if *c.err != nil {
		return make([]int, n)
	}
	return v
}

// refuse makes an error of the first of the keys that is there and neither
// false nor 0 nor empty.
func (c *config) refuse(why string, keys ...string) {
	for _, k := range keys {
		v, ok := c.raw(k)
		switch string(v) {
		case "false", "0", "[]", "{}", `""`:
			ok = false
		}
		if ok {
			c.fail(k, fmt.Errorf("%s", why))
		}
	}
}

// quotient divides a size that key has a part in.
func (c *config) quotient(key string, n, by int) int {
	if n%by != 0 || n < by {
		c.fail(key, fmt.Errorf("%d can't be divided by %d", n, by))
		return 1
	}
	return n / by
}

// product multiplies two sizes to a third.
func (c *config) product(a, b string) int {
	n := c.dim(a) * c.dim(b)
	if n > MaxDim {
		c.fail(a, fmt.Errorf("times %s is %d, want at most %d", b, n, MaxDim))
		return 1
	}
	return n
}
