package decode

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/kvgate/kvgate/bench/live/standin"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/loadgate"
)

// launch launches a step of all running requests: what they have is checked, and
// each gets a token.
func (r *round) launch(plan loadgate.Step) error {
	r.steps++
	st := &step{number: r.steps, batch: len(r.running), report: r.reports[int(r.steps)%len(r.reports)]}
	var items []standin.Item
	tokens := r.cfg.BlockTokens
	for _, q := range r.running {
		for b, t := range q.blocks {
			items = append(items, standin.Item{Block: t.Block, Request: q.request, Position: uint32(b * tokens),
				End: uint16(min(tokens, max(q.tokens-b*tokens, 0)))})
			st.uses = append(st.uses, use{q, b})
		}
		if q.used == 0 {
			r.Requests++
		}
		r.Blocks += len(q.blocks) - q.used
		q.used = len(q.blocks)
	}
	checked := len(items)
	for _, q := range r.running {
		b := q.tokens / tokens
		at := uint16(q.tokens % tokens)
		items = append(items, standin.Item{Block: q.blocks[b].Block, Request: q.request, Position: uint32(b * tokens), First: at, End: at + 1})
	}
	slot, err := r.staging.Take(len(items) * standin.ItemBytes)
	if err != nil {
		return err
	}
	standin.PutItems(slot.Host, items)
	report, err := st.report.At(0, uint64(8*checked*r.cfg.Segments))
	if err != nil {
		return err
	}
	st.fence, err = plan.Launch(func(b *loadgate.Commands) error {
		s := r.compute.Handle()
		return b.Typed(func(b *cuda.Batch) error {
			r.standin.Check(b, s, r.pages, slot.Device, checked, st.number, report, r.cfg.Step)
			r.standin.Write(b, s, r.pages, slot.Device+cuda.DevicePtr(checked*standin.ItemBytes), len(items)-checked)
			return nil
		})
	})
	if err != nil {
		return err
	}
	if err := r.staging.Release(slot, st.fence); err != nil {
		return err
	}
	for _, q := range r.running {
		q.tokens++
	}
	r.flight = append(r.flight, st)
	return nil
}

// process waits for the oldest step in flight, and takes in what it saw.
func (r *round) process(ctx context.Context) error {
	st := r.flight[0]
	if err := r.gate.Wait(ctx, st.fence); err != nil {
		return err
	}
	r.flight = append(r.flight[:0], r.flight[1:]...)
	r.over(st.batch)
	words := st.report.Host()
	for i, u := range st.uses {
		for s := range r.cfg.Segments {
			number, wrong := standin.Report(binary.LittleEndian.Uint64(words[8*(i*r.cfg.Segments+s):]))
			if number != st.number {
				return fmt.Errorf("step %d did not look at page %d of block %d of request %d", st.number, s, u.block, u.r.request)
			}
			if wrong {
				r.wrong(u)
			}
		}
	}
	return nil
}

// wrong counts a block that was not as it should be, once.
func (r *round) wrong(u use) {
	if u.r.wrong[u.block] {
		return
	}
	u.r.wrong[u.block] = true
	r.CorruptedBlocks++
	if !u.r.bad {
		u.r.bad = true
		r.CorruptedRequests++
	}
}
