// Package loadgate orders the device's work on KV-cache blocks (zeroing, state
// resets, steps) against transfers that no stream knows of (RDMA through nixl),
// so that neither corrupts the other, without stalling the engine: its host
// thread never waits for the gate, and its stream waits only for the zeroing of
// blocks that the very step uses.
//
// The logic is in loadgate/core, a pure state machine; [Gate] drives it. The
// gate has no goroutine of its own but its posters: it moves when it is called,
// above all in [Gate.Wait], where an engine waits for its steps' output
// anyway.
//
// # A step
//
//	step := gate.Plan(holders)        // as soon as the scheduler names them
//	fence := step.Launch(forward)     // zeroing, waits, forward, marks: one crossing
//	gate.Load(holder, transfer)       // leaves when it may
//	gate.EndStep()
//	gate.Wait(ctx, fence)             // the output; held loads leave meanwhile
//	gate.Ended(...)                   // what has arrived, or failed
//
// CONTRACT.md beside this file lists what the gate promises, to whom, and the
// test of each clause.
package loadgate
