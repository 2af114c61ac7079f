package layout

import "fmt"

// DType is how a cache stores its elements.
type DType uint8

const (
	// DefaultDType stands for the dtype that the surrounding type documents.
	DefaultDType DType = iota
	BFloat16           // bfloat16, 2 bytes
	Float16            // IEEE 754 half precision, 2 bytes
	Float32            // IEEE 754 single precision, 4 bytes
	FP8                // 8-bit floating point, e4m3 or e5m2, 1 byte
	// INT8 is an 8-bit integer with one scale a layer, 1 byte.
	INT8
	// FP8PerTokenHead and INT8PerTokenHead have a scale of 4 bytes for each key
	// and value of a head, stored behind them.
	FP8PerTokenHead
	INT8PerTokenHead
	// NVFP4 has two elements in a byte, and a scale of one byte for 16 of them.
	NVFP4
	// FP8MLA and NVFP4MLA are packed forms of one latent attention vector, with
	// their scales; only latent attention knows them.
	FP8MLA
	NVFP4MLA
	// FP8MLAV4 is DeepSeek-V4's packed form: 448 elements in fp8, 64 in 16 bits
	// and 8 bytes of scales, which follow those of the other vectors of a block.
	FP8MLAV4
	// FP8Index is the packed form of a sparse index: one byte an element
	// and a 4-byte scale for each 128.
	FP8Index
)

var dtypes = []struct {
	names []string
	size  uint64 // bytes of an element; 0: packed
}{
	DefaultDType:     {[]string{"auto"}, 0},
	BFloat16:         {[]string{"bfloat16", "bf16"}, 2},
	Float16:          {[]string{"float16", "fp16", "half"}, 2},
	Float32:          {[]string{"float32", "fp32", "float"}, 4},
	FP8:              {[]string{"fp8", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "float8_e5m2"}, 1},
	INT8:             {[]string{"int8"}, 1},
	FP8PerTokenHead:  {[]string{"fp8_per_token_head"}, 0},
	INT8PerTokenHead: {[]string{"int8_per_token_head"}, 0},
	NVFP4:            {[]string{"nvfp4"}, 0},
	FP8MLA:           {[]string{"fp8_ds_mla"}, 0},
	NVFP4MLA:         {[]string{"nvfp4_ds_mla"}, 0},
	FP8MLAV4:         {[]string{"fp8_ds_mla_v4"}, 0},
	FP8Index:         {[]string{"fp8_index"}, 0},
}

// ParseDType reads the name of a dtype as configurations and engines spell it
// ("bfloat16", "fp8", "fp8_ds_mla"). "auto" and "" give [DefaultDType]. The
// error wraps [ErrOptions].
func ParseDType(name string) (DType, error) {
	if name == "" {
		return DefaultDType, nil
	}
	for d, e := range dtypes {
		for _, n := range e.names {
			if n == name {
				return DType(d), nil
			}
		}
	}
	return DefaultDType, optionFault("unknown dtype %q", name)
}

func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype %d", uint8(d))
	}
	return dtypes[d].names[0]
}

// size returns the bytes of one element, 0 for the packed forms.
func (d DType) size() uint64 {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// caches reports whether an engine can ask for attention caches of d.
func (d DType) caches() bool { return int(d) < len(dtypes) && d != FP8Index && d != FP8MLAV4 }

// Bytes per token and layer of the packed latent forms (vLLM 0.33.0,
// model_executor/layers/attention/mla_attention.py), whatever the rank of the
// vector; how many elements share a scale of an index cache
// (model_executor/models/deepseek_v2.py); and the scales of the packed forms of
// keys and values (v1/attention/backends/triton_attn.py, utils/torch_utils.py).
const (
	fp8MLABytes   = 656
	nvfp4MLABytes = 352
	indexPerScale = 128
	indexScale    = 4
	tokenScale    = 4
	nvfp4PerScale = 16
)

// vector returns the bytes of one vector of so many elements, 0 where the form
// does not say or can't hold so many.
func (d DType) vector(elements int) uint64 {
	n := uint64(elements)
	switch d {
	case FP8PerTokenHead, INT8PerTokenHead:
		return n + tokenScale
	case NVFP4:
		if n%nvfp4PerScale != 0 {
			return 0
		}
		return n/2 + n/nvfp4PerScale
	case FP8MLA:
		return fp8MLABytes
	case NVFP4MLA:
		return nvfp4MLABytes
	case FP8MLAV4:
		return v4Row + v4Scales
	case FP8Index:
		return n + n/indexPerScale*indexScale
	}
	return n * d.size()
}
