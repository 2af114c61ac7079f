package layout

import (
	"fmt"
	"strings"
)

// declaredKV returns what the checkpoint declares for its attention caches, by
// the rules of vLLM 0.33.0 (utils/torch_utils.py,
// transformers_utils/model_arch_config_convertor.py, and
// model_executor/layers/quantization/compressed_tensors): the entry of the file
// counts, without it that of hf_quant_config.json, and of compressed-tensors
// also that of the language model's keys.
func (c *config) declaredKV(in *config) DType {
	entry := c.quant
	if c.has("quantization_config") {
		entry = c.object("quantization_config")
	}
	if entry == nil {
		for _, o := range []*config{c, in} {
			for _, key := range []string{"compression_config", "quantization_config"} {
				if entry == nil && o.has(key) {
					entry = o.object(key)
				}
			}
		}
		if entry == nil || !entry.compressed() {
			return DefaultDType
		}
	}
	if entry.compressed() {
		return entry.compressedKV()
	}
	return entry.modeloptKV()
}

// method returns the lower-case name of the quantisation's method.
func (c *config) method() string {
	if !c.has("quant_method") {
		return ""
	}
	return strings.ReplaceAll(strings.ToLower(c.str("quant_method")), "compressed_tensors", compressedTensors)
}

const compressedTensors = "compressed-tensors"

func (c *config) compressed() bool { return c.method() == compressedTensors }

// compressedKV takes only the scheme that vLLM takes; another one would be
// another size.
func (c *config) compressedKV() DType {
	if !c.has("kv_cache_scheme") {
		return DefaultDType
	}
	s := c.object("kv_cache_scheme")
	want := func(key, value string) {
		v, ok := s.raw(key)
		if !ok {
			s.fail(key, errMissing)
		}
		if string(v) != value {
			s.fail(key, fmt.Errorf("want %s: no other scheme of a cache is known", value))
		}
	}
	want("type", `"float"`)
	want("num_bits", "8")
	want("symmetric", "true")
	if s.has("strategy") {
		if v := s.str("strategy"); v != "tensor" && v != "attn_head" {
			s.fail("strategy", fmt.Errorf(`want "tensor" or "attn_head"`))
		}
	}
	return FP8
}

// modeloptKV reads an entry that modelopt wrote. Older ones don't name the
// method, but their producer.
func (c *config) modeloptKV() DType {
	method := c.method()
	inner := c
	if c.has("quantization") {
		inner = c.object("quantization")
	}
	producer := false
	if c.has("producer") {
		p := c.object("producer")
		producer = p.has("name") && p.str("name") == "modelopt"
	}
	if (producer || inner != c && inner.has("modelopt_quant_config")) && inner != c && inner.has("quant_algo") {
		switch strings.ToUpper(inner.str("quant_algo")) {
		case "FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "MIXED_PRECISION":
			method = "modelopt"
		default:
			inner.fail("quant_algo", fmt.Errorf("is not known"))
		}
	}
	if !strings.HasPrefix(method, "modelopt") {
		return DefaultDType
	}
	for _, key := range []string{"kv_cache_scheme", "kv_cache_quant_algo"} {
		for _, o := range []*config{inner, c} {
			v, ok := o.raw(key)
			switch {
			case !ok, string(v) == `""`, string(v) == "false", string(v) == "0":
				continue
			case v[0] == '{':
				if in := o.object(key); len(in.keys) > 0 {
					return in.scheme()
				}
				continue
			}
			switch v[0] {
			case '"':
				switch strings.ToLower(o.str(key)) {
				case "fp8":
					return FP8
				case "nvfp4":
					return NVFP4
				}
			}
			return DefaultDType
		}
	}
	return DefaultDType
}

// scheme reads what modelopt says of a cache in an object.
func (c *config) scheme() DType {
	is := func(key, value string) bool {
		v, ok := c.raw(key)
		return ok && string(v) == value
	}
	switch {
	case is("dynamic", "false") && is("num_bits", "8") && is("type", `"float"`):
		return FP8
	case is("num_bits", "4") && is("type", `"float"`):
		return NVFP4
	}
	return DefaultDType
}
