package scenario

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate"
)

var zeroFence event.Fence

var stepVerbs = []*verb{
	{name: "plan", help: "declare a step over holders; extra: bytes of single blocks that it writes beside",
		args: []arg{{name: "plan", kind: newPlan}, {name: "holders", kind: holderList}},
		opts: []arg{{name: "extra", kind: blockList}, {name: "bytes", kind: byteRange}}, run: (*run).plan},
	{name: "submit", help: "launch a planned step, which reads all its blocks (or reads=) and writes its number into bytes of others",
		args: []arg{{name: "plan", kind: aPlan}},
		opts: []arg{{name: "for", kind: duration}, {name: "reads", kind: blockList}, {name: "writes", kind: blockList}, {name: "bytes", kind: byteRange}},
		run:  (*run).submit},
	{name: "give-up", help: "close a plan that is not launched", args: []arg{{name: "plan", kind: aPlan}}, run: (*run).giveUp},
	{name: "end-step", help: "the step's work and loads have been handed over", run: (*run).endStep},
	{name: "settle", help: "where the host waits, it waits here until loads into the blocks may go; load does it too",
		args: []arg{{name: "blocks", kind: blockList}}, run: (*run).settleBlocks},
}

func (r *run) plan(st *statement) (string, error) {
	r.number++
	p := &plan{number: r.number}
	var hs []loadgate.Holder
	for _, name := range list(st.args[1].word) {
		h, err := r.holder(name)
		if err != nil {
			return "", err
		}
		hs = append(hs, h.h)
		p.holders = append(p.holders, h)
	}
	extra, err := r.cells(st.opts["extra"].blocks)
	if err != nil {
		return "", err
	}
	bytes := whole
	if st.has("bytes") {
		bytes = st.opts["bytes"].bytes
	}
	var as []loadgate.Access
	for _, c := range extra {
		as = append(as, loadgate.Access{Tenancy: c.t, Range: bytes, Write: true})
	}
	p.extra, p.bytes = extra, bytes
	if p.p, err = r.rig.Gate.Plan(hs, as...); err != nil {
		return "", refusal(err)
	}
	r.plans[st.args[0].word] = p
	r.alias(p.p.String(), st.args[0].word)
	return "", nil
}

// cells returns the blocks that a plan names.
func (p *plan) cells() []*cell {
	var cells []*cell
	for _, h := range p.holders {
		for _, c := range h.cells {
			if !slices.Contains(cells, c) {
				cells = append(cells, c)
			}
		}
	}
	for _, c := range p.extra {
		if !slices.Contains(cells, c) {
			cells = append(cells, c)
		}
	}
	return cells
}

// holds reports whether a holder of the plan has the block.
func (p *plan) holds(c *cell) bool {
	return slices.ContainsFunc(p.holders, func(h *holder) bool { return slices.Contains(h.cells, c) })
}

func (r *run) submit(st *statement) (string, error) {
	name := st.args[0].word
	p, ok := r.plans[name]
	if !ok {
		return "", fmt.Errorf("%w: there is no %s", errSkipped, name)
	}
	uses := p.cells()
	reads := uses
	var err error
	if st.has("reads") {
		if reads, err = r.cells(st.opts["reads"].blocks); err != nil {
			return "", err
		}
	}
	writes, err := r.cells(st.opts["writes"].blocks)
	if err != nil {
		return "", err
	}
	s := &step{r: r, name: name, takes: r.time(st.opts["for"].d), number: stepSeed.Add(1)}
	if s.writer, err = r.writer(name); err != nil {
		return "", err
	}
	bytes := whole
	if st.has("bytes") {
		bytes = st.opts["bytes"].bytes
	}
	if bytes.End() > blockBytes {
		return "", fmt.Errorf("a block has %d bytes", blockBytes)
	}
	// The gate's call shows the device the past up to here; transfers that
	// are over by then count.
	if _, err := r.rig.Gate.Progress(0); err != nil {
		return "", refusal(err)
	}
	r.settle()
	var late []func()
	for _, c := range uses {
		b := &stepBlock{c: c, want: slices.Clone(c.want)}
		if c.dirty { // the gate zeroes it before the step
			for i := range b.want {
				b.want[i] = zeroed
			}
			late = append(late, c.zeroed)
		}
		if !p.holds(c) { // it says nothing of the other bytes
			for i := range b.want {
				if at := uint64(i); at < p.bytes.Off || at >= p.bytes.End() {
					b.want[i] = anyByte
				}
			}
		}
		if !slices.Contains(reads, c) {
			for i := range b.want {
				b.want[i] = anyByte
			}
		}
		if slices.Contains(writes, c) {
			b.writes = bytes
			late = append(late, func() {
				c.set(bytes, s.writer)
				r.sentAfter(p.number, c, bytes, s.writer)
			})
		}
		s.blocks = append(s.blocks, b)
	}
	steps.Store(s.number, s)
	r.launched = append(r.launched, s.number)
	p.fence, err = p.p.Launch(func(b *loadgate.Commands) error {
		binary.LittleEndian.PutUint64(b.Launch(r.rig.Compute, r.rig.step, one, 8), s.number)
		return nil
	})
	if err != nil && p.fence == zeroFence {
		steps.Delete(s.number)
		return "", refusal(err)
	}
	for _, do := range late {
		do()
	}
	return "", refusal(err)
}

func (r *run) giveUp(st *statement) (string, error) {
	p, ok := r.plans[st.args[0].word]
	if !ok {
		return "", fmt.Errorf("%w: there is no %s", errSkipped, st.args[0].word)
	}
	return "", refusal(p.p.Abandon())
}

func (r *run) endStep(*statement) (string, error) { return "", refusal(r.rig.Gate.EndStep()) }

func (r *run) settleBlocks(st *statement) (string, error) {
	cells, err := r.cells(st.args[0].blocks)
	if err != nil {
		return "", err
	}
	return "", refusal(r.within(limit, func(ctx context.Context) error {
		return r.rig.Gate.WaitBlocks(ctx, 0, tenancies(cells))
	}))
}
