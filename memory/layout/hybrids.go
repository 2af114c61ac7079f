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

// qwenNext has temporal states of the model's dtype: its configuration knows no
// other.
func (c *config) qwenNext() []Layer {
	full := c.attention()
	linear := deltaNet(c.dim("linear_num_key_heads"), c.dim("linear_key_head_dim"),
		c.dim("linear_num_value_heads"), c.dim("linear_value_head_dim"), c.dim("linear_conv_kernel_dim"))
	n := c.layerCount()
	layers := slices.Repeat([]Layer{linear}, n)
	if c.has("layer_types") {
		for i, k := range c.pattern("layer_types", n, "linear_attention", "full_attention") {
			if k == "full_attention" {
				layers[i] = full
			}
		}
		return layers
	}
	every := c.dim("full_attention_interval")
	for i := range layers {
		if (i+1)%every == 0 {
			layers[i] = full
		}
	}
	return layers
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

// kimi counts its layers from 1.
func (c *config) kimi() []Layer {
	n := c.layerCount()
	latent := c.latent()
	in := c.object("linear_attn_config")
	heads, dim := in.dim("num_heads"), in.dim("head_dim")
	delta := deltaNet(heads, dim, heads, dim, in.dim("short_conv_kernel_size"))
	delta.State.DType = Float32
	layers := make([]Layer, n)
	set := make([]bool, n)
	put := func(key string, l Layer) {
		for _, i := range in.ints(key) {
			if i < 1 || i > n || set[i-1] {
				in.fail(key, fmt.Errorf("layer %d is not of 1 to %d, or named twice", i, n))
				return
			}
			layers[i-1], set[i-1] = l, true
		}
	}
	put("full_attn_layers", latent)
	put("kda_layers", delta)
	if i := slices.Index(set, false); i >= 0 {
		in.fail("kda_layers", fmt.Errorf("layer %d is neither here nor in full_attn_layers", i+1))
	}
	return layers
}

func (c *config) nemotronH() []Layer {
	const key = "hybrid_override_pattern"
	full := c.nemotronAttention()
	mamba := mamba2Layer(c.dim("mamba_num_heads"), c.dim("mamba_head_dim"), c.dim("n_groups"),
		c.dim("ssm_state_size"), c.dim("conv_kernel"))
	mamba.State.DType = c.dtypeOr("mamba_ssm_cache_dtype", Float32)
	n, pattern := c.layerCount(), c.str(key)
	if *c.err == nil && len(pattern) != n {
		c.fail(key, fmt.Errorf("%d letters for %d layers", len(pattern), n))
	}
	var layers []Layer
	for i, k := range pattern {
		switch k {
		case 'M':
			layers = append(layers, mamba)
		case '*':
			layers = append(layers, full)
		case '-', 'E': // feed-forward layers
		default:
			c.fail(key, fmt.Errorf("letter %d is %q, want M, *, - or E", i, k))
			return nil
		}
	}
	if len(layers) == 0 {
		c.fail(key, fmt.Errorf("no layer has a cache"))
	}
	return layers
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

// falconH1 has attention and Mamba2 side by side in each layer.
func (c *config) falconH1() []Layer {
	heads, dim := c.dim("mamba_n_heads"), c.dim("mamba_d_head")
	if inner := c.dimOr("mamba_d_ssm", heads*dim); inner != heads*dim {
		c.fail("mamba_d_ssm", fmt.Errorf("want mamba_n_heads * mamba_d_head = %d", heads*dim))
	}
	mamba := mamba2Layer(heads, dim, c.dim("mamba_n_groups"), c.dim("mamba_d_state"), c.dim("mamba_d_conv"))
	return slices.Repeat([]Layer{c.attention(), mamba}, c.layerCount())
}

func (c *config) granite() []Layer {
	heads, dim := c.dim("mamba_n_heads"), c.dim("mamba_d_head")
	if inner := c.dim("mamba_expand") * c.dim("hidden_size"); inner != heads*dim {
		c.fail("mamba_n_heads", fmt.Errorf("with mamba_d_head %d, want mamba_expand * hidden_size = %d together", dim, inner))
	}
	full := c.evenAttention()
	mamba := mamba2Layer(heads, dim, c.dim("mamba_n_groups"), c.dim("mamba_d_state"), c.dim("mamba_d_conv"))
	var layers []Layer
	for _, k := range c.pattern("layer_types", c.layerCount(), "mamba", "attention") {
		if k == "attention" {
			layers = append(layers, full)
		} else {
			layers = append(layers, mamba)
		}
	}
	return layers
}

func (c *config) jamba() []Layer {
	full := c.evenAttention()
	mamba := mamba1(c.product("mamba_expand", "hidden_size"), c.dim("mamba_d_state"), c.dim("mamba_d_conv"))
	period := c.dim("attn_layer_period")
	offset := c.integer("attn_layer_offset", 0, period-1)
	layers := slices.Repeat([]Layer{mamba}, c.layerCount())
	for i := range layers {
		if i%period == offset {
			layers[i] = full
		}
	}
	return layers
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

// zamba2 has Mamba2 in every layer, and attention before it in hybrid ones. The
// attention works on the hidden state and the embedding side by side, hence
// twice the size. Older files spell some keys differently.
func (c *config) zamba2() []Layer {
	dim := c.dimOf("mamba_headdim")
	inner := c.dimOf("mamba_expand", "expansion_factor") * c.dim("hidden_size")
	mamba := mamba2Layer(c.quotient("mamba_headdim", inner, dim), dim, c.dim("mamba_ngroups"),
		c.dimOf("mamba_d_state", "state_size"), c.dimOf("mamba_d_conv", "conv_dimension"))
	full := Layer{Kind: FullAttention, KVHeads: c.dimOf("num_key_value_heads", "num_attention_heads")}
	if c.has("attention_head_dim") {
		full.KeyDim = c.dim("attention_head_dim")
	} else {
		full.KeyDim = c.quotient("hidden_size", 2*c.dim("hidden_size"), c.dim("num_attention_heads"))
	}
	full.ValueDim = full.KeyDim
	var layers []Layer
	for _, k := range c.pattern("layers_block_type", c.layerCount(), "mamba", "hybrid") {
		layers = append(layers, mamba)
		if k == "hybrid" {
			layers = append(layers, full)
		}
	}
	return layers
}

func (c *config) mamba2() []Layer {
	mamba := mamba2Layer(c.dim("num_heads"), c.dim("head_dim"), c.dim("n_groups"), c.dim("state_size"), c.dim("conv_kernel"))
	return slices.Repeat([]Layer{mamba}, c.layerCount())
}

func (c *config) falconMamba() []Layer {
	mamba := mamba1(c.dim("intermediate_size"), c.dim("state_size"), c.dim("conv_kernel"))
	return slices.Repeat([]Layer{mamba}, c.layerCount())
}
