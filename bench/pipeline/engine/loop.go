package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
)

// How the host's own time in a step is spent: scheduling, before the step's
// zeroing is submitted, and preparing its inputs, between that (or the wait for
// it) and the launch, which the loads follow at once.
const (
	hostBefore = 0.7
	hostAfter  = 0.3
)

// inFlight steps: the host launches step n before it looks at step n-1's output.
const ahead = 2

// idlePoll is how often an engine without work in a step looks for loads.
const idlePoll = 100 * time.Microsecond

type engine struct {
	machine
	scheduler
	meter
	cfg         *Config
	mode        loadgate.Mode
	outstanding int
	defers      bool
	start       time.Duration

	steps         map[uint64]*step // not processed, by number
	launchedSteps int
	inFlight      []*step
	holders       []loadgate.Holder // scratch
	tickets       map[loadgate.Transfer]*load
	news          []loadgate.Ended                    // scratch
	early         map[loadgate.Transfer]time.Duration // left before they were known
}

// Run replays the trace once in one mode. Runs are independent of each other
// and may be made at the same time.
func Run(ctx context.Context, cfg Config, mode loadgate.Mode) (r Result, err error) {
	n, err := cfg.Outstanding()
	if err != nil {
		return r, err
	}
	e := &engine{cfg: &cfg, mode: mode, outstanding: n, defers: cfg.Defer.in(mode),
		steps: map[uint64]*step{}, tickets: map[loadgate.Transfer]*load{}, early: map[loadgate.Transfer]time.Duration{}}
	e.known = map[prefix]*cell{}
	e.shares = true
	for i := range cfg.Plan.Groups {
		e.shares = e.shares && cfg.Plan.Groups[i].Kind.Attention()
	}
	t := cfg.Trace
	e.requests = make([]request, len(t.Requests))
	for i := range t.Requests {
		e.requests[i] = request{trace: &t.Requests[i], late: fraction(cfg.Seed+lateSalt, uint64(i)) < cfg.Late}
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if err = e.build(mode); err != nil {
		return r, err
	}
	e.start = e.clk.Now()
	if err = e.loop(ctx); err != nil {
		return r, fmt.Errorf("%v: %w", mode, err)
	}
	if err = e.dev.Sync(ctx); err != nil {
		return r, err
	}
	return e.result(), e.zeroing.check()
}

const lateSalt = 0x6c617465

func (e *engine) loop(ctx context.Context) error {
	for {
		if len(e.inFlight) == ahead {
			if err := e.process(ctx); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		e.issue()
		if err := e.arrived(); err != nil {
			return err
		}
		st := &step{n: e.launchedSteps}
		e.holders = e.holders[:0]
		appended, err := e.schedule(st)
		if err != nil {
			return err
		}
		fresh, err := e.admit()
		if err != nil {
			return err
		}
		switch {
		case len(st.entries) > 0 || len(fresh) > 0:
			err = e.step(ctx, st, appended, fresh)
		case len(e.inFlight) > 0:
			err = e.process(ctx)
		case e.over == len(e.requests):
			return nil
		default:
			err = e.idle(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// process waits for the oldest step in flight and takes in its output.
func (e *engine) process(ctx context.Context) error {
	st := e.inFlight[0]
	if err := e.gate.Wait(ctx, st.fence); err != nil {
		return err
	}
	e.inFlight = append(e.inFlight[:0], e.inFlight[1:]...)
	delete(e.steps, uint64(st.n))
	if err := e.output(st); err != nil {
		return err
	}
	return e.undefer(st.n)
}

// idle lets time pass when no step can be made: to the next arrival, or in
// short steps while loads are under way.
func (e *engine) idle(ctx context.Context) error {
	e.meter.pause()
	switch {
	case len(e.loading) > 0:
		if err := e.clk.Sleep(ctx, idlePoll); err != nil {
			return err
		}
		if _, err := e.gate.Progress(0); err != nil {
			return err
		}
		return e.gate.EndStep()
	case len(e.waiting) == 0 && e.next < len(e.requests) && e.cfg.Rate > 0:
		return e.clk.Sleep(ctx, max(e.arrival(e.next)-e.clk.Now(), 0))
	}
	return fmt.Errorf("engine: stuck with %d requests waiting, %d running, %v", len(e.waiting), len(e.running), e.pool.Counters())
}

// step is the host's part of one step, from its plan on.
func (e *engine) step(ctx context.Context, st *step, appended []kv.Tenancy, fresh []*sequence) error {
	batch := len(st.entries)
	var plan loadgate.Step
	var err error
	if batch > 0 {
		if plan, err = e.gate.Plan(e.holders); err != nil {
			return err
		}
		e.meter.batch = max(e.meter.batch, batch)
	}
	if err := e.clk.Sleep(ctx, time.Duration(hostBefore*float64(e.cfg.Host))); err != nil {
		return err
	}
	if err := e.zeroNew(appended, fresh); err != nil {
		return err
	}
	if len(fresh) > 0 {
		if err := e.settle(ctx, fresh, batch > 0); err != nil {
			return err
		}
	}
	if err := e.clk.Sleep(ctx, time.Duration(hostAfter*float64(e.cfg.Host))); err != nil {
		return err
	}
	if batch > 0 {
		e.steps[uint64(st.n)] = st
		if st.fence, err = plan.Launch(e.launch(st)); err != nil {
			return err
		}
		e.meter.asked = append(e.meter.asked, e.clk.Now())
		e.launchedSteps++
		e.inFlight = append(e.inFlight, st)
	}
	return e.handOver(fresh)
}

// zeroNew submits the zeroing that the step needs, and then that for loads.
func (e *engine) zeroNew(appended []kv.Tenancy, fresh []*sequence) error {
	if err := e.zero(appended, false); err != nil {
		return err
	}
	if err := e.gate.Flush(); err != nil {
		return err
	}
	whole, part := e.covered(fresh)
	if err := errors.Join(e.zero(whole, true), e.zero(part, false)); err != nil {
		return err
	}
	return e.gate.Flush()
}

// settle waits, in the modes in which the host does, until loads may leave.
func (e *engine) settle(ctx context.Context, fresh []*sequence, launches bool) error {
	var ts []kv.Tenancy
	for _, s := range fresh {
		if s.load != nil {
			ts = append(ts, s.load.blocks...)
		}
	}
	if len(ts) == 0 {
		return nil
	}
	e.meter.blocks(e.clk.Now(), launches)
	err := e.gate.WaitBlocks(ctx, 0, ts)
	e.meter.unblocks(e.clk.Now())
	return err
}

// handOver gives a step's loads to the gate and ends the step. Those that are
// to fail do so here: their blocks are zeroed, if they were not for the load's
// sake, and when that was launched their requests are canceled.
func (e *engine) handOver(fresh []*sequence) error {
	var asked []*load
	for _, s := range fresh {
		if s.load == nil {
			continue
		}
		if s.cancel {
			if e.mode.Coverage == core.ZeroUncovered {
				if err := e.zero(s.load.blocks, false); err != nil {
					return err
				}
			}
			continue
		}
		if err := e.ask(s.load); err != nil {
			return err
		}
		asked = append(asked, s.load)
	}
	if err := e.gate.EndStep(); err != nil {
		return err
	}
	for _, l := range asked {
		if l.left == 0 {
			l.noted = true
			e.meter.heldLoads++
		}
	}
	for _, s := range fresh {
		if s.cancel {
			if err := e.cancel(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask hands a load to the gate.
func (e *engine) ask(l *load) error {
	if err := e.prefill.open(l); err != nil {
		return err
	}
	tr, err := e.agent.NewTransfer(e.spec(l))
	if err != nil {
		return err
	}
	l.asked = e.clk.Now()
	t, err := e.gate.Load(l.seq.holder, tr)
	if err != nil {
		return errors.Join(err, tr.Close())
	}
	l.ticket = t
	e.tickets[t] = l
	l.left = e.early[t]
	delete(e.early, t)
	e.meter.loads++
	e.meter.loaded += float64(len(l.entries)) * float64(e.cache.held) * float64(e.cache.scale())
	return nil
}

// left is told when the gate lets a load go.
func (e *engine) left(i loadgate.TransferInfo) {
	now := e.clk.Now()
	l := e.tickets[i.Transfer]
	if l == nil {
		e.early[i.Transfer] = now
		return
	}
	l.left = now
	if l.noted {
		e.meter.holds = append(e.meter.holds, now-l.asked)
	}
}

// cancel ends a sequence whose load has failed.
func (e *engine) cancel(s *sequence) error {
	for i, have := range e.loading {
		if have == s {
			e.loading = append(e.loading[:i], e.loading[i+1:]...)
			break
		}
	}
	e.lates++
	if err := e.giveBack(s, false); err != nil {
		return err
	}
	e.ended()
	return nil
}
