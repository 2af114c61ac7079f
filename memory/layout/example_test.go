package layout_test

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/layout"
)

// A hybrid model by hand: three recurrent layers for each of attention.
func ExampleNewPlan() {
	attention := layout.Layer{Kind: layout.FullAttention, KVHeads: 2, KeyDim: 256, ValueDim: 256}
	recurrent := layout.Layer{Kind: layout.Recurrent, State: &layout.State{
		ConvKernel: 4,
		Conv:       []layout.Part{{Name: "Q", Units: 16, Width: 128}, {Name: "K", Units: 16, Width: 128}, {Name: "V", Units: 32, Width: 128}},
		Temporal:   []int{32, 128, 128},
		DType:      layout.Float32,
	}}
	m := &layout.Model{Name: "small hybrid", MaxTokens: 32768}
	for range 2 {
		m.Layers = append(m.Layers, recurrent, recurrent, recurrent, attention)
	}
	p, err := layout.NewPlan(m, layout.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.BlockTokens, "tokens,", p.BlockBytes, "bytes a block")
	for _, g := range p.Groups {
		fmt.Printf("%v: %d layers, pages of %d bytes, %d of them padding\n", g.Kind, len(g.Pages), g.Pages[0].Bytes, g.Pages[0].Padding())
	}
	fmt.Println(p.NeedsZeroing)
	// Output:
	// 1056 tokens, 4325376 bytes a block
	// recurrent: 2 layers, pages of 2162688 bytes, 16384 of them padding
	// recurrent: 2 layers, pages of 2162688 bytes, 16384 of them padding
	// recurrent: 2 layers, pages of 2162688 bytes, 16384 of them padding
	// full attention: 2 layers, pages of 2162688 bytes, 0 of them padding
	// true
}
