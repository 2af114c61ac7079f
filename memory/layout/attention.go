package layout

import (
	"errors"
	"fmt"
	"slices"
)

func fullLayer(kvHeads, keyDim, valueDim int) Layer {
	return Layer{Kind: FullAttention, KVHeads: kvHeads, KeyDim: keyDim, ValueDim: valueDim}
}

// attention reads a layer of full attention. The head size is that of the first
// of keys that is there, else of head_dim. The number of key and value heads and
// the head size have to be there: the defaults of the architectures that use it
// alone are constants, and no guess from other keys meets them.
func (c *config) attention(keys ...string) Layer {
	heads := c.dim("num_key_value_heads")
	d := c.dimOf(append(keys, "head_dim")...)
	return fullLayer(heads, d, d)
}

// evenAttention is attention, of architectures that make the head size the
// hidden size over the heads where head_dim is missing.
func (c *config) evenAttention() Layer {
	return c.even(c.dim("num_key_value_heads"))
}

// groupedAttention is evenAttention, of architectures that have as many key and
// value heads as heads where the file does not say.
func (c *config) groupedAttention() Layer {
	return c.even(c.dimOf("num_key_value_heads", "num_attention_heads"))
}

func (c *config) even(kvHeads int) Layer {
	d := 1
	if c.has("head_dim") {
		d = c.dim("head_dim")
	} else {
		d = c.quotient("hidden_size", c.dim("hidden_size"), c.dim("num_attention_heads"))
	}
	return fullLayer(kvHeads, d, d)
}

func sliding(l Layer, window int) Layer {
	l.Kind, l.Window = SlidingWindow, window
	return l
}

// llama reads an architecture of equal attention layers. Its layers have a
// sliding window where layer_types says so, and all where there is a window
// and no layer_types.
func (c *config) llama() []Layer { return c.windowed(c.groupedAttention()) }

func (c *config) minimax() []Layer { return c.windowed(c.attention()) }

func (c *config) windowed(full Layer) []Layer {
	c.otherCaches()
	n := c.layerCount()
	if c.has("layer_types") {
		return c.alternate(n, full)
	}
	if c.has("sliding_window") && !c.off("use_sliding_window") {
		return all(n, sliding(full, c.dim("sliding_window")))
	}
	return all(n, full)
}

// otherCaches refuses keys that say that the model keeps more, or less, than
// plain attention does.
func (c *config) otherCaches() {
	c.refuse("is not known of this architecture, and would change the cache",
		"kv_lora_rank", "index_topk", "index_head_dim", "compress_ratios", "compress_rates", "sparse_attention_config",
		"num_kv_shared_layers", "cla_share_factor", "swa_num_key_value_heads", "swa_head_dim", "global_head_dim", "num_global_key_value_heads",
		"attention_chunk_size", "hybrid_layer_pattern", "no_rope_layer_interval", "block_configs", "cross_attention_layers", "is_encoder_decoder",
		"linear_attn_config", "linear_num_key_heads", "linear_num_heads", "layers_block_type", "hybrid_override_pattern", "full_attention_interval",
		"attn_layer_period", "full_attn_idxs", "conv_L_cache", "mamba_d_state", "mamba_n_heads", "mamba_num_heads", "ssm_state_size", "state_size")
}

// qwen2 has a window only where use_sliding_window turns it on. It is in the
// layers from max_window_layers on, and vLLM does not take models in which some
// have it.
func (c *config) qwen2() []Layer { return c.qwen(c.evenAttention()) }

func (c *config) qwen3() []Layer { return c.qwen(c.attention()) }

func (c *config) qwen(full Layer) []Layer {
	if !c.on("use_sliding_window") || !c.has("sliding_window") {
		c.otherCaches()
		n := c.layerCount()
		if c.has("layer_types") {
			c.pattern("layer_types", n, "full_attention")
		}
		return all(n, full)
	}
	if c.has("layer_types") {
		layers := c.windowed(full)
		if slices.ContainsFunc(layers, func(l Layer) bool { return l.Kind != layers[0].Kind }) {
			c.fail("layer_types", errors.New("a window in some layers only is not known of this architecture"))
		}
		return layers
	}
	switch n, first := c.layerCount(), c.integer("max_window_layers", 0, MaxLayers); {
	case first == 0:
		return c.windowed(full)
	case first >= n:
		c.otherCaches()
		return all(n, full)
	}
	c.fail("max_window_layers", errors.New("a window in some layers only is not known of this architecture"))
	return nil
}

// alternate reads layer_types of full attention and of sliding windows.
func (c *config) alternate(n int, full Layer) []Layer {
	kinds := c.pattern("layer_types", n, "full_attention", "sliding_attention")
	return c.alternated(kinds, full, func() Layer { return sliding(full, c.dim("sliding_window")) })
}

// alternated returns the layers of kinds; window is called if there is one.
func (c *config) alternated(kinds []string, full Layer, window func() Layer) []Layer {
	var w Layer
	if slices.Contains(kinds, "sliding_attention") {
		w = window()
	}
	return stack(len(kinds), func(i int) []Layer {
		if kinds[i] == "sliding_attention" {
			return []Layer{w}
		}
		return []Layer{full}
	})
}

// gptOss has a window in each even layer, whatever layer_types says.
func (c *config) gptOss() []Layer {
	full := c.attention()
	window := sliding(full, c.dim("sliding_window"))
	return stack(c.layerCount(), func(i int) []Layer {
		if i%2 == 0 {
			return []Layer{window}
		}
		return []Layer{full}
	})
}

