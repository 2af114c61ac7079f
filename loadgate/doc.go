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
// # Two doors
//
// [Open] makes a gate for a model's layout, with memory, kernels and a stream of its
// own. The gate then has requests, and an engine's author writes no more than this:
//
//	gate := loadgate.Open(dev, loadgate.Options{Plan: plan, Memory: bytes, Agent: agent})
//	peer := gate.AddPeer(ctx, metadata)           // layouts are compared
//	r := gate.NewRequest()
//	r.Grow(tokens)                                // blocks of every group, or *FullError
//	r.Load(loadgate.TransferSpec{...})            // leaves when it may
//	step := gate.NewStep(uses)                    // names all that are not ready
//	fence := step.Launch(forward)                 // or Begin, a graph, End
//	gate.Wait(ctx, fence)                         // the output; held loads leave meanwhile
//	r.Settle(accepted)                            // windows and rejected tokens go
//	gate.Ended(...)                               // what has arrived, or failed
//
// [New] is for an engine that has its own block manager, tables and transfers. It
// tells the gate which holders have which blocks:
//
//	gate := loadgate.New(registry, kernels, loadgate.Options{Pools: pools, Compute: s, Agent: agent})
//	h := gate.Hold(group, tenancies)              // from Pool.Alloc, or its own (Foreign)
//	step := gate.Plan(holders)                    // as soon as the scheduler names them
//	gate.Load(h, transfer)                        // made with the agent, not posted
//	gate.Drop(h)
//	pool.Free(tenancies)                          // or Retire, and Reusable
//
// Steps, transfers and waits are the same in both. Nobody has to ask for zeroing: a
// new block is zeroed, or its state reset, by the first step or load that needs it.
//
// CONTRACT.md beside this file lists what the gate promises, to whom, and the
// test of each clause.
package loadgate
