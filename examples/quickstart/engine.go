package main

import (
	"context"
	"errors"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/layout"
)

// decode serves a request whose prompt another engine has computed: it loads the
// prompt's cache, and appends a token with each step from there on.
func decode(ctx context.Context, dev cuda.Device, o loadgate.Options, p prompt, answer int) (err error) {
	if o.Plan, err = layout.NewPlan(model, layout.Options{}); err != nil {
		return err
	}
	o.Memory = 64 << 20
	gate, err := loadgate.Open(dev, o) // o has the agent
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gate.Close(ctx)) }()
	peer, err := gate.AddPeer(ctx, p.Metadata)
	if err != nil {
		return err
	}
	request, err := gate.NewRequest()
	if err != nil {
		return err
	}
	if err := request.GrowTo(loadgate.Room{Tokens: p.Tokens, Loaded: p.Tokens}); err != nil {
		return err
	}
	tokens := layout.TokenRange{To: p.Tokens}
	load, err := request.Load(loadgate.TransferSpec{Peers: []loadgate.Peer{peer}, Blocks: p.Blocks, Tokens: tokens})
	if err != nil {
		return err
	}
	if err := load.Wait(ctx); err != nil { // an engine serves other requests meanwhile
		return err
	}
	for t := p.Tokens; t < p.Tokens+answer; t++ {
		if err := request.Grow(t + 1); err != nil {
			return err
		}
		step, err := gate.NewStep([]loadgate.Use{{Request: request, Tokens: 1}})
		if err != nil {
			return err
		}
		out, err := step.Launch(func(c *loadgate.Commands) error { return forward(c, gate, request, t) })
		if err != nil {
			return err
		}
		if err := errors.Join(gate.Wait(ctx, out), request.Settle(1)); err != nil {
			return err
		}
	}
	return errors.Join(check(dev, gate, request, p, answer), request.Close())
}
