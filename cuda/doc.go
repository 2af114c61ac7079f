// Package cuda is the device interface that kvgate works through, with its
// types, its errors and the batch of commands. It imports nothing of this
// module but package clock. Back ends implement [Device]: cuda/sim in pure Go, cuda/driver over
// libcuda, cuda/gorgonia over gorgonia.org/cu.
//
// The hot path is [Device.Submit]: a [Batch] holds the commands of one step,
// for any number of streams, as flat 64-byte records, and crosses into the
// driver once. [Device.Poll] asks after any number of marks in one crossing.
//
// A batch has work (launches, copies, fills, graphs), marks and waits for them
// (events, words of memory), and calls of host functions. Streams are FIFO and have
// no other order than those waits make, unless they are blocking ones and an engine
// uses the legacy default stream: see [Device.LegacyStream].
//
// # What not every device can
//
// A device may implement more than [Device]:
//
//	Watcher          tells without a crossing that marks may have moved
//	Grapher          captures streams and launches graphs
//	Managed          memory that host and device both use in place
//	HostMemory       registers host memory, and copies pageable memory
//	IPC              shares memory with other processes
//	Peers            works with other devices of the machine
//	RDMADevice       readies memory for NICs
//
// A type assertion tells whether the back end has a way to do it. What it has a
// way to do, and the driver or the device behind it can not, is
// [ErrNotSupported], as are single methods and commands, those of [Device]
// included, that a back end has no way to do. A wrapper of devices may implement
// them all, and returns the same for what the device that it wraps does not
// implement. So callers look at both.
//
// Handles (streams, events, functions) and device addresses are integers,
// never Go pointers: the collector has no part in their lifetime, and whoever
// made one frees it.
package cuda
