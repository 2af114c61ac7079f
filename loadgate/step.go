package loadgate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/stream"
)

// Plan declares a step: the holders whose blocks it will touch and, beside
// them, single tenancies. It costs O(holders). The plan has to be closed by
// [Gate.Submit], by [Gate.Start] and [Gate.Finish], or by [Gate.GiveUp]; until
// then none of its blocks is given to a new owner.
func (g *Gate) Plan(holders []Holder, extra ...Access) (Plan, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.Plan(holders, extra)
}

// GiveUp closes a plan whose step was not launched and never will be.
func (g *Gate) GiveUp(p Plan) error {
	g.mu.Lock()
	defer g.unlock()
	err := g.core.GiveUp(p)
	if err == nil {
		g.started = slices.DeleteFunc(g.started, func(s started) bool { return s.plan == p })
	}
	g.act()
	return err
}

// Submit launches a planned step in one crossing: the zeroing that is due, the
// waits for what the step's own blocks need, what launch adds to the batch, and
// a mark on each of the streams. Without streams it is the gate's compute
// stream. The fence is that of the first stream.
//
// It refuses blocks whose load is unfinished ([core.ErrLoading]) or did not
// arrive ([core.ErrLost]), and bytes that are being sent ([core.ErrSending]).
// When it refuses, when launch fails, and when nothing of the step reached its
// streams, the plan is open as before. When a part did, the plan is closed and
// the error a *[cuda.SubmitError].
//
// launch adds commands, waits and marks to the batch, and does nothing else with
// it. It must not call the gate.
func (g *Gate) Submit(p Plan, launch func(*stream.Batch) error, streams ...*stream.Stream) (event.Fence, error) {
	g.mu.Lock()
	defer g.unlock()
	streams, err := g.orOwn(streams)
	if err != nil {
		return event.Fence{}, err
	}
	if err := g.begin(p, streams); err != nil {
		return event.Fence{}, err
	}
	b := g.batch
	first := b.Len()
	if launch != nil {
		if err := g.fill(p, launch, streams); err != nil {
			return event.Fence{}, err
		}
	}
	last := b.Len()
	g.mark(streams)
	err = g.submit(b)
	if err == nil {
		err = g.core.Submitted(p, g.points...)
		g.act()
		return g.marks[0], err
	}
	var se *cuda.SubmitError
	if !errors.As(err, &se) || se.Index <= first && first < last {
		g.must(g.core.Unbegin(p))
		g.act()
		return event.Fence{}, err
	}
	// Some of it runs, and its marks are not all recorded: later ones cover them.
	for _, s := range streams {
		g.unmarked(s)
	}
	g.must(g.core.Submitted(p, g.points...))
	g.act()
	return g.marks[0], err
}

// fill lets the engine add the step's commands. When that fails, panics or
// takes the batch away from under the gate, everything is as before.
func (g *Gate) fill(p Plan, launch func(*stream.Batch) error, streams []*stream.Stream) (err error) {
	uses, filled := g.batch.Uses(), false
	defer func() {
		if !filled {
			g.abandon()
			g.must(g.core.Unbegin(p))
			g.act()
		}
	}()
	if err := launch(g.batch); err != nil {
		return err
	}
	filled = true
	if g.batch.Uses() != uses {
		return g.usurped(p, streams)
	}
	return nil
}

// usurped sorts out what became of a batch that the engine's function reset or
// submitted by itself. If the step may run, its plan is closed behind a fresh
// mark.
func (g *Gate) usurped(p Plan, streams []*stream.Stream) error {
	ran := false
	for i := range g.fences {
		l := &g.fences[i]
		switch l.fence.State() {
		case event.Recorded, event.Fired:
			ran = true
			g.noteLaunch(l)
			g.must(g.core.Launched(l.id, l.fence.Point()))
		default:
			g.launches = append(g.launches, l.id)
		}
	}
	g.fences = g.fences[:0]
	spent := g.batch.Spent()
	g.batch.Reset()
	if !ran && !spent {
		g.must(g.core.Unbegin(p))
		g.act()
		return fmt.Errorf("loadgate: the step's function reset the batch: %w", core.ErrInvalid)
	}
	g.mark(streams)
	if err := g.batch.Submit(); err != nil {
		for _, s := range streams {
			g.unmarked(s)
		}
	}
	g.must(g.core.Submitted(p, g.points...))
	g.act()
	return fmt.Errorf("loadgate: the step's function submitted the batch; its plan is closed: %w", core.ErrInvalid)
}

// mark adds a mark on each stream of a step to the batch.
func (g *Gate) mark(streams []*stream.Stream) {
	g.marks, g.points = g.marks[:0], g.points[:0]
	for _, s := range streams {
		f := g.batch.Record(s)
		g.marks = append(g.marks, f)
		g.points = append(g.points, f.Point())
	}
}

// Start prepares a planned step that is launched by other means than a batch: a
// graph, or an engine's own calls. It submits the zeroing that is due and the
// waits for what the step needs; the step is then launched on the streams, and
// [Gate.Finish] called at once, since what is asked for in between waits for it.
func (g *Gate) Start(p Plan, streams ...*stream.Stream) error {
	g.mu.Lock()
	defer g.unlock()
	streams, err := g.orOwn(streams)
	if err != nil {
		return err
	}
	if err := g.begin(p, streams); err != nil {
		return err
	}
	if err := g.submit(g.batch); err != nil {
		g.must(g.core.Unbegin(p))
		g.act()
		return err
	}
	g.started = append(g.started, started{p, append([]*stream.Stream(nil), streams...)})
	return nil
}

// started is a step between Start and Finish.
type started struct {
	plan    Plan
	streams []*stream.Stream
}

