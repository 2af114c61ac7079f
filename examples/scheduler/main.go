// Scheduler is an engine of two tensor-parallel ranks with a prefix cache,
// admission and speculation. The ranks share a ledger: each call is made on the
// gate of each rank, in the same order, and a request has equal block ids on both.
//
//	go run ./examples/scheduler
//
// The devices are simulated, and the steps do nothing: what is shown is which
// blocks requests get, share and give back.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/stream"
)

const (
	ranks   = 2
	blocks  = 24 // of 16 tokens
	system  = 64 // tokens that each prompt begins with
	prompt  = 90 // tokens in all
	answer  = 20
	drafted = 3 // tokens that a step guesses beyond the next one
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scheduler:", err)
		os.Exit(1)
	}
}

// engine has a gate and a stream for each rank.
type engine struct {
	w       io.Writer
	gates   []*loadgate.Gate
	streams []*stream.Stream
	prefix  []loadgate.Kept // of the first tokens, on each rank
	waiting int             // times that a request was not admitted
	shared  int             // tokens that were not computed anew
}

// request is one request on all ranks.
type request struct {
	on     []loadgate.Request
	tokens int // settled
}

func run(ctx context.Context, w io.Writer) (err error) {
	model := &layout.Model{Name: "two layers", MaxTokens: 4096, Layers: []layout.Layer{
		{Kind: layout.FullAttention, KVHeads: 2, KeyDim: 16, ValueDim: 16},
		{Kind: layout.FullAttention, KVHeads: 2, KeyDim: 16, ValueDim: 16}}}
	plan, err := layout.NewPlan(model, layout.Options{TP: ranks})
	if err != nil {
		return err
	}
	ledger, err := loadgate.PlanLedger(ranks, plan, plan.Size(blocks))
	if err != nil {
		return err
	}
	e := &engine{w: w}
	for rank := range ranks {
		end, err2 := e.open(ctx, ledger, model, rank)
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	if err := e.serve(ctx, 6); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d times there was no room for another request; %d tokens were shared, not computed\n", e.waiting, e.shared)
	for _, k := range e.prefix {
		if err := k.Close(); err != nil {
			return err
		}
	}
	for rank, g := range e.gates {
		pool, err := g.Pool(0)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "rank %d: %d of %d blocks are used\n", rank, pool.Counters().Used, blocks-1)
	}
	return nil
}

// open makes the gate of a rank.
func (e *engine) open(ctx context.Context, ledger *loadgate.Ledger, model *layout.Model, rank int) (end func() error, err error) {
	plan, err := layout.NewPlan(model, layout.Options{TP: ranks, Rank: rank})
	if err != nil {
		return nil, err
	}
	dev, err := sim.New(sim.Options{})
	if err != nil {
		return nil, err
	}
	g, err := loadgate.Open(dev, loadgate.Options{Plan: plan, Memory: plan.Size(blocks), Ledger: ledger, Rank: rank})
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	// Steps go to a stream of the engine's own.
	s, err := stream.New(g.Registry(), cuda.StreamOptions{Name: fmt.Sprintf("rank %d", rank)})
	if err != nil {
		return nil, errors.Join(err, g.Close(ctx), dev.Close())
	}
	e.gates, e.streams = append(e.gates, g), append(e.streams, s)
	return func() error { return errors.Join(s.Sync(ctx), s.Close(), g.Close(ctx), dev.Close()) }, nil
}

// serve admits requests as long as there is room, and runs steps of all of them.
func (e *engine) serve(ctx context.Context, n int) error {
	var running []*request
	for queued := n; queued > 0 || len(running) > 0; {
		for queued > 0 {
			r, err := e.admit(ctx, running)
			if errors.Is(err, loadgate.ErrFull) {
				e.waiting++
				break
			}
			if err != nil {
				return err
			}
			running = append(running, r)
			queued--
		}
		if len(running) == 0 {
			return fmt.Errorf("a pool of %d blocks is too small for one request", blocks)
		}
		if err := e.decode(ctx, running); err != nil {
			return err
		}
		for _, r := range running {
			if r.tokens < prompt+answer {
				continue
			}
			for _, on := range r.on {
				if err := on.Close(); err != nil {
					return err
				}
			}
		}
		running = slices.DeleteFunc(running, func(r *request) bool { return r.tokens >= prompt+answer })
	}
	return nil
}

