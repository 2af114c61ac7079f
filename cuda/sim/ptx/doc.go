// Package ptx runs PTX on the CPU: the very text that is embedded for the GPU,
// as NVRTC 11.8 makes it (PTX ISA 7.8, compute_70).
//
// It works in stages. [Parse] reads the text, checks every instruction,
// modifier, type and register width, and lowers each kernel to a flat slice of
// ops over register slots with the reconvergence point of every branch; what
// it does not know is an error that names the instruction and its line. A
// [Kernel] is immutable from then on. [Kernel.Start] binds it to memory,
// geometry and parameters, and [Run.Step] executes whole thread blocks.
//
// Execution is warp-wide: one op works on 32 lanes. Lanes that part at a branch
// meet again at its immediate post-dominator, kept on a reconvergence stack.
// The warps of a thread block take turns at barriers; thread blocks run one
// after the other, in linear order with x fastest, so a kernel whose blocks
// wait for each other, or whose lanes spin on a lock held by their own warp,
// ends in [ErrStepLimit].
//
// Time. %clock counts the warp's instructions. %globaltimer starts at what the
// launch says and passes only where a warp sleeps (nanosleep): a kernel that
// waits for it without sleeping ends in [ErrStepLimit], too.
//
// Addresses. Global memory is whatever the caller's [Memory] says. Addresses of
// the .shared, .local and .param spaces are offsets from zero; as generic
// addresses they lie in windows far above any user-space address.
//
// Not known, and so refused at load: functions and calls, module variables in
// .global and .const, initial values, 8-bit registers, half precision,
// approximate and saturating arithmetic, bar.arrive, textures, and instructions
// newer than sm_70. Memory is in order and warps change over only at barriers,
// so orderings, scopes, fences and cache hints are checked and have no effect.
//
// Sections named in this package's comments are those of NVIDIA's "Parallel
// Thread Execution ISA" 7.8.
package ptx
