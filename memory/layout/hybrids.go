package layout

import (
	"fmt"
	"slices"
)

// mamba1 returns a layer of Mamba: a state of inner channels.
func mamba1(inner, dState, kernel int) Layer {
	return Layer{Kind: Recurrent, State: &State{
		ConvKernel:        kernel,
		NoSpeculativeRows: true,
		Conv:              []Part{{Name: "x", Units: inner, Width: 1}},
		Temporal:          []int{inner, dState},
	}}
}

// mamba2Layer returns a layer of Mamba2. The groups are copied where the ranks
// outnumber them.
func mamba2Layer(heads, headDim, groups, dState, kernel int) Layer {
	return Layer{Kind: Recurrent, State: &State{
		ConvKernel: kernel,
		Conv: []Part{
			{Name: "x", Units: heads, Width: headDim},
			{Name: "B", Units: groups, Width: dState, Copied: true},
			{Name: "C", Units: groups, Width: dState, Copied: true},
		},
		Temporal: []int{heads, headDim, dState},
	}}
}

// deltaNet returns a layer of gated linear attention with a delta rule.
func deltaNet(keyHeads, keyDim, valueHeads, valueDim, kernel int) Layer {
	return Layer{Kind: Recurrent, State: &State{
		ConvKernel: kernel,
		Conv: []Part{
			{Name: "Q", Units: keyHeads, Width: keyDim},
			{Name: "K", Units: keyHeads, Width: keyDim},
			{Name: "V", Units: valueHeads, Width: valueDim},
		},
		Temporal: []int{valueHeads, valueDim, keyDim},
	}}
}

// mixed returns a recurrent layer or one of full attention for each of kinds.
func mixed(kinds []string, linear, full Layer) []Layer {
	return stack(len(kinds), func(i int) []Layer {
		switch kinds[i] {
		case "full_attention", "attention":
			return []Layer{full}
		case "linear_attention", "mamba", "conv":
			return []Layer{linear}
		}
		return nil
	})
}

// qwenNext has temporal states of the model's dtype: its configuration knows no
// other.
func (c *config) qwenNext() []Layer {
	full := c.attention()
	linear := deltaNet(c.dim("linear_num_key_heads"), c.dim("linear_key_head_dim"),
		c.dim("linear_num_value_heads"), c.dim("linear_value_head_dim"), c.dim("linear_conv_kernel_dim"))
	n := c.layerCount()
	if c.has("layer_types") {
		return mixed(c.pattern("layer_types", n, "linear_attention", "full_attention"), linear, full)
	}
	every := c.dim("full_attention_interval")
	return stack(n, func(i int) []Layer {
		if (i+1)%every == 0 {
			return []Layer{full}
		}
		return []Layer{linear}
	})
}

func (c *config) qwen35() []Layer {
	layers := c.qwenNext()
	d := c.dtypeOr("mamba_ssm_dtype", DefaultDType)
	for i := range layers {
		if s := layers[i].State; s != nil {
			s.DType = d
		}
	}
	return layers
}

// kimi lists its layers by kind, counted from 1, in an object of its own, or by
// layer_types, and spells the sizes likewise.
func (c *config) kimi() []Layer {
	n := c.layerCount()
	latent := c.latent()
	in, heads, dim, kernel := c, "linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim"
	if c.has("linear_attn_config") {
		in, heads, dim, kernel = c.object("linear_attn_config"), "num_heads", "head_dim", "short_conv_kernel_size"
	}
	delta := deltaNet(in.dim(heads), in.dim(dim), in.dim(heads), in.dim(dim), in.dim(kernel))
	delta.State.DType = Float32
	if in == c || !in.has("full_attn_layers") && !in.has("kda_layers") {
		return mixed(c.pattern("layer_types", n, "linear_attention", "full_attention"), delta, latent)
	}
	kinds := make([]string, n)
	put := func(key, kind string) {
		for _, i := range in.ints(key) {
			if i < 1 || i > n || kinds[i-1] != "" {
				in.fail(key, fmt.Errorf("layer %d is not of 1 to %d, or named twice", i, n))
				return
			}
			kinds[i-1] = kind
		}
	}
	put("full_attn_layers", "full_attention")
	put("kda_layers", "linear_attention")
	if i := slices.Index(kinds, ""); i >= 0 {
		in.fail("kda_layers", fmt.Errorf("layer %d is neither here nor in full_attn_layers", i+1))
	}
	if c.has("layer_types") {
		for i, k := range c.pattern("layer_types", n, "linear_attention", "full_attention") {
			if *c.err == nil && k != kinds[i] {
				c.fail("layer_types", fmt.Errorf("layer %d is %q here, but %q in linear_attn_config", i, k, kinds[i]))
			}
		}
	}
	return mixed(kinds, delta, latent)
}