// everySixth returns layer_types, and where there is none windows but in each
// layer whose number, counted from 1, can be divided.
func (c *config) everySixth() []string {
	n := c.layerCount()
	if c.has("layer_types") {
		return c.pattern("layer_types", n, "full_attention", "sliding_attention")
	}
	every := c.dimOr("sliding_window_pattern", 6)
	kinds := make([]string, n)
	for i := range kinds {
		if kinds[i] = "sliding_attention"; (i+1)%every == 0 {
			kinds[i] = "full_attention"
		}
	}
	return kinds
}

const bothWays = "halves the window, which is not known here"

func (c *config) gemma3() []Layer { return c.gemma3Of(c.attention()) }

// gemma3Nested has heads of the constants in the configuration class where the
// file does not say: published files of 4b and 12b don't.
func (c *config) gemma3Nested() []Layer {
	d := c.dimOr("head_dim", 256)
	return c.gemma3Of(fullLayer(c.dimOr("num_key_value_heads", 4), d, d))
}

func (c *config) gemma3Of(full Layer) []Layer {
	c.refuse(bothWays, "use_bidirectional_attention")
	return c.alternated(c.everySixth(), full, func() Layer { return sliding(full, c.dim("sliding_window")) })
}

// gemma4 has heads of another size, and as many as another key says, in layers
// of full attention. Equal keys and values are both stored. The last layers may
// use the cache of the last earlier layer of their kind. The very last attends
// to everything, whatever layer_types says.
func (c *config) gemma4() []Layer {
	if v, ok := c.raw("use_bidirectional_attention"); ok && string(v) != `"vision"` {
		c.refuse(bothWays, "use_bidirectional_attention")
	}
	window := c.attention()
	heads := window.KVHeads
	if c.on("attention_k_eq_v") && c.has("num_global_key_value_heads") {
		heads = c.dim("num_global_key_value_heads")
	}
	d := c.dimOr("global_head_dim", 512)
	full := fullLayer(heads, d, d)
	kinds := c.everySixth()
	kinds[len(kinds)-1] = "full_attention"
	layers := c.alternated(kinds, full, func() Layer { return sliding(window, c.dim("sliding_window")) })
	const shared = "num_kv_shared_layers"
	if !c.has(shared) {
		return layers
	}
	own := len(kinds) - c.integer(shared, 0, len(kinds)-1)
	for i := own; i < len(kinds); i++ {
		if !slices.Contains(kinds[:own], kinds[i]) {
			c.fail(shared, fmt.Errorf("layer %d has no earlier layer of %s to share the cache of", i, kinds[i]))
		}
	}
	return layers[:own]
}

// llama4 attends within chunks in the layers that have rotary positions.
func (c *config) llama4() []Layer {
	full := c.attention()
	n := c.layerCount()
	rope := []int(nil)
	if c.has("no_rope_layers") {
		rope = c.ints("no_rope_layers")
	}
	if len(rope) == 0 {
		every := c.dimOr("no_rope_layer_interval", 4)
		rope = make([]int, n)
		for i := range rope {
			rope[i] = (i + 1) % every
		}
	} else {
		rope = c.numbers("no_rope_layers", n)
	}
	if !c.has("attention_chunk_size") {
		return all(n, full)
	}
	chunk := full
	chunk.Kind, chunk.Window = ChunkedLocal, c.dim("attention_chunk_size")
	return stack(n, func(i int) []Layer {
		if rope[i] == 0 {
			return []Layer{full}
		}
		return []Layer{chunk}
	})
}

// mimo has other heads in layers with a window, and values that may be narrower
// than keys.
func (c *config) mimo() []Layer {
	full := c.attention()
	full.ValueDim = c.dimOr("v_head_dim", full.KeyDim)
	d := c.dim("swa_head_dim")
	window := sliding(fullLayer(c.dim("swa_num_key_value_heads"), d, c.dimOr("swa_v_head_dim", d)), c.dim("sliding_window_size"))
	n := c.layerCount()
	slides := c.numbers("hybrid_layer_pattern", n)
	return stack(n, func(i int) []Layer {
		if slides[i] == 1 {
			return []Layer{window}
		}
		return []Layer{full}
	})
}

// step spells the number of key and value heads in its own way; layer_types may
// go on with the layers of multi-token prediction.
func (c *config) step() []Layer {
	if c.has("att_impl_type") && c.str("att_impl_type") != "GQA" {
		c.fail("att_impl_type", errors.New(`want "GQA"`))
	}
	d := c.dim("head_dim")
	full := fullLayer(c.dimOf("num_attention_groups", "num_key_value_heads"), d, d)
	n := c.layerCount()
	listed := n
	if names := c.strs("layer_types"); c.has("num_nextn_predict_layers") && len(names) > n {
		listed += c.integer("num_nextn_predict_layers", 0, MaxLayers)
	}
	kinds := c.pattern("layer_types", listed, "full_attention", "sliding_attention")[:n]
	return c.alternated(kinds, full, func() Layer { return sliding(full, c.dim("sliding_window")) })
}

// anyGQA reads an unknown architecture as one of plain attention layers.
func (c *config) anyGQA() []Layer {
	c.refuse("is not known of plain attention, and would change the cache", "v_head_dim", "qk_rope_head_dim", "num_attention_groups")
	return c.windowed(c.evenAttention())
}
