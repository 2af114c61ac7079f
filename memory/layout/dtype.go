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
	// FP8MLA and NVFP4MLA are packed forms of one latent attention vector, with
	// their scales; only latent attention knows them.
	FP8MLA
	NVFP4MLA
	// FP8Index is the packed form of a latent index cache: one byte an element
	// and a 4-byte scale for each 128.
	FP8Index
)

var dtypes = []struct {
	names []string
	size  uint64 // bytes of an element; 0: packed
}{
	DefaultDType: {[]string{"auto"}, 0},
	BFloat16:     {[]string{"bfloat16", "bf16"}, 2},
	Float16:      {[]string{"float16", "fp16", "half"}, 2},
	Float32:      {[]string{"float32", "fp32", "float"}, 4},
	FP8:          {[]string{"fp8", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "float8_e5m2"}, 1},
	FP8MLA:       {[]string{"fp8_ds_mla"}, 0},
	NVFP4MLA:     {[]string{"nvfp4_ds_mla"}, 0},
	FP8Index:     {[]string{"fp8_index"}, 0},
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

// Bytes per token and layer of the packed latent forms (vLLM 0.33.0,
// model_executor/layers/attention/mla_attention.py), whatever the rank of the
// vector; and how many elements share a scale of an index cache
// (model_executor/models/deepseek_v2.py).
const (
	fp8MLABytes   = 656
	nvfp4MLABytes = 352
	indexPerScale = 128
	indexScale    = 4
)
