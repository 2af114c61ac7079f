// Package gorgonia is for engines that are built on gorgonia.org/cu. With
// [RawContext], [RawStream], [RawEvent] and [Pointer] they hand what they have
// to cuda/driver, which is the way to run a gate beside them. [Wrap] is the cuda
// interface over gorgonia.org/cu itself.
//
// Everything but this page needs the build tag gorgonia and the headers of CUDA
// 11 or 12: gorgonia.org/cu v0.9.6 does not compile with those of CUDA 13. The
// folder is a module of its own, since gorgonia.org/cu brings a long list of
// modules that nobody else needs. ./build.sh gorgonia builds and tests it over
// the simulator; without a GPU it links against a library made from the list in
// internal/abi, with every symbol resolved.
//
// What gorgonia.org/cu lacks is [cuda.ErrNotSupported]: pinned memory, host
// functions, more than 48 KiB of shared memory, and kernels with a parameter of
// more than 8 bytes that is not the last. [Device] is a [cuda.Device] and no
// more: it has no graphs, no managed or registered memory, no other processes and
// no other devices. It has no primary context to keep and no flush, and can not make
// a thread's capture mode relaxed. A step (launch, mark, wait) through it is seven
// crossings and two C allocations, where cuda/driver has one crossing.
//
// Over a driver that does nothing a step through cuda/driver took 70 ns, 0.31 of
// the 222 ns of bare calls of gorgonia.org/cu on a locked thread, whose context
// nobody puts back, and 0.07 of the 1,000 ns through [Wrap] (./build.sh
// gorgonia-bench, the least of 40 interleaved rounds on a machine with two CPUs).
// The driver's own calls, in a loop in C, are 18 of the 70; with a batch to write
// down and one crossing for them it is 44 (0.20), which no binding that is called
// from Go goes below. The other 26 are what makes it safe: calls under way are
// counted, so that Close waits for them (12), handles are looked up and what
// comes back is told apart (14). A quarter is not reached without leaving out one
// of the two.
package gorgonia
