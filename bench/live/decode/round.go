package decode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/kv"
)

// ahead is how many steps are in flight: step n is launched before step n-1's
// output is looked at.
const ahead = 2

// request is a sequence that is decoded.
type request struct {
	prompt
	holder loadgate.Holder
	blocks []kv.Tenancy
	tokens int // that have a slot written, by steps in flight too
	last   int // tokens at its end
	ticket loadgate.Transfer
	asked  time.Duration // by the wall
	used   int           // blocks that a step has looked at, so far
	wrong  []bool        // blocks
	bad    bool
}

// round is a gate in one mode over all blocks, with an engine on it.
type round struct {
	*Machine
	meter
	gate    *loadgate.Gate
	pool    loadgate.Pool
	feeder  *feeder
	rand    *rand.Rand
	loading []*request
	running []*request
	flight  []*step      // oldest first
	asked   atomic.Int64 // when the oldest load was, by the wall; 0: there is none
	holders []loadgate.Holder
}

// step is one that has been launched.
type step struct {
	number uint32
	fence  event.Fence
	batch  int
	uses   []use // by item
	report *memory.Pinned
}

// use is a block as a step uses it.
type use struct {
	r     *request
	block int
}

// A round makes at least so many steps that count, on however slow a machine,
// unless that takes so much longer than it was to be.
const (
	leastSteps = 30
	mostExtra  = 30 * time.Second
)

// Round decodes in one mode, for d of the wall's time and at least 30 steps. What
// it returns with an error counts for nothing.
func (m *Machine) Round(ctx context.Context, mode loadgate.Mode, d time.Duration) (res Round, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &round{Machine: m, rand: rand.New(rand.NewPCG(m.cfg.Seed, 0))}
	defer func() {
		if err != nil {
			cancel(nil) // what is waited for may never come
		}
		r.feeder.close()
		cancel(nil)
		err = errors.Join(err, r.close())
	}()
	r.feeder = newFeeder(ctx, m)
	m.wall.Go("watchdog", func() { r.watch(ctx, cancel) })
	r.gate, err = loadgate.New(m.reg, m.set, loadgate.Options{Mode: mode, Log: slog.New(slog.DiscardHandler), Compute: m.compute, Agent: m.nic.Agent,
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: m.table, NeedsZero: true}}, Listener: r.listener()})
	if err != nil {
		return res, err
	}
	if r.pool, err = r.gate.Pool(0); err != nil {
		return res, err
	}
	r.latest = m.wall.Now() + d/2
	if err := r.decode(ctx, m.wall.Now()+d); err != nil {
		if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
			err = errors.Join(why, err) // that came of it
		}
		return res, err
	}
	r.HeldLoads = int(r.gate.Counters().HeldAtFirst)
	return r.meter.Round, nil
}

// decode runs steps until a time of the wall's, and lets everything come to its
// end.
func (r *round) decode(ctx context.Context, until time.Duration) error {
	for r.wall.Now() < until || r.Steps < leastSteps && r.wall.Now() < until+mostExtra {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(r.flight) == ahead {
			if err := r.process(ctx); err != nil {
				return err
			}
		}
		if err := r.arrived(); err != nil {
			return err
		}
		if err := r.step(ctx); err != nil {
			return err
		}
	}
	r.closeWindow()
	for len(r.flight) > 0 {
		if err := r.process(ctx); err != nil {
			return err
		}
	}
	for len(r.loading) > 0 {
		if err := r.loading[0].ticket.Wait(ctx); err != nil {
			return err
		}
		if err := r.arrived(); err != nil {
			return err
		}
	}
	for _, q := range r.running {
		if err := r.release(q); err != nil {
			return err
		}
	}
	r.running = nil
	return nil
}

// arrived takes in the requests whose prompts are there.
func (r *round) arrived() error {
	n := 0
	for _, q := range r.loading {
		if !q.ticket.Done() {
			r.loading[n] = q
			n++
			continue
		}
		if err := q.ticket.Err(); err != nil {
			return fmt.Errorf("the load of request %d: %w", q.request, errors.Join(err, r.nic.Err()))
		}
		r.feeder.giveBack(q.slot)
		r.running = append(r.running, q)
	}
	clear(r.loading[n:])
	r.loading = r.loading[:n]
	r.oldest()
	return nil
}

// step is the host's part of one step: who has all its tokens leaves, others come
// in, and what there is to decode is launched.
func (r *round) step(ctx context.Context) error {
	if err := r.leave(); err != nil {
		return err
	}
	grown, err := r.grow()
	if err != nil {
		return err
	}
	fresh, err := r.admit()
	if err != nil {
		return err
	}
	if len(r.running) == 0 && len(fresh) == 0 {
		return r.idle(ctx)
	}
	var plan loadgate.Step
	if len(r.running) > 0 {
		r.holders = r.holders[:0]
		for _, q := range r.running {
			r.holders = append(r.holders, q.holder)
		}
		if plan, err = r.gate.Plan(r.holders); err != nil {
			return err
		}
	}
	if err := r.zero(grown, fresh); err != nil {
		return err
	}
	if err := r.settle(ctx, fresh); err != nil {
		return err
	}
	if len(r.running) > 0 {
		if err := r.launch(plan); err != nil {
			return err
		}
	}
	for _, q := range fresh {
		if err := r.load(q); err != nil {
			return err
		}
	}
	return r.gate.EndStep()
}

