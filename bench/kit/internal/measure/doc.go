// Package measure has the kit's measurements of the device at hand.
//
// # Bandwidth
//
// Each kernel of package kernels, on layouts that engines use, against the
// driver's own fill of as many bytes (cuMemsetD32Async), its fill of rows
// (cuMemsetD2D32Async) where the blocks of one launch are one strided run, and
// the bandwidth of the device's memory as clock and bus give it. What is timed
// is a batch of launches back to back in one stream, from before it is submitted
// until its last event has fired, which is asked without a pause. Each launch
// takes other blocks, scattered over a pool several times as large as any cache;
// fills go through the same memory from end to end. Kernel and fills take turns,
// so that a clock that moves moves them all. Afterwards the bytes are looked at:
// a kernel that does nothing is no fast one.
//
// # Step
//
// What a step costs the host: [cuda.Device.Submit] of a launch with 56 ids, its
// mark and the compute stream's wait for it, and Poll of four marks; then the
// same through the gate, with zeroing. The device is let to run empty every so
// often, so that no queue is measured.
//
// # Wake
//
// How late a waiter is, by the way in which it waits: from the moment in which
// the stream reaches the mark until a goroutine that waits for its fence runs,
// until a load that the gate holds for it enters the transport, and until a C
// function runs that a thread of the system's calls (native). The moment is
// seen by a thread of the system's that spins on a word of mapped memory, which
// the stream fills right before the mark.
package measure
