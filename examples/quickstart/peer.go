package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// model is a small hybrid: three recurrent layers for each of attention, twice.
// An engine reads its model with layout.LoadConfig or layout.Named.
var model = &layout.Model{Name: "small hybrid", MaxTokens: 4096, Layers: hybridLayers(2)}

func hybridLayers(n int) (layers []layout.Layer) {
	attention := layout.Layer{Kind: layout.FullAttention, KVHeads: 2, KeyDim: 64, ValueDim: 64}
	recurrent := layout.Layer{Kind: layout.Recurrent, State: &layout.State{ConvKernel: 4,
		Conv: []layout.Part{{Name: "QKV", Units: 16, Width: 32}}, Temporal: []int{8, 32, 32}, DType: layout.Float32}}
	for range n {
		layers = append(layers, recurrent, recurrent, recurrent, attention)
	}
	return layers
}

// prompt is what the prefill engine tells the decode engine about a request.
type prompt struct {
	Metadata []byte       // for Gate.AddPeer
	Blocks   [][]kv.Block // by group
	Tokens   int
}

// prefill is the other engine. It holds the prompt until it is closed.
type prefill struct {
	prompt
	gate *loadgate.Gate
}

// newPrefill computes a prompt.
func newPrefill(ctx context.Context, dev cuda.Device, o loadgate.Options, tokens int) (p *prefill, err error) {
	if o.Plan, err = layout.NewPlan(model, layout.Options{}); err != nil {
		return nil, err
	}
	o.Memory = 64 << 20
	p = &prefill{prompt: prompt{Tokens: tokens}}
	if p.gate, err = loadgate.Open(dev, o); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.gate.Close(ctx))
		}
	}()
	if p.Metadata, err = p.gate.Metadata(); err != nil {
		return p, err
	}
	r, err := p.gate.NewRequest()
	if err != nil {
		return p, err
	}
	if err := r.Grow(tokens); err != nil {
		return p, err
	}
	for g := range o.Plan.Groups {
		blocks, err := r.AppendBlocks(nil, g)
		if err != nil {
			return p, err
		}
		p.Blocks = append(p.Blocks, blocks)
	}
	step, err := p.gate.NewStep([]loadgate.Use{{Request: r, Tokens: tokens}})
	if err != nil {
		return p, err
	}
	out, err := step.Launch(func(c *loadgate.Commands) error {
		for g, blocks := range p.Blocks {
			for i, b := range blocks {
				for l := range o.Plan.Groups[g].Pages {
					s := p.gate.Arena().Page(g, l)
					c.Fill8(p.gate.Compute(), cuda.DevicePtr(s.Address(b)), prompted(g, i, l), s.Page)
				}
			}
		}
		return nil
	})
	if err != nil {
		return p, err
	}
	return p, errors.Join(p.gate.Wait(ctx, out), r.Settle(tokens))
}

// prompted is the byte that prefill leaves in a page: of layer l of group g, in the
// request's block at place i.
func prompted(g, i, l int) byte { return byte(1 + (11*g+7*i+l)%200) }

// appended is the byte that a token's step leaves.
func appended(token int) byte { return byte(201 + token%50) }

// forward stands for the engine's kernels: it writes the keys and values of a
// token, and leaves the states alone.
func forward(c *loadgate.Commands, gate *loadgate.Gate, r loadgate.Request, token int) error {
	return eachToken(gate, r, token, func(at cuda.DevicePtr, n uint64) error {
		c.Fill8(gate.Compute(), at, appended(token), n)
		return nil
	})
}

// eachToken calls f with where each attention layer keeps a token.
func eachToken(gate *loadgate.Gate, r loadgate.Request, token int, f func(cuda.DevicePtr, uint64) error) error {
	plan := gate.Arena().Plan
	for g := range plan.Groups {
		gr := &plan.Groups[g]
		if !gr.Kind.Attention() {
			continue
		}
		blocks, err := r.AppendBlocks(nil, g)
		if err != nil {
			return err
		}
		for l := range gr.Pages {
			n := gr.Pages[l].Used / uint64(gr.BlockTokens)
			s := gate.Arena().Page(g, l)
			if err := f(cuda.DevicePtr(s.Address(blocks[token/gr.BlockTokens])+n*uint64(token%gr.BlockTokens)), n); err != nil {
				return err
			}
		}
	}
	return nil
}

// check compares what the request's blocks hold with what was sent and appended;
// what is behind has to be zero.
func check(dev cuda.Device, gate *loadgate.Gate, r loadgate.Request, p prompt, answer int) error {
	plan := gate.Arena().Plan
	for g := range plan.Groups {
		gr := &plan.Groups[g]
		blocks, err := r.AppendBlocks(nil, g)
		if err != nil {
			return err
		}
		for l := range gr.Pages {
			for i, b := range blocks {
				s := gate.Arena().Page(g, l)
				have := make([]byte, gr.Pages[l].Used)
				if err := dev.Read(have, cuda.DevicePtr(s.Address(b))); err != nil {
					return err
				}
				each := len(have) / max(gr.BlockTokens, 1)
				for k, v := range have {
					want := prompted(g, i, l)
					if gr.Kind.Attention() {
						if t := i*gr.BlockTokens + k/each; t >= p.Tokens+answer {
							want = 0
						} else if t >= p.Tokens {
							want = appended(t)
						}
					}
					if v != want {
						return fmt.Errorf("group %d layer %d block %d byte %d is %#x, want %#x", g, l, b, k, v, want)
					}
				}
			}
		}
	}
	return nil
}