// leave lets go of the requests that have all their tokens, though the step that
// writes the last ones may still be under way.
func (r *round) leave() error {
	n := 0
	for _, q := range r.running {
		if q.tokens < q.last {
			r.running[n] = q
			n++
			continue
		}
		if err := r.release(q); err != nil {
			return err
		}
	}
	clear(r.running[n:])
	r.running = r.running[:n]
	return nil
}

func (r *round) release(q *request) error {
	if err := r.gate.Drop(q.holder); err != nil {
		return err
	}
	return r.pool.Free(q.blocks)
}

// grow gives a block to each request whose next token begins one.
func (r *round) grow() (grown []kv.Tenancy, err error) {
	for _, q := range r.running {
		if q.tokens%r.cfg.BlockTokens != 0 || q.tokens/r.cfg.BlockTokens < len(q.blocks) {
			continue
		}
		had := len(q.blocks)
		if q.blocks, err = r.pool.Alloc(1, q.blocks); err != nil {
			return nil, fmt.Errorf("a block for an answer: %w", err)
		}
		if err := r.gate.Append(q.holder, 0, q.blocks[had:]); err != nil {
			return nil, err
		}
		q.wrong = append(q.wrong, false)
		grown = append(grown, q.blocks[had:]...)
	}
	return grown, nil
}

// admit takes in requests until there are as many as there are to be, or no
// prompt is ready.
func (r *round) admit() (fresh []*request, err error) {
	for len(r.running)+len(r.loading)+len(fresh) < r.cfg.Requests {
		p, ok, err := r.feeder.take()
		if err != nil || !ok {
			return fresh, err
		}
		q := &request{prompt: p, tokens: r.cfg.PromptBlocks * r.cfg.BlockTokens, wrong: make([]bool, r.cfg.PromptBlocks)}
		q.last = q.tokens + r.cfg.shortest() + r.rand.IntN(r.cfg.longest()-r.cfg.shortest()+1)
		if q.blocks, err = r.pool.Alloc(r.cfg.PromptBlocks, nil); err != nil {
			return nil, fmt.Errorf("blocks for a prompt: %w", err)
		}
		if q.holder, err = r.gate.Hold(0, q.blocks); err != nil {
			return nil, err
		}
		fresh = append(fresh, q)
	}
	return fresh, nil
}

// zero asks for the zeroing of what the step uses first, and then of what loads
// will fill.
func (r *round) zero(grown []kv.Tenancy, fresh []*request) error {
	if len(grown) > 0 {
		if err := r.gate.Zero(loadgate.ZeroRequest{Tenancies: grown}); err != nil {
			return err
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := r.gate.Flush(); err != nil {
		return err
	}
	for _, q := range fresh {
		if err := r.gate.Zero(loadgate.ZeroRequest{Tenancies: q.blocks, Covered: true}); err != nil {
			return err
		}
	}
	return r.gate.Flush()
}

// settle waits, in the modes in which the host does, until loads may leave.
func (r *round) settle(ctx context.Context, fresh []*request) error {
	if w := r.gate.Mode().Wait; len(fresh) == 0 || w != core.HostDevice && w != core.HostBlocks {
		return nil
	}
	var ts []kv.Tenancy
	for _, q := range fresh {
		ts = append(ts, q.blocks...)
	}
	begin := r.clk.Now()
	err := r.gate.WaitBlocks(ctx, 0, ts)
	r.blocked(r.clk.Now() - begin)
	return err
}

// load hands in the load of a request's prompt.
func (r *round) load(q *request) error {
	t, err := r.nic.Fetch(q.slot, func(i, segment int) uint64 { return r.pages.Address(segment, q.blocks[i].Block) })
	if err != nil {
		return err
	}
	if q.ticket, err = r.gate.Load(q.holder, t); err != nil {
		return errors.Join(err, t.Close())
	}
	r.Loads++
	r.LoadedBytes += uint64(len(q.blocks)) * r.cfg.BlockBytes()
	q.asked = r.wall.Now()
	r.loading = append(r.loading, q)
	r.oldest()
	return nil
}

// idle waits where there is nothing to decode: for the oldest step, a load or a
// prompt.
func (r *round) idle(ctx context.Context) error {
	r.pause()
	switch {
	case len(r.flight) > 0:
		return r.process(ctx)
	case len(r.loading) > 0:
		if err := r.gate.EndStep(); err != nil {
			return err
		}
		return r.waitLoad(ctx)
	}
	err := r.wall.WaitUntil(ctx, r.feeder.any(), r.wall.Now()+r.patience)
	if err != nil && ctx.Err() == nil {
		return errors.Join(fmt.Errorf("no prompt has been made ready for %v", r.patience), r.nic.Kill())
	}
	return err
}

// waitLoad waits for the oldest load; what became of it is for arrived to say.
func (r *round) waitLoad(ctx context.Context) error {
	q := r.loading[0]
	if err := q.ticket.Wait(ctx); err != nil && !q.ticket.Done() {
		return err
	}
	return nil
}
