// Package engine is a decode engine of an LLM on the simulator's virtual clock:
// scheduler, block pool, host loop, a modelled forward step, and a remote
// prefill that sends the KV of prompts. It drives a loadgate gate as a real
// engine would, in any of the gate's modes, measures what ordering costs, and
// checks the content of the cache. All times are simulated.
//
// # A step
//
// The host works two steps ahead of the device. For step n it waits, through
// the gate, for the output of step n-2; frees, admits and appends; plans; spends
// most of its own time; submits zeroing for the blocks that step n uses, and
// apart from it for those that loads will fill; in FullSync and EventSync waits
// if there are loads; launches the forward, which needs the one before it and
// the zeroing of its own blocks; spends the rest of its time; and hands over
// the loads. A load joins the first step planned after its completion.
//
// A request that is finished is found out with its last output, when it sits in
// the step in flight as well. Modes in which nothing else protects its blocks
// from that step keep them out of the pool until it was processed ([Deferral]).
// Where memory runs out the youngest request gives its blocks back and is loaded
// again later, its prompt and what it has generated.
//
// # What is real and what is not
//
// Plans, zeroing, waits and loads go through the gate, zeroing is the PTX that a
// GPU would run, and loads go through softnic. A forward is a model: it counts
// weights, KV and states against the memory bandwidth that zeroing and the NIC
// share, and reads and writes the content of the blocks that a real one would.
// Prefill takes no time, and the host's own work is a given time.
//
// A page is held at a reduced size whose every byte is checked, and costs what
// the true size costs (cuda.AllocOptions.CostScale). State rows are zeroed like
// other blocks: the engine's pool has one group, for all of them.
package engine