// finishes refuses to finish a step that was not started, or without a mark on
// each of the streams that it was started on.
func (g *Gate) finishes(p Plan, streams []*stream.Stream) error {
	for i := range g.started {
		if g.started[i].plan != p {
			continue
		}
		for _, s := range g.started[i].streams {
			if !slices.Contains(streams, s) {
				return fmt.Errorf("loadgate: finish %v: it was started on %v too: %w", p, s, core.ErrInvalid)
			}
		}
		g.started = slices.Delete(g.started, i, i+1)
		return nil
	}
	return fmt.Errorf("loadgate: finish %v: it was not started: %w", p, core.ErrState)
}

// Finish marks the streams of a step that [Gate.Start] began, and closes its
// plan. An error says that a mark could not be recorded; the plan is closed all
// the same, and a later mark covers it.
func (g *Gate) Finish(p Plan, streams ...*stream.Stream) (event.Fence, error) {
	g.mu.Lock()
	defer g.unlock()
	streams, err := g.orOwn(streams)
	if err != nil {
		return event.Fence{}, err
	}
	if err := g.finishes(p, streams); err != nil {
		return event.Fence{}, err
	}
	g.batch.Reset()
	g.mark(streams)
	if err := g.core.Submitted(p, g.points...); err != nil {
		g.batch.Reset()
		return event.Fence{}, err
	}
	err = g.submit(g.batch)
	if err != nil {
		for _, s := range streams {
			g.unmarked(s)
		}
	}
	return g.marks[0], err
}

// orOwn returns the streams of a step: the gate's own where none is named.
func (g *Gate) orOwn(streams []*stream.Stream) ([]*stream.Stream, error) {
	if len(streams) == 0 {
		g.own[0] = g.compute
		return g.own[:], nil
	}
	for i, s := range streams {
		if s == nil {
			return nil, fmt.Errorf("loadgate: stream %d of the step is nil: %w", i, core.ErrInvalid)
		}
	}
	return streams, nil
}

// begin fills the batch up to where the step's own commands go.
func (g *Gate) begin(p Plan, streams []*stream.Stream) error {
	if err := g.ready("submit"); err != nil {
		return err
	}
	err := g.core.Prepare(p)
	g.act()
	if err != nil {
		return err
	}
	waits, before, err := g.core.Begin(p)
	if err != nil {
		return err
	}
	for _, s := range streams {
		g.streams[s.ID()] = s
	}
	b := g.batch
	b.Reset()
	err = g.addLaunches(b)
	for _, s := range streams {
		if err != nil {
			break
		}
		if err = g.addWaits(b, s, waits); err != nil {
			break
		}
		for i := range g.fences {
			for _, id := range before {
				if g.fences[i].id == id && err == nil {
					err = b.Wait(s, g.fences[i].fence)
				}
			}
		}
	}
	if err == nil && len(before) > 0 {
		err = g.allLaunched(before)
	}
	if err != nil {
		g.abandon()
		g.must(g.core.Unbegin(p))
		g.act()
	}
	return err
}

// allLaunched makes sure that the launches which a step needs are in the batch.
func (g *Gate) allLaunched(ids []core.LaunchID) error {
	for _, id := range ids {
		found := false
		for i := range g.fences {
			found = found || g.fences[i].id == id
		}
		if !found {
			return fmt.Errorf("loadgate: launch %d of the step's zeroing: %w", id, core.ErrUnready)
		}
	}
	return nil
}

// abandon empties a batch that is not submitted. Its launches are still to be
// carried out.
func (g *Gate) abandon() {
	for i := range g.fences {
		g.launches = append(g.launches, g.fences[i].id)
	}
	g.fences = g.fences[:0]
	g.batch.Reset()
}

// EndStep says that a step's work and its loads have been handed over. In
// [core.StepFIFO] it is the moment when held loads are looked at.
func (g *Gate) EndStep() error {
	g.mu.Lock()
	defer g.unlock()
	if err := g.ready("end step"); err != nil {
		return err
	}
	err := g.flush()
	g.core.EndStep()
	g.act()
	return err
}

// Settle blocks, in the modes in which the host waits, until loads into the
// given blocks may go out: [core.FullSync] waits for the whole device,
// [core.EventSync] for the blocks' zeroing and last uses. In the other modes it
// returns at once. Call it between the zeroing of a step that has loads and the
// step's launch.
func (g *Gate) Settle(ctx context.Context, p kv.PoolID, ts []kv.Tenancy) error {
	switch g.Mode().Wait {
	case core.HostDevice:
		if err := g.Flush(); err != nil {
			return err
		}
		if err := g.reg.Device().Sync(ctx); err != nil {
			return err
		}
		_, err := g.Progress(0)
		return err
	case core.HostBlocks:
		for {
			f, err := g.newest(p, ts)
			if err != nil || f == (event.Fence{}) {
				return err
			}
			if err := g.WaitFence(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// newest returns a fence that work on the blocks has yet to pass, or none.
func (g *Gate) newest(p kv.PoolID, ts []kv.Tenancy) (event.Fence, error) {
	g.mu.Lock()
	defer g.unlock()
	if err := g.catchUp(); err != nil {
		return event.Fence{}, err
	}
	if err := g.flush(); err != nil {
		return event.Fence{}, err
	}
	points, err := g.core.Uses(p, ts)
	if err != nil || len(points) == 0 {
		return event.Fence{}, err
	}
	return g.reg.Fence(points[len(points)-1])
}

// Flush launches what waits to be launched.
func (g *Gate) Flush() error {
	g.mu.Lock()
	defer g.unlock()
	if err := g.ready("flush"); err != nil {
		return err
	}
	return g.flush()
}
