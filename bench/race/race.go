package main

import (
	"context"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
)

// request is what an engine keeps of a request: its blocks, and that it holds
// them.
type request struct {
	blocks []kv.Tenancy
	holder loadgate.Holder
}

// round is one round of the race. It returns how many blocks of a request did
// not have the content that another machine sent when a step used them.
func (m *machine) round(ctx context.Context) (corrupted int, err error) {
	if err := m.depart(); err != nil {
		return 0, err
	}
	r, err := m.arrive(ctx)
	if err != nil {
		return 0, err
	}
	return m.use(ctx, r)
}

// depart frees blocks as an engine does that schedules ahead: those of a
// request whose step has yet to run and will write them, and those of a request
// that is aborted when its zeroing has been launched behind that step.
func (m *machine) depart() error {
	running, err := m.admit(leaving, false)
	if err != nil {
		return err
	}
	plan, err := m.Gate.Plan([]loadgate.Holder{running.holder})
	if err != nil {
		return err
	}
	if _, err := plan.Launch(m.step(writes, running.blocks, m.backlog())); err != nil {
		return err
	}
	aborted, err := m.admit(leaving, false)
	if err != nil {
		return err
	}
	if err := m.Gate.Flush(); err != nil { // else the zeroing goes out with what comes next
		return err
	}
	if err := m.release(running); err != nil {
		return err
	}
	return m.release(aborted)
}

// arrive admits a request whose KV is on another machine, into the blocks that
// are free by now, and has it loaded. The load leaves when it may; in Ungated
// that is at once, ahead of the work that the streams still have to do.
func (m *machine) arrive(ctx context.Context) (request, error) {
	r, err := m.admit(arriving, true)
	if err != nil {
		return r, err
	}
	if err := m.Gate.WaitBlocks(ctx, 0, r.blocks); err != nil { // returns at once, but where the host waits
		return r, err
	}
	transfer, err := m.fetch(r.blocks)
	if err != nil {
		return r, err
	}
	ticket, err := m.Gate.Load(r.holder, transfer)
	if err != nil {
		return r, err
	}
	if err := m.Gate.EndStep(); err != nil {
		return r, err
	}
	return r, ticket.Wait(ctx)
}

// use runs a step that reads the loaded blocks, and lets go of them.
func (m *machine) use(ctx context.Context, r request) (corrupted int, err error) {
	plan, err := m.Gate.Plan([]loadgate.Holder{r.holder})
	if err != nil {
		return 0, err
	}
	fence, err := plan.Launch(m.step(checks, r.blocks, stepTime))
	if err != nil {
		return 0, err
	}
	if err := m.Gate.Wait(ctx, fence); err != nil {
		return 0, err
	}
	if corrupted, err = m.count(r.blocks); err != nil {
		return 0, err
	}
	return corrupted, m.release(r)
}

// admit allocates blocks for a request, holds them and has them zeroed; covered
// says that a load will overwrite them wholly.
func (m *machine) admit(n int, covered bool) (r request, err error) {
	if r.blocks, err = m.Pool.Alloc(n, nil); err != nil {
		return r, err
	}
	if r.holder, err = m.Gate.Hold(0, r.blocks); err != nil {
		return r, err
	}
	return r, m.Gate.Zero(loadgate.ZeroRequest{Tenancies: r.blocks, Covered: covered})
}

// release ends a request. Its blocks go back to the pool, which asks the gate
// when each may be handed out again.
func (m *machine) release(r request) error {
	if err := m.Gate.Drop(r.holder); err != nil {
		return err
	}
	return m.Pool.Free(r.blocks)
}