// admit makes a request and computes its prompt. It is ErrFull where the pool has
// no room for it now, whole, beside those that run.
func (e *engine) admit(ctx context.Context, running []*request) (*request, error) {
	r := &request{}
	for rank, g := range e.gates {
		on, err := g.NewRequest()
		if err == nil && len(e.prefix) > 0 {
			err = on.Adopt(e.prefix[rank])
		}
		if err != nil {
			return nil, err
		}
		r.on = append(r.on, on)
	}
	// Those that run must not run out of room either.
	total, free := 0, 0
	for _, q := range slices.Concat(running, []*request{r}) {
		need, have, _, err := e.gates[0].CanGrow(q.on[0], prompt+answer+drafted)
		if err != nil {
			return nil, err
		}
		total, free = total+need, have
	}
	if total > free {
		for _, on := range r.on {
			if err := on.Close(); err != nil {
				return nil, err
			}
		}
		return nil, loadgate.ErrFull
	}
	t, err := r.on[0].Tokens()
	if err != nil {
		return nil, err
	}
	e.shared += t.Settled
	r.tokens = t.Settled
	// The system prompt by itself, so that it can be kept; then the rest.
	for _, to := range []int{system, prompt} {
		if to <= r.tokens {
			continue
		}
		if err := e.step(ctx, []*request{r}, []int{to - r.tokens}, []int{to - r.tokens}, 0); err != nil {
			return nil, err
		}
		if to != system {
			continue
		}
		for _, on := range r.on {
			k, err := on.Keep(system)
			if err != nil {
				return nil, err
			}
			e.prefix = append(e.prefix, k)
		}
	}
	return r, e.sameIDs(r)
}

// decode runs a speculative step of all requests.
func (e *engine) decode(ctx context.Context, rs []*request) error {
	var planned, accepted []int
	for i, r := range rs {
		planned = append(planned, 1+drafted)
		accepted = append(accepted, min(1+(r.tokens+i)%(1+drafted), prompt+answer-r.tokens))
	}
	return e.step(ctx, rs, planned, accepted, drafted)
}

// step runs a step on each rank, and settles it.
func (e *engine) step(ctx context.Context, rs []*request, planned, accepted []int, lookahead int) error {
	outs := make([]event.Fence, len(e.gates))
	for rank, g := range e.gates {
		var uses []loadgate.Use
		for i, r := range rs {
			room := loadgate.Room{Tokens: r.tokens + planned[i] - lookahead, Lookahead: lookahead}
			if err := r.on[rank].GrowTo(room); err != nil {
				return err
			}
			uses = append(uses, loadgate.Use{Request: r.on[rank], Tokens: planned[i]})
		}
		step, err := g.NewStep(uses)
		if err != nil {
			return err
		}
		if outs[rank], err = step.Launch(nil, e.streams[rank]); err != nil {
			return err
		}
	}
	for rank, g := range e.gates {
		if err := g.Wait(ctx, outs[rank]); err != nil {
			return err
		}
		for i, r := range rs {
			if err := r.on[rank].Settle(accepted[i]); err != nil {
				return err
			}
		}
	}
	for i, r := range rs {
		r.tokens += accepted[i]
	}
	return nil
}

// sameIDs says that a request has other blocks on one rank than on another.
func (e *engine) sameIDs(r *request) error {
	first, err := r.on[0].AppendBlocks(nil, 0)
	if err != nil {
		return err
	}
	for _, on := range r.on[1:] {
		have, err := on.AppendBlocks(nil, 0)
		if err != nil {
			return err
		}
		if !slices.Equal(first, have) {
			return fmt.Errorf("blocks %v on one rank, %v on another", first, have)
		}
	}
	fmt.Fprintf(e.w, "%v has blocks %v on each rank\n", r.on[0], first)
	return nil
}
