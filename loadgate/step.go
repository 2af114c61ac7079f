package loadgate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/stream"
)

// Step is one step's use of blocks, from the moment the scheduler names them
// until its work is in the streams or it is abandoned. It is closed by
// [Step.Launch], by [Step.Begin] and [Step.End], or by [Step.Abandon]; until
// then none of its blocks is given to a new owner.
//
// A Step is a value. A step that is over is refused with [ErrStale].
type Step struct {
	g    *Gate
	plan core.Plan
}

// openStep is what the gate knows of a step that is not closed.
type openStep struct {
	plan    core.Plan
	since   time.Duration
	streams []*stream.Stream // while it is begun
	uses    []stepUse        // of [Gate.NewStep]
	wrote   bool             // block tables
}

// closed returns the slot of a step that is over, with its memory.
func (o *openStep) closed() openStep {
	return openStep{streams: o.streams[:0], uses: o.uses[:0]}
}

// StepInfo describes an open step.
type StepInfo struct {
	Step  Step
	Age   time.Duration // since it was planned
	Begun bool          // between Begin and End
}

func (s Step) String() string { return s.plan.String() }

// Plan declares a step: the holders whose blocks it will touch and, beside
// them, single tenancies. It costs O(holders).
func (g *Gate) Plan(holders []Holder, extra ...Access) (Step, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.openStep(holders, extra)
}

func (g *Gate) openStep(holders []Holder, extra []Access) (Step, error) {
	p, err := g.core.Plan(holders, extra)
	if err != nil {
		return Step{}, err
	}
	for p.Slot() >= len(g.steps) {
		g.steps = append(g.steps, openStep{})
	}
	o := &g.steps[p.Slot()]
	o.plan, o.since, o.streams = p, g.clk.Now(), o.streams[:0]
	return Step{g, p}, nil
}

// OpenSteps appends the steps that are not closed to dst, in no order.
func (g *Gate) OpenSteps(dst []StepInfo) []StepInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clk.Now()
	for i := range g.steps {
		if o := &g.steps[i]; o.plan != 0 {
			dst = append(dst, StepInfo{Step: Step{g, o.plan}, Age: now - o.since, Begun: len(o.streams) > 0})
		}
	}
	return dst
}

// gate returns the step's gate, locked.
func (s Step) gate(op string) (*Gate, error) {
	if s.g == nil {
		return nil, fmt.Errorf("loadgate: %s: the zero Step: %w", op, core.ErrInvalid)
	}
	s.g.mu.Lock()
	return s.g, nil
}

// Abandon closes a step whose work was not launched and never will be.
func (s Step) Abandon() error {
	g, err := s.gate("abandon")
	if err != nil {
		return err
	}
	defer g.unlock()
	return g.abandonStep(s.plan)
}

func (g *Gate) abandonStep(p core.Plan) error {
	if err := g.core.GiveUp(p); err != nil {
		return err
	}
	o := &g.steps[p.Slot()]
	if o.wrote {
		g.tablesFailed(o.uses)
	}
	g.stepOver(p, o.uses, false)
	*o = o.closed()
	g.act()
	return nil
}

// Launch launches the step in one crossing: the zeroing that is due, the waits
// for what the step's own blocks need, what add adds, and a mark on each of the
// streams. Without streams it is the gate's compute stream. The fence is that of
// the first stream.
//
// The step is over when Launch returns. An error means that nothing of it was
// launched, unless it is a *[cuda.SubmitError] and the fence is set: then a part
// of the step runs, and its blocks are kept until the streams are past it.
// Launch refuses blocks whose load is unfinished ([ErrLoading]) or did not
// arrive ([ErrLost]), and bytes that are being sent ([ErrSending]).
//
// add may be nil. It is called without any lock of the gate's, before the gate
// looks at the step: what it adds is thrown away when the launch is refused.
// When it returns an error or panics, the step is abandoned.
func (s Step) Launch(add func(*Commands) error, streams ...*stream.Stream) (event.Fence, error) {
	g := s.g
	if g == nil {
		return event.Fence{}, fmt.Errorf("loadgate: launch: the zero Step: %w", core.ErrInvalid)
	}
	streams, err := g.orOwn(streams)
	if err != nil {
		return event.Fence{}, s.refuse(err)
	}
	var c *Commands
	if add != nil {
		if c = g.spare.Swap(nil); c == nil {
			c = &Commands{}
		}
		defer g.spare.Store(c)
		c.reset(streams)
		if err := s.fill(c, add); err != nil {
			return event.Fence{}, err
		}
	}
	g.mu.Lock()
	defer g.unlock()
	return g.launch(s.plan, c, streams)
}

// refuse closes a step that is not launched, because of err.
func (s Step) refuse(err error) error {
	s.g.mu.Lock()
	defer s.g.unlock()
	return s.g.refuse(s.plan, err)
}

// refuse closes a step that is not launched, because of err.
func (g *Gate) refuse(p core.Plan, err error) error {
	if g.core.PlanOpen(p) {
		g.must(g.abandonStep(p))
	}
	return err
}

// fill calls the step's function, without the lock. When that fails or panics
// the step is over.
func (s Step) fill(c *Commands, add func(*Commands) error) (err error) {
	filled := false
	defer func() {
		if !filled || err != nil {
			err = s.refuse(err)
		}
	}()
	if err = add(c); err == nil {
		err = c.err
	}
	filled = true
	return err
}

