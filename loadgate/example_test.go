package loadgate_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
)

// The shortest way of a load through the gate: allocate, hold, zero, load, use.
func Example() {
	m := newMachine()
	defer m.close()
	ctx := context.Background()

	blocks, err := m.pool.Alloc(2, nil)
	check(err)
	request, err := m.gate.Hold(0, blocks)
	check(err)
	check(m.gate.Zero(loadgate.ZeroRequest{Tenancies: blocks, Covered: true}))

	load, err := m.gate.Load(request, m.read(blocks)) // posted when the zeroing has run
	check(err)
	fmt.Println("at once:", load.Done())
	check(load.Wait(ctx))
	fmt.Println("then:", load.Done())

	plan, err := m.gate.Plan([]loadgate.Holder{request})
	check(err)
	output, err := plan.Launch(m.step(100))
	check(err)
	check(m.gate.Wait(ctx, output))
	fmt.Printf("content: %#x\n", m.firstByte(blocks[0]))

	check(m.gate.Drop(request))
	check(m.pool.Free(blocks))
	// Output:
	// at once: false
	// then: true
	// content: 0xab
}

// What the gate is for: the same load, behind a backlog on the compute stream,
// without the gate's order and with it. Zeroing that was launched first runs
// last and takes the load's bytes with it.
func ExampleMode() {
	ctx := context.Background()
	for _, mode := range []loadgate.Mode{core.Ungated, core.PerBlock} {
		m := newMachineIn(mode)
		backlog, err := m.gate.Plan(nil)
		check(err)
		_, err = backlog.Launch(m.step(2000))
		check(err)

		blocks, err := m.pool.Alloc(1, nil)
		check(err)
		request, err := m.gate.Hold(0, blocks)
		check(err)
		check(m.gate.Zero(loadgate.ZeroRequest{Tenancies: blocks}))
		load, err := m.gate.Load(request, m.read(blocks))
		check(err)
		check(load.Wait(ctx))

		plan, err := m.gate.Plan([]loadgate.Holder{request})
		check(err)
		output, err := plan.Launch(m.step(100))
		check(err)
		check(m.gate.Wait(ctx, output))
		fmt.Printf("%v: sent 0xab, used %#x\n", mode, m.firstByte(blocks[0]))
		m.close()
	}
	// Output:
	// Ungated: sent 0xab, used 0x0
	// PerBlock: sent 0xab, used 0xab
}

// An engine's loop. One request decodes, another is loaded meanwhile and joins
// the steps when it has arrived. The host waits for the steps' output and for
// nothing else; the load leaves and arrives during those waits.
func ExampleGate_Wait() {
	m := newMachine()
	defer m.close()
	ctx := context.Background()

	admit := func(n int, loaded bool) loadgate.Holder {
		blocks, err := m.pool.Alloc(n, nil)
		check(err)
		h, err := m.gate.Hold(0, blocks)
		check(err)
		check(m.gate.Zero(loadgate.ZeroRequest{Tenancies: blocks, Covered: loaded}))
		if !loaded {
			return h
		}
		_, err = m.gate.Load(h, m.read(blocks))
		check(err)
		return h
	}

	running := []loadgate.Holder{admit(1, false)}
	for step := range 4 {
		for _, end := range m.gate.Ended(nil) {
			check(end.Err)
			running = append(running, end.Holder)
		}
		plan, err := m.gate.Plan(running)
		check(err)
		output, err := plan.Launch(m.step(50)) // with the zeroing that these blocks need
		check(err)
		if step == 1 {
			admit(2, true) // for a later step, so not in the way of this one
		}
		check(m.gate.EndStep())
		check(m.gate.Wait(ctx, output))
		fmt.Printf("step %d: %d running\n", step, len(running))
	}
	for _, h := range running {
		check(m.gate.Drop(h))
	}
	// Output:
	// step 0: 1 running
	// step 1: 1 running
	// step 2: 1 running
	// step 3: 2 running
}

// Canceling a load that is still held withdraws it: nothing is posted any more.
// One that is under way may go on. It is over for its owner at once, but its
// blocks stay in quarantine until the transfer has ended.
func ExampleTransfer_Cancel() {
	m := newMachine()
	defer m.close()
	ctx := context.Background()
	blocks, err := m.pool.Alloc(1, nil)
	check(err)
	request, err := m.gate.Hold(0, blocks)
	check(err)
	state := func() core.BlockState {
		info, err := m.gate.Block(0, blocks[0].Block)
		check(err)
		return info.State
	}

	// A step uses the block, so the load is held.
	plan, err := m.gate.Plan([]loadgate.Holder{request})
	check(err)
	output, err := plan.Launch(m.step(1000))
	check(err)
	load, err := m.gate.Load(request, m.read(blocks))
	check(err)
	withdrawn, err := load.Cancel()
	check(err)
	fmt.Println("held: withdrawn:", withdrawn, "canceled:", errors.Is(load.Err(), core.ErrCanceled))

	// The step is over, so the next load leaves, and is canceled on its way.
	check(m.gate.Wait(ctx, output))
	load, err = m.gate.Load(request, m.read(blocks))
	check(err)
	check(m.rig.Events.Clock().Sleep(ctx, 10*time.Microsecond)) // a poster takes it to the transport
	withdrawn, err = load.Cancel()
	check(err)
	fmt.Println("posted: withdrawn:", withdrawn, "canceled:", errors.Is(load.Err(), core.ErrCanceled))

	check(m.gate.Drop(request))
	check(m.pool.Free(blocks))
	fmt.Println("freed:", state())
	for m.gate.Counters().InFlight > 0 {
		_, err := m.gate.Progress(0)
		check(err)
		check(m.rig.Events.Clock().Sleep(ctx, 10*time.Microsecond))
	}
	fmt.Println("when it has ended:", state())
	// Output:
	// held: withdrawn: true canceled: true
	// posted: withdrawn: false canceled: true
	// freed: quarantined
	// when it has ended: free
}

// Blocks come back when nothing may touch them any more.
func ExamplePool_Free() {
	m := newMachine()
	defer m.close()
	pool, err := m.gate.Pool(0)
	check(err)
	blocks, err := pool.Alloc(15, nil) // of 16: block 0 is the null block
	check(err)
	request, err := m.gate.Hold(0, blocks)
	check(err)

	// The request is over, but the scheduler has planned one more step for it.
	plan, err := m.gate.Plan([]loadgate.Holder{request})
	check(err)
	check(m.gate.Drop(request))
	check(pool.Free(blocks))
	_, err = pool.Alloc(1, nil)
	fmt.Println("planned:", err)

	// Once it is in its stream, work for the next owner can be ordered behind it.
	_, err = plan.Launch(m.step(100))
	check(err)
	next, err := pool.Alloc(15, nil)
	check(err)
	info, err := m.gate.Block(0, next[0].Block)
	check(err)
	fmt.Println("submitted:", len(next), "blocks, the step still runs:", info.Busy)
	// Output:
	// planned: loadgate: pool "kv": 1 blocks wanted, 0 free, 0 used, 15 in quarantine: full
	// submitted: 15 blocks, the step still runs: true
}
