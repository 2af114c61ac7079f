package main

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// moves says what one rank of the first engine reads of a request that the
// second has.
func (r *report) moves(other options) string {
	ours, theirs := r.plan, r.other(other)
	if theirs.err != nil {
		return fmt.Sprintf("a request can't move: %v", theirs.err)
	}
	local, lists := place(ours, r.Tokens, 1<<36)
	var peers []*layout.Description
	var remote [][]kv.Block
	for i, p := range theirs.plans {
		a, blocks := place(p, r.Tokens, uint64(i+1)<<44)
		peers = append(peers, a.Description())
		remote = blocks
	}
	pairing, err := layout.NewPairing(local, peers...)
	if err != nil {
		return fmt.Sprintf("a request can't move: %v", err)
	}
	t := &layout.Transfer{Tokens: layout.TokenRange{To: r.Tokens}}
	for g := range lists {
		t.Groups = append(t.Groups, layout.GroupBlocks{Local: lists[g], Remote: remote[g]})
	}
	var m layout.Moves
	if err := pairing.Moves(&m, t); err != nil {
		return fmt.Sprintf("a request can't move: %v", err)
	}
	moves, bytes := 0, uint64(0)
	for _, list := range m.Peers {
		moves += len(list)
		for _, mv := range list {
			bytes += mv.Len
		}
	}
	read, told := pairing.Sources()
	return fmt.Sprintf("rank %d of the first reads a request of the second: %d bytes in %d moves, from ranks %v; ranks %v are told only",
		ours.Options.Rank, bytes, moves, theirs.names(read), theirs.names(told))
}

// engine is all ranks of an engine, stage by stage.
type engine struct {
	plans []*layout.Plan
	err   error
}

func (r *report) other(o options) (e engine) {
	for o.stage = range o.pp {
		for o.rank = range o.tp {
			lo, err := o.layout(r.plan.Model)
			if err != nil {
				return engine{err: err}
			}
			p, err := layout.NewPlan(r.plan.Model, lo)
			if err != nil {
				return engine{err: err}
			}
			e.plans = append(e.plans, p)
		}
	}
	return e
}

// names are stage and rank, or the rank alone where there is one stage.
func (e *engine) names(which []int) []string {
	names := []string{}
	for _, i := range which {
		o := &e.plans[i].Options
		name := fmt.Sprint(o.Rank)
		if o.PP > 1 {
			name = fmt.Sprintf("%d.%d", o.Stage, o.Rank)
		}
		names = append(names, name)
	}
	return names
}

// place puts a plan somewhere, with blocks for one request, and returns these by
// group: those that the request still needs.
func place(p *layout.Plan, tokens int, base uint64) (*layout.Arena, [][]kv.Block) {
	lists := make([][]kv.Block, len(p.Groups))
	next := kv.Block(1)
	for g := range p.Groups {
		gr := &p.Groups[g]
		n, from := (tokens+gr.BlockTokens-1)/max(gr.BlockTokens, 1), p.Live(g, tokens).From
		if gr.Kind == layout.Recurrent && p.Options.StateMode == layout.StateNone {
			n, from = 1, 0
		}
		for i := range n {
			b := kv.Pad
			if gr.Kind == layout.Recurrent && (i == n-1) || gr.Kind != layout.Recurrent && (i+1)*gr.BlockTokens > from {
				b, next = next, next+1
			}
			lists[g] = append(lists[g], b)
		}
	}
	a, err := p.Place(base, int(next))
	if err != nil {
		panic(err) // bases and numbers of blocks are ours
	}
	return a, lists
}
