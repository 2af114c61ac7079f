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
// more than 8 bytes that is not the last. It has no primary context to keep and
// no flush, and can not make a thread's capture mode relaxed. A step (launch, mark, wait) through it is
// seven crossings and two C allocations, where cuda/driver has one crossing. Over
// a driver that does nothing, in nine interleaved rounds on a busy machine with
// two CPUs, the step through cuda/driver took 0.52 of the time of bare calls of
// gorgonia.org/cu on a locked thread, whose context nobody puts back, and 0.11
// of that through [Wrap] (medians): submitbench.
package gorgonia
