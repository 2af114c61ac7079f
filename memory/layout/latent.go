package layout

import (
	"fmt"
	"slices"
)

// latent reads a layer of latent attention.
func (c *config) latent() Layer {
	return Layer{Kind: LatentAttention, KVHeads: 1, KeyDim: c.dim("kv_lora_rank") + c.dim("qk_rope_head_dim")}
}

// deepseek has sparse attention where the file has the keys of it.
func (c *config) deepseek() []Layer {
	if c.has("index_topk") {
		return c.deepseekSparse()
	}
	latent := c.latent()
	return all(c.layerCount(), latent)
}

// deepseekSparse has an index cache in the layers that pick tokens; others take
// over an earlier layer's choice. The index of a layer comes before its
// attention.
func (c *config) deepseekSparse() []Layer {
	latent := c.latent()
	index := Layer{Kind: SparseIndex, KVHeads: 1, KeyDim: c.dim("index_head_dim"), DType: FP8Index}
	n := c.layerCount()
	skips := c.skips()
	return stack(n, func(i int) []Layer {
		if skips(i) {
			return []Layer{latent}
		}
		return []Layer{index, latent}
	})
}

// skips returns which layers have no index of their own: those with an S in the
// pattern, and without a pattern all but each freq-th behind the first few.
func (c *config) skips() func(int) bool {
	const key = "index_topk_pattern"
	if !c.has(key) {
		freq, off := c.dimOr("index_topk_freq", 1), 2
		if c.has("index_skip_topk_offset") {
			off = c.integer("index_skip_topk_offset", 0, MaxLayers)
		}
		return func(i int) bool { return max(i-off+1, 0)%freq != 0 }
	}
	var letters []string
	if raw, _ := c.raw(key); raw[0] == '[' {
		letters = c.strs(key)
	} else {
		for _, r := range c.str(key) {
			letters = append(letters, string(r))
		}
	}
	for i, l := range letters {
		if l != "S" && l != "F" {
			c.fail(key, fmt.Errorf("layer %d is %q, want F or S", i, l))
		}
	}
	return func(i int) bool { return i < len(letters) && letters[i] == "S" }
}

// What DeepSeek-V4 stores (vLLM 0.33.0, models/deepseek_v4 and
// v1/attention/backends/mla/sparse_swa.py): vectors of 448 elements in fp8, 64
// in 16 bits and 8 bytes of scales, in pages padded for the kernel's loads.
const (
	v4Head, v4Rope   = 512, 64
	v4Row            = v4Head - v4Rope + 2*v4Rope // bytes
	v4Scales         = 8
	v4PageAlign      = 576
	v4WindowTokens   = 64
	v4FineTokens     = 4 // block of the compressors' states
	v4CoarseTokens   = 8
	v4Fine, v4Coarse = 4, 128 // tokens that one stored vector covers
)

// deepseekV4 has a window in every layer, and beside it in most a compressed
// cache of everything, with the state of its compressor. The finer one is
// sparse, with an index that is compressed likewise.
func (c *config) deepseekV4() []Layer {
	fixed := func(key string, want int) int {
		if n := c.dim(key); n != want {
			c.fail(key, fmt.Errorf("want %d, for which the packed form is known", want))
		}
		return want
	}
	head := fixed("head_dim", v4Head)
	fixed("qk_rope_head_dim", v4Rope)
	indexDim := c.dim("index_head_dim")
	one := func(kind Kind, dim int, d DType) Layer {
		return Layer{Kind: kind, KVHeads: 1, KeyDim: dim, DType: d, PageAlign: v4PageAlign}
	}
	window := one(LatentWindow, head, FP8MLAV4)
	window.Window, window.BlockTokens = c.dim("sliding_window"), v4WindowTokens
	main := func(tokens int) Layer {
		l := one(LatentAttention, head, FP8MLAV4)
		l.Compression = tokens
		return l
	}
	index := one(SparseIndex, indexDim, FP8Index)
	index.Compression = v4Fine
	// A state has a value and a score for each element; the finer compressor
	// looks at twice the tokens of a vector, and keeps both halves.
	state := func(kind Kind, dim, window, block int) Layer {
		l := one(kind, dim, Float32)
		l.Window, l.BlockTokens = window, block
		return l
	}
	fine := []Layer{window, index, main(v4Fine),
		state(IndexCompressorState, 4*indexDim, 2*v4Fine, v4FineTokens), state(CompressorState, 4*head, 2*v4Fine, v4FineTokens)}
	coarse := []Layer{window, main(v4Coarse), state(CompressorState, 2*head, v4Coarse, v4CoarseTokens)}
	n := c.layerCount()
	key, ratios := c.ratios(n)
	return stack(n, func(i int) []Layer {
		switch ratios[i] {
		case 0, 1:
			return []Layer{window}
		case v4Fine:
			return fine
		case v4Coarse:
			return coarse
		}
		c.fail(key, fmt.Errorf("layer %d has %d, want 0, 1, %d or %d", i, ratios[i], v4Fine, v4Coarse))
		return nil
	})
}

// ratios reads how many tokens a stored vector covers in each layer: as a list,
// or by the kinds of layer_types.
func (c *config) ratios(n int) (string, []int) {
	if c.has("compress_ratios") || !c.has("compress_rates") {
		return "compress_ratios", c.numbers("compress_ratios", n)
	}
	rates := c.object("compress_rates")
	ratios := make([]int, n)
	for i, kind := range c.strs("layer_types") {
		if i < n && rates.has(kind) {
			ratios[i] = rates.integer(kind, 0, MaxDim)
		}
	}
	if kinds := c.strs("layer_types"); *c.err == nil && len(kinds) != n {
		c.fail("layer_types", fmt.Errorf("%d entries for %d layers", len(kinds), n))
	}
	return "compress_rates", ratios
}

// minimaxSparse has full attention in every layer, and behind it in most an
// index, of the model's dtype whatever the cache's is.
func (c *config) minimaxSparse() []Layer {
	full := c.attention()
	n := c.layerCount()
	if !c.has("sparse_attention_config") {
		return all(n, full)
	}
	in := c.object("sparse_attention_config")
	if !in.has("sparse_attention_freq") {
		return all(n, full)
	}
	freq := in.numbers("sparse_attention_freq", n)
	if !slices.ContainsFunc(freq[:n], func(f int) bool { return f != 0 }) {
		return all(n, full)
	}
	index := Layer{Kind: SparseIndex, KVHeads: 1, KeyDim: in.dim("sparse_index_dim"), DType: (&Model{DType: c.dtype()}).dtype()}
	return stack(n, func(i int) []Layer {
		if freq[i] != 0 {
			return []Layer{full, index}
		}
		return []Layer{full}
	})
}

// anyMLA reads an unknown architecture as one of equal latent attention layers.
func (c *config) anyMLA() []Layer {
	c.refuse("is not known of plain latent attention, and would change the cache",
		"index_topk", "index_head_dim", "compress_ratios", "compress_rates", "sliding_window", "layer_types", "linear_attn_config",
		"num_kv_shared_layers", "layers_block_type", "hybrid_override_pattern", "is_encoder_decoder")
	latent := c.latent()
	return all(c.layerCount(), latent)
}
