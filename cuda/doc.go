// Package cuda is the device interface that kvgate works through, with its
// types, its errors and the batch of commands. It imports nothing of this
// module. Back ends implement [Device]: cuda/sim in pure Go, cuda/driver over
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
// Handles (streams, events, functions) and device addresses are integers,
// never Go pointers: the collector has no part in their lifetime, and whoever
// made one frees it.
package cuda