func (g *Gate) launch(p core.Plan, c *Commands, streams []*stream.Stream) (event.Fence, error) {
	if err := g.begin(p, streams); err != nil {
		return event.Fence{}, err
	}
	b := g.batch
	first := b.Len()
	if c != nil {
		if err := c.addTo(b); err != nil {
			g.abandon()
			return event.Fence{}, g.refuse(p, err)
		}
	}
	last := b.Len()
	g.mark(streams)
	err := g.submit(b)
	if err != nil {
		var se *cuda.SubmitError
		if !errors.As(err, &se) || se.Index <= first && first < last {
			return event.Fence{}, g.refuse(p, err)
		}
		g.tablesFailed(g.steps[p.Slot()].uses)
		// Some of it runs, and its marks are not all recorded: later ones cover them.
		for _, s := range streams {
			g.unmarked(s)
		}
	}
	g.submitted(p)
	return g.marks[0], err
}

// submitted closes a step whose marks are g.points.
func (g *Gate) submitted(p core.Plan) {
	g.must(g.core.Submitted(p, g.points...))
	o := &g.steps[p.Slot()]
	g.tablesRead(o.uses, g.points)
	g.stepOver(p, o.uses, true)
	*o = o.closed()
	g.act()
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

// Begin prepares a step that is launched by other means than [Step.Launch]: a
// graph, a library, an engine's own calls. It submits the zeroing that is due
// and the waits for what the step needs. The step's work is then put into the
// streams, and [Step.End] called at once: loads and zeroing of its blocks wait
// for that. Without streams it is the gate's compute stream.
//
// When Begin returns an error, the step is over.
func (s Step) Begin(streams ...*stream.Stream) error {
	g, err := s.gate("begin")
	if err != nil {
		return err
	}
	defer g.unlock()
	if streams, err = g.orOwn(streams); err != nil {
		return g.refuse(s.plan, err)
	}
	if err := g.begin(s.plan, streams); err != nil {
		return err
	}
	if err := g.submit(g.batch); err != nil {
		return g.refuse(s.plan, err)
	}
	o := &g.steps[s.plan.Slot()]
	o.streams = append(o.streams[:0], streams...)
	g.tablesBegun(o.uses)
	return nil
}

// End says that the work of a step is in the streams that it was begun on. It
// records a mark on each; the fence is that of the first. The step is over,
// also when a mark could not be recorded: then later marks cover it.
func (s Step) End() (event.Fence, error) {
	g, err := s.gate("end")
	if err != nil {
		return event.Fence{}, err
	}
	defer g.unlock()
	if !g.core.PlanOpen(s.plan) {
		return event.Fence{}, fmt.Errorf("loadgate: end %v: it is over: %w", s, core.ErrStale)
	}
	o := &g.steps[s.plan.Slot()]
	if len(o.streams) == 0 {
		return event.Fence{}, fmt.Errorf("loadgate: end %v: it was not begun: %w", s, core.ErrState)
	}
	g.batch.Reset()
	g.mark(o.streams)
	err = g.submit(g.batch)
	if err != nil {
		for _, s := range o.streams {
			g.unmarked(s)
		}
	}
	g.submitted(s.plan)
	return g.marks[0], err
}

// orOwn returns the streams of a step: the gate's own where none is named.
func (g *Gate) orOwn(streams []*stream.Stream) ([]*stream.Stream, error) {
	if len(streams) == 0 {
		return g.own[:], nil
	}
	for i, s := range streams {
		switch {
		case s == nil:
			return nil, fmt.Errorf("loadgate: stream %d of the step is nil: %w", i, core.ErrInvalid)
		case s.Registry() != g.reg:
			return nil, fmt.Errorf("loadgate: %v of the step belongs to another registry: %w", s, core.ErrInvalid)
		case s.Closed():
			return nil, fmt.Errorf("loadgate: %v of the step: %w", s, cuda.ErrClosed)
		case slices.Contains(streams[:i], s):
			return nil, fmt.Errorf("loadgate: %v of the step is listed twice: %w", s, core.ErrInvalid)
		}
	}
	return streams, nil
}

// begin fills the batch up to where the step's own commands go. On an error the
// step is over.
func (g *Gate) begin(p core.Plan, streams []*stream.Stream) error {
	if err := g.ready("launch"); err != nil {
		return g.refuse(p, err)
	}
	err := g.core.Prepare(p)
	g.act()
	if err != nil {
		return g.refuse(p, err)
	}
	waits, before, err := g.core.Begin(p)
	if err != nil {
		return g.refuse(p, err)
	}
	for _, s := range streams {
		if err := g.core.CheckLine(s.ID()); err != nil {
			return g.refuse(p, fmt.Errorf("%w (%v)", err, s))
		}
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
	if o := &g.steps[p.Slot()]; err == nil && len(o.uses) > 0 {
		o.wrote, err = g.addTables(b, o.uses, streams)
	}
	if err != nil {
		g.abandon()
		return g.refuse(p, err)
	}
	return nil
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
// [StepFIFO] it is the moment when held loads are looked at.
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

// Flush launches what waits to be launched.
func (g *Gate) Flush() error {
	g.mu.Lock()
	defer g.unlock()
	if err := g.ready("flush"); err != nil {
		return err
	}
	return g.flush()
}