// nemotronH lists its layers, feed-forward ones included, as names or as
// letters. The length of the list counts: num_hidden_layers may be missing or
// wrong.
func (c *config) nemotronH() []Layer {
	c.refuse("is not known of this architecture, and would change the cache", "block_configs")
	kinds := c.nemotronKinds()
	if c.depth = len(kinds); len(kinds) > MaxLayers/2 {
		c.fail("hybrid_override_pattern", fmt.Errorf("%d layers, want at most %d", len(kinds), MaxLayers/2))
	}
	full := c.nemotronAttention()
	mamba := mamba2Layer(c.dim("mamba_num_heads"), c.dim("mamba_head_dim"), c.dimOf("n_groups", "mamba_n_groups"),
		c.dim("ssm_state_size"), c.dimOf("conv_kernel", "mamba_d_conv"))
	mamba.State.DType = c.dtypeOr("mamba_ssm_cache_dtype", Float32)
	return mixed(kinds, mamba, full)
}

func (c *config) nemotronKinds() (kinds []string) {
	key := "hybrid_override_pattern"
	for _, k := range []string{"layers_block_type", "layer_types"} {
		if c.has(k) {
			key = k
			kinds = c.strs(k)
			kinds = c.pattern(k, len(kinds), "mamba", "linear_attention", "attention", "full_attention", "moe", "mlp")
			break
		}
	}
	if kinds == nil {
		letters := map[rune]string{'M': "mamba", '*': "attention", '-': "mlp", 'E': "moe"}
		for i, k := range c.str(key) {
			if letters[k] == "" {
				c.fail(key, fmt.Errorf("letter %d is %q, want M, *, - or E", i, k))
			}
			kinds = append(kinds, letters[k])
		}
	}
	if !slices.ContainsFunc(kinds, func(k string) bool { return k != "mlp" && k != "moe" }) {
		c.fail(key, fmt.Errorf("no layer has a cache"))
	}
	return kinds
}

// nemotronAttention guesses a missing head size only where the hidden size over
// the heads is also the architecture's default.
func (c *config) nemotronAttention() Layer {
	const usual = 128
	if c.has("attention_head_dim") || c.has("head_dim") {
		return c.attention("attention_head_dim")
	}
	full := c.evenAttention()
	if full.KeyDim != usual {
		c.fail("head_dim", fmt.Errorf("%w, and hidden_size / num_attention_heads = %d is not the usual %d", errMissing, full.KeyDim, usual))
	}
	return full
}

// mambaHead reads the head size of Mamba2, which may be "auto": what is left of
// the inner size for each head.
func (c *config) mambaHead(heads int, inner func() int) int {
	if v, ok := c.raw("mamba_d_head"); ok && string(v) == `"auto"` {
		return c.quotient("mamba_n_heads", inner(), heads)
	}
	return c.dim("mamba_d_head")
}

// falconH1 has attention and Mamba2 side by side in each layer.
func (c *config) falconH1() []Layer {
	heads := c.dim("mamba_n_heads")
	dim := c.mambaHead(heads, func() int {
		if c.has("mamba_d_ssm") {
			return c.dim("mamba_d_ssm")
		}
		return c.product("mamba_expand", "hidden_size")
	})
	if inner := c.dimOr("mamba_d_ssm", heads*dim); inner != heads*dim {
		c.fail("mamba_d_ssm", fmt.Errorf("want mamba_n_heads * mamba_d_head = %d", heads*dim))
	}
	mamba := mamba2Layer(heads, dim, c.dim("mamba_n_groups"), c.dim("mamba_d_state"), c.dim("mamba_d_conv"))
	full := c.attention()
	return all(c.layerCount(), full, mamba)
}

