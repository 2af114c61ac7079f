// Package sim is a software GPU in pure Go behind the interface [cuda.Device].
// It runs the same PTX that is embedded for real devices, moves real bytes in
// real memory, and keeps CUDA's rules of order on a clock of its own: on
// virtual time, where a run can be replayed from its seed, or paced by the wall
// clock. Its running times come from one table, [Costs]; they are a model, and
// figures made with it are simulated figures.
//
// What it is strict about:
//   - Streams are FIFO. An event wait captures the event's state at the call; an
//     event that was never recorded holds nothing back and counts as done.
//   - Work is torn. Stores of kernels, fills and copies land in chunks spread
//     over their running time, and sources are read when a chunk is due.
//   - Kernels, fills, copies and NIC writes that run at the same time share the
//     memory's bandwidth.
//   - A kernel of a stream of greater priority starts before others when the limit
//     of resident grids holds them back. Running kernels are not preempted.
//   - A command in the legacy default stream waits for all that was put before it
//     into blocking streams, and what is put into these afterwards for it.
//   - Host functions hold their streams until they have returned, are not called
//     after an error, and can not call the device.
//   - A wait for a word ends with a write and nothing else. What nobody writes is
//     a deadlock, which virtual time finds and reports.
//   - Accesses outside live allocations are told, with the allocation's name;
//     addresses are never used twice, so use after free is told too. A kernel
//     that does it leaves the device dead, as on hardware.
//   - A captured stream's commands become nodes of a graph. Launched, they run in
//     the order of their dependencies, side by side where there is none, behind
//     what is in the stream and behind earlier launches of the graph. What looks
//     at captured work as if it ran is refused with CUDA's code, and spoils the
//     capture.
//
// Device memory is mapped memory at addresses of its own. With
// Options.Shareable other processes can open it: see [cuda.IPC].
//
// Copies from pinned memory read their source while they run; those from pageable
// memory have read it when the call returns, those to it are over then. Managed
// memory is one address for host and device; moving it takes no time. With
// Options.ExclusiveManaged the host faults on it while launches are under way.
//
// What it leaves out: thread blocks are not placed on multiprocessors, so
// kernels of different streams run side by side from their start and contend
// for bandwidth alone; a kernel's time comes from the bytes it moves and from
// how long its threads sleep, not from what it computes, unless a model declares
// a time; caches do not exist. How many registers a thread takes is what
// [Options.Registers] says.
//
// A capture's mode has no effect: the simulator knows no threads, and calls of
// this interface count as relaxed. Allocations are not captured. Pools neither
// split memory nor join it: what they reserve is what was asked for, rounded up.
//
// On systems other than Linux, Options.Shareable is refused, no handle of memory
// can be opened, and a host function that calls the device is not told so.
package sim
