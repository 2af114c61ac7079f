package layout_test

import (
	"encoding/json"
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
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

// A request has 40 tokens here and is to have 100: what a load of the others
// touches in its blocks, and what of them it leaves to be zeroed.
func ExamplePlan_Cover() {
	m := &layout.Model{Name: "one layer", Layers: []layout.Layer{{Kind: layout.FullAttention, KVHeads: 2, KeyDim: 64, ValueDim: 64}}}
	p, err := layout.NewPlan(m, layout.Options{BlockTokens: 32, Order: layout.LBHNC})
	if err != nil {
		fmt.Println(err)
		return
	}
	var c layout.Cover
	if err := p.Cover(&c, 0, layout.TokenRange{From: 40, To: 100}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("blocks %d to %d, wholly %d to %d\n", c.First, c.End-1, c.WholeFirst, c.WholeEnd-1)
	for _, b := range c.Parts {
		fmt.Printf("block %d, tokens %v: bytes %v, not %v\n", b.Index, b.Tokens, b.Bytes, b.Rest)
	}
	// Output:
	// blocks 1 to 3, wholly 2 to 2
	// block 1, tokens [8,32): bytes [[2048,8192) [10240,16384)], not [[0,2048) [8192,10240)]
	// block 3, tokens [0,4): bytes [[0,1024) [8192,9216)], not [[1024,8192) [9216,16384)]
}

// The runs of bytes of a load from a peer: its first block is here already.
func ExamplePairing() {
	m := &layout.Model{Name: "two layers", Layers: []layout.Layer{
		{Kind: layout.FullAttention, KVHeads: 1, KeyDim: 64, ValueDim: 64}, {Kind: layout.FullAttention, KVHeads: 1, KeyDim: 64, ValueDim: 64}}}
	p, err := layout.NewPlan(m, layout.Options{})
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	check(err)
	ours, err := p.Place(0x10000, 8)
	check(err)
	theirs, err := p.Place(0x80000, 100)
	check(err)
	told, err := json.Marshal(theirs.Description())
	check(err)

	peer, err := layout.ParseDescription(told)
	check(err)
	pairing, err := layout.NewPairing(ours, peer)
	check(err)
	var moves layout.Moves
	check(pairing.Moves(&moves, &layout.Transfer{Tokens: layout.TokenRange{From: 16, To: 48},
		Groups: []layout.GroupBlocks{{Local: []kv.Block{5, 2, 3}, Remote: []kv.Block{40, 41, 42}}}}))
	for _, mv := range moves.Peers[0] {
		fmt.Printf("%d bytes from %#x to %#x\n", mv.Len, mv.Remote, mv.Local)
	}
	// Output:
	// 8192 bytes from 0xa9000 to 0x12000
	// 8192 bytes from 0x10d000 to 0x1a000
}
