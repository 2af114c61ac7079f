package engine

import "github.com/kvgate/kvgate/memory/layout"

// Builtin is a hybrid model: of 40 layers each fourth attends, and the others
// keep a state of linear attention. A state takes as much as the KV of about
// 1,050 tokens. It is no model that exists.
func Builtin() *layout.Model {
	m := &layout.Model{Name: "built-in hybrid", Architecture: "none", DType: layout.BFloat16, MaxTokens: 1 << 18}
	for i := range 40 {
		if i%4 == 3 {
			m.Layers = append(m.Layers, layout.Layer{Kind: layout.FullAttention, KVHeads: 2, KeyDim: 256, ValueDim: 256})
			continue
		}
		m.Layers = append(m.Layers, layout.Layer{Kind: layout.Recurrent, State: &layout.State{
			ConvKernel: 4, Conv: []layout.Part{{Name: "q", Units: 16, Width: 128}, {Name: "k", Units: 16, Width: 128}, {Name: "v", Units: 32, Width: 128}},
			Temporal: []int{32, 128, 128}, DType: layout.Float32}})
	}
	return m
}
