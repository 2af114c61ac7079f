package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/stream"
)

// Steps is what a step costs the host's thread.
type Steps struct {
	Simulated bool      `json:"simulated"`
	Device    string    `json:"device"`
	Rows      []StepRow `json:"rows"`
}

// StepRow is one thing that is done in each step.
type StepRow struct {
	What string `json:"what"`
	Host Late   `json:"host"`
	// Crossings are calls into C, of a step.
	Crossings float64 `json:"crossings"`
}

// The rows of the table.
const (
	stepSubmit = "submit of launch, record and wait"
	stepPoll   = "poll of 4 marks"
	stepGate   = "gate: step of 32 requests, nothing new"
	stepZero   = "gate: step of 32 requests, 8 blocks zeroed"
)

// StepRows are the rows in each table.
var StepRows = []string{stepSubmit, stepPoll, stepGate, stepZero}

// drainEvery is after how many steps the device is let to run empty.
const drainEvery = 32

// Step measures what a step costs the host of the device that o names.
func Step(ctx context.Context, w io.Writer, o driver.Options) (r *Steps, err error) {
	d, err := driver.Open(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	i := d.Info()
	n := 10_000
	if i.Simulated {
		n = 200
	}
	r = &Steps{Simulated: i.Simulated, Device: i.Name}
	label(w, r.Device, r.Simulated)
	fmt.Fprintf(w, "%-45s %26s %10s\n", "the host's time for a step, in microseconds", "p50/p99/most (n)", "crossings")
	for _, measure := range []func(context.Context, *driver.Device, int, *Steps) error{rawSteps, gateSteps} {
		had := len(r.Rows)
		if err := measure(ctx, d, n, r); err != nil {
			return nil, err
		}
		for _, row := range r.Rows[had:] {
			h := row.Host
			fmt.Fprintf(w, "%-45s %26s %10.2f\n", row.What, fmt.Sprintf("%.2f/%.2f/%.1f (%d)", h.P50, h.P99, h.Max, h.N), row.Crossings)
		}
	}
	return r, nil
}

// times calls do n times and books a row; drain is called now and then, outside
// the time.
func (r *Steps) times(what string, clk cuda.Clock, n int, do, drain func() error) error {
	var ns []int64
	crossings := int64(0)
	for i := range n + drainEvery { // the first are to warm up
		before, start := runtime.NumCgoCall(), clk.Now()
		err := do()
		took := clk.Now() - start
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if i >= drainEvery {
			ns = append(ns, int64(took))
			crossings += runtime.NumCgoCall() - before
		}
		if i%drainEvery == drainEvery-1 {
			if err := drain(); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	r.Rows = append(r.Rows, StepRow{What: what, Host: lateOf(ns), Crossings: float64(crossings) / float64(n)})
	return nil
}

// rawSteps are those of the device alone.
func rawSteps(ctx context.Context, d *driver.Device, n int, r *Steps) (err error) {
	e, err := newEngine(d, 64, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	gate, err := d.NewStream(cuda.StreamOptions{Name: "zeroing", HighPriority: true})
	if err != nil {
		return err
	}
	compute, err := d.NewStream(cuda.StreamOptions{Name: "steps"})
	if err != nil {
		return err
	}
	table, err := kernels.NewTable(d, e.table)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.Close(), d.DestroyStream(gate), d.DestroyStream(compute)) }()
	marks := make([]cuda.Mark, 4)
	for i := range marks {
		if marks[i].Event, err = d.NewEvent(); err != nil {
			return err
		}
		defer d.DestroyEvent(marks[i].Event)
	}
	ids := make([]kv.Block, 56)
	for i := range ids {
		ids[i] = kv.Block(1 + i)
	}
	var b cuda.Batch
	if err := e.set.ZeroBlocks(&b, gate, table, ids); err != nil {
		return err
	}
	b.Record(gate, marks[0].Event)
	b.WaitEvent(compute, marks[0].Event)
	drain := func() error { return d.Sync(ctx) }
	if err := r.times(stepSubmit, d.Clock(), n, func() error { return d.Submit(&b) }, drain); err != nil {
		return err
	}
	return r.times(stepPoll, d.Clock(), n, func() error { return d.Poll(marks) }, drain)
}

// gateSteps are those of an engine: 32 requests of 4 blocks each.
func gateSteps(ctx context.Context, d *driver.Device, n int, r *Steps) (err error) {
	const requests, each, fresh = 32, 4, 8
	e, err := newEngine(d, requests*each+(drainEvery+2)*fresh*2, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	var holders []loadgate.Holder
	for range requests {
		h, _, err := e.admit(each)
		if err != nil {
			return err
		}
		holders = append(holders, h)
	}
	work := func(b *stream.Batch) error {
		b.Fill32(e.compute, e.base, 0, 1)
		return nil
	}
	step := func(hs []loadgate.Holder) error {
		plan, err := e.gate.Plan(hs)
		if err != nil {
			return err
		}
		if _, err := e.gate.Submit(plan, work); err != nil {
			return err
		}
		if err := e.gate.EndStep(); err != nil {
			return err
		}
		_, err = e.gate.Progress(0)
		return err
	}
	var left []loadgate.Holder
	var theirs []kv.Tenancy
	drain := func() error {
		if err := d.Sync(ctx); err != nil {
			return err
		}
		if _, err := e.gate.Progress(0); err != nil {
			return err
		}
		for _, h := range left {
			if err := e.gate.Drop(h); err != nil {
				return err
			}
		}
		if err := e.pool.Free(theirs); err != nil {
			return err
		}
		left, theirs = left[:0], theirs[:0]
		return nil
	}
	if err := r.times(stepGate, d.Clock(), n, func() error { return step(holders) }, drain); err != nil {
		return err
	}
	err = r.times(stepZero, d.Clock(), n, func() error {
		h, ts, err := e.admit(fresh)
		if err != nil {
			return err
		}
		left, theirs = append(left, h), append(theirs, ts...)
		return step(append(holders[:requests:requests], h))
	}, drain)
	if err != nil {
		return err
	}
	left = append(left, holders...)
	return drain()
}

// admit takes blocks for a request, and has them zeroed.
func (e *engine) admit(n int) (loadgate.Holder, []kv.Tenancy, error) {
	ts, err := e.pool.Alloc(n, nil)
	if err != nil {
		return 0, nil, err
	}
	h, err := e.gate.Hold(0, ts)
	if err != nil {
		return 0, nil, err
	}
	return h, ts, e.gate.Zero(loadgate.ZeroRequest{Tenancies: ts})
}
