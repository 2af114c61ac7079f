package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kvgate/kvgate/memory/layout"
)

// report is what is shown of a layout. Sizes are in bytes.
type report struct {
	plan *layout.Plan

	Model        string `json:"model"`
	Layout       string `json:"layout"`
	BlockTokens  int    `json:"block_tokens"`
	BlockBytes   uint64 `json:"block_bytes"`
	NeedsZeroing bool   `json:"needs_zeroing"`
	Why          string `json:"why"`

	Groups []groupReport `json:"groups"`

	Memory uint64 `json:"memory"`
	Blocks int    `json:"blocks"` // the null block included
	Unused uint64 `json:"unused"` // of the memory

	Tokens        int    `json:"tokens"` // of a request
	RequestBlocks int    `json:"request_blocks"`
	Requests      int    `json:"requests"` // that fit
	Zeroed        uint64 `json:"zeroed"`   // when its blocks are handed out
	Reset         uint64 `json:"reset"`    // of state rows

	Moves string `json:"moves,omitempty"` // of a request, from the second of two engines to the first
}

type groupReport struct {
	Kind         string       `json:"kind"`
	Window       int          `json:"window,omitempty"`
	Layers       int          `json:"layers"`
	BlockTokens  int          `json:"block_tokens"`
	KernelTokens int          `json:"kernel_tokens"`
	Pages        []pageReport `json:"pages"` // by size
	Bytes        uint64       `json:"bytes"`
	Padding      uint64       `json:"padding"` // of the bytes, those that no layer writes
	Empty        uint64       `json:"empty"`   // of a block, behind the group's pages
	Blocks       int          `json:"request_blocks"`
}

// pageReport is pages that are alike.
type pageReport struct {
	Kind  string `json:"kind"`
	Pages int    `json:"pages"`
	Bytes uint64 `json:"bytes"`
	Used  uint64 `json:"used"`
	Heads int    `json:"heads,omitempty"`
	DType string `json:"dtype"`
}

func (o options) report() (*report, error) {
	m, err := layout.Load(o.model, layout.ConfigOptions{As: o.as})
	if err != nil {
		return nil, err
	}
	if o.draft != "" {
		d, err := layout.Load(o.draft, layout.ConfigOptions{As: o.as})
		if err != nil {
			return nil, err
		}
		if m, err = m.WithDraft(d); err != nil {
			return nil, err
		}
	}
	lo, err := o.layout(m)
	if err != nil {
		return nil, err
	}
	p, err := layout.NewPlan(m, lo)
	if err != nil {
		return nil, err
	}
	r := &report{plan: p, Model: m.Name, Layout: p.String(), BlockTokens: p.BlockTokens, BlockBytes: p.BlockBytes,
		NeedsZeroing: p.NeedsZeroing, Why: p.Why, Memory: o.memory, Tokens: o.tokens}
	if r.Blocks, err = p.Blocks(o.memory); err != nil {
		return nil, fmt.Errorf("-memory %d: %w", o.memory, err)
	}
	r.Unused = o.memory - p.Size(r.Blocks)
	for g := range p.Groups {
		r.addGroup(g)
	}
	if r.RequestBlocks > 0 {
		r.Requests = (r.Blocks - 1) / r.RequestBlocks // without the null block
	}
	return r, nil
}

func (o options) layout(m *layout.Model) (lo layout.Options, err error) {
	lo = layout.Options{TP: o.tp, Rank: o.rank, PP: o.pp, Stage: o.stage, BlockTokens: o.blockTokens, RowTokens: o.rows,
		SpeculativeTokens: o.speculative, MaxTokens: o.maxTokens, Order: m.Order()}
	if o.order != "" {
		if lo.Order, err = layout.ParseOrder(o.order); err != nil {
			return lo, fmt.Errorf("-order: %w", err)
		}
	}
	if lo.KVDType, err = layout.ParseDType(o.kvDType); err != nil {
		return lo, fmt.Errorf("-kv-dtype: %w", err)
	}
	if lo.StateMode, err = layout.ParseStateMode(o.stateMode); err != nil {
		return lo, fmt.Errorf("-state-mode: %w", err)
	}
	lo.Kernel, err = parseKernel(o.kernel)
	return lo, err
}

func parseKernel(s string) (k layout.KernelBlocks, err error) {
	if s == "" {
		return k, nil
	}
	if n, ok := strings.CutSuffix(s, "+"); ok {
		if k.Multiple, err = strconv.Atoi(n); err == nil && k.Multiple > 0 {
			return k, nil
		}
		return k, fmt.Errorf("-kernel %q: want a number and +", s)
	}
	for _, n := range strings.Split(s, ",") {
		v, err := strconv.Atoi(n)
		if err != nil {
			return k, fmt.Errorf(`-kernel %q: want numbers with commas between, or one and +`, s)
		}
		k.Exact = append(k.Exact, v)
	}
	return k, nil
}

func (r *report) addGroup(g int) {
	p := r.plan
	gr := &p.Groups[g]
	out := groupReport{Kind: gr.Kind.String(), Window: gr.Window, Layers: len(gr.Pages), BlockTokens: gr.BlockTokens, KernelTokens: gr.KernelTokens,
		Pages: []pageReport{}, Bytes: gr.Bytes(), Empty: p.BlockBytes - gr.Bytes(), Blocks: p.RequestBlocks(g, r.Tokens, 1)}
	for i := range gr.Pages {
		pg := &gr.Pages[i]
		out.Padding += pg.Padding()
		like := pageReport{Kind: p.Model.Layers[pg.Layer].Kind.String(), Pages: 1, Bytes: pg.Bytes, Used: pg.Used, Heads: pg.Heads, DType: pg.DType.String()}
		if gr.Kind == layout.Recurrent {
			like.DType = pg.ConvDType.String() + " and " + pg.StateDType.String()
			if len(pg.Temporal) == 0 {
				like.DType = pg.ConvDType.String()
			}
		}
		if n := len(out.Pages); n > 0 {
			last := out.Pages[n-1]
			last.Pages = 1
			if last == like {
				out.Pages[n-1].Pages++
				continue
			}
		}
		out.Pages = append(out.Pages, like)
	}
	fill := (out.Bytes - out.Padding) * uint64(out.Blocks)
	switch {
	case gr.Kind == layout.Recurrent:
		r.Reset += fill
	case p.NeedsZeroing:
		r.Zeroed += fill
	}
	r.RequestBlocks += out.Blocks
	r.Groups = append(r.Groups, out)
}