// granite may have attention alone; the keys of Mamba2 then have no meaning.
func (c *config) granite() []Layer {
	key := "layer_types"
	if !c.has(key) && c.has("layers_block_type") {
		key = "layers_block_type"
	}
	kinds := c.pattern(key, c.layerCount(), "mamba", "attention", "linear_attention", "full_attention")
	full := c.groupedAttention()
	var mamba Layer
	if slices.Contains(kinds, "mamba") || slices.Contains(kinds, "linear_attention") {
		heads := c.dim("mamba_n_heads")
		inner := c.product("mamba_expand", "hidden_size")
		dim := c.mambaHead(heads, func() int { return inner })
		if inner != heads*dim {
			c.fail("mamba_n_heads", fmt.Errorf("with mamba_d_head %d, want mamba_expand * hidden_size = %d together", dim, inner))
		}
		mamba = mamba2Layer(heads, dim, c.dim("mamba_n_groups"), c.dim("mamba_d_state"), c.dim("mamba_d_conv"))
	}
	return mixed(kinds, mamba, full)
}

// jamba knows its layers by period and offset only: a file that lists them does
// not load in transformers 5.
func (c *config) jamba() []Layer {
	c.refuse("is not read by this architecture: attn_layer_period and attn_layer_offset say the layers", "layers_block_type", "layer_types")
	full := c.evenAttention()
	mamba := mamba1(c.product("mamba_expand", "hidden_size"), c.dim("mamba_d_state"), c.dim("mamba_d_conv"))
	period := c.dim("attn_layer_period")
	offset := c.integer("attn_layer_offset", 0, period-1)
	return stack(c.layerCount(), func(i int) []Layer {
		if i%period == offset {
			return []Layer{full}
		}
		return []Layer{mamba}
	})
}

// zamba2 has Mamba2 in every layer, and attention before it in hybrid ones. The
// attention works on the hidden state and the embedding side by side, hence
// twice the size. Older files spell some keys differently.
func (c *config) zamba2() []Layer {
	dim := c.dimOf("mamba_headdim")
	inner := c.dimOf("mamba_expand", "expansion_factor") * c.dim("hidden_size")
	mamba := mamba2Layer(c.quotient("mamba_headdim", inner, dim), dim, c.dim("mamba_ngroups"),
		c.dimOf("mamba_d_state", "state_size"), c.dimOf("mamba_d_conv", "conv_dimension"))
	heads, d := c.dimOf("num_key_value_heads", "num_attention_heads"), 1
	if c.has("attention_head_dim") {
		d = c.dim("attention_head_dim")
	} else {
		d = c.quotient("hidden_size", 2*c.dim("hidden_size"), c.dim("num_attention_heads"))
	}
	full := fullLayer(heads, d, d)
	kinds := c.pattern("layers_block_type", c.layerCount(), "mamba", "hybrid")
	return stack(len(kinds), func(i int) []Layer {
		if kinds[i] == "hybrid" {
			return []Layer{mamba, full}
		}
		return []Layer{mamba}
	})
}

func (c *config) mamba2() []Layer {
	mamba := mamba2Layer(c.dim("num_heads"), c.dim("head_dim"), c.dim("n_groups"), c.dim("state_size"), c.dim("conv_kernel"))
	return all(c.layerCount(), mamba)
}

func (c *config) falconMamba() []Layer {
	mamba := mamba1(c.dim("intermediate_size"), c.dim("state_size"), c.dim("conv_kernel"))
	return all(c.layerCount(), mamba)
}

// lfm2 has short convolutions, which keep rows and no temporal state.
func (c *config) lfm2() []Layer { return c.shortConv("conv_dim") }

func (c *config) lfm2Moe() []Layer { return c.shortConv("hidden_size") }

func (c *config) shortConv(width string) []Layer {
	n := c.layerCount()
	d := c.quotient("hidden_size", c.dim("hidden_size"), c.dim("num_attention_heads"))
	full := fullLayer(c.dim("num_key_value_heads"), d, d)
	conv := Layer{Kind: Recurrent, State: &State{ConvKernel: c.dim("conv_L_cache"), Conv: []Part{{Name: "x", Units: c.dim(width), Width: 1}}}}
	if c.has("layer_types") {
		return mixed(c.pattern("layer_types", n, "conv", "full_attention"), conv, full)
	}
	kinds := slices.Repeat([]string{"conv"}, n)
	for _, i := range c.ints("full_attn_idxs") {
		if i < 0 || i >= n {
			c.fail("full_attn_idxs", fmt.Errorf("layer %d is not of 0 to %d", i, n-1))
			return nil
		}
		kinds[i] = "full_attention"
	}
	return mixed(kinds, conv, full)
}
