// Package ptx runs PTX on the CPU: the very text that is embedded for the GPU, as
// NVRTC, clang and Triton make it.
//
// It works in stages. [Parse] reads the text, checks every instruction,
// modifier, type and register width, and lowers each kernel, with the functions that
// it calls, to a flat slice of ops over register slots with the reconvergence point of
// every branch. What it does not know is an error that names the instruction, its line
// and, where the text tells, the line of the source. Any PTX version and any sm_NN is
// taken: what is new in it is refused where it is used. A [Kernel] is immutable from
// then on. [Kernel.Start] binds it to memory, geometry and parameters; [Run.Step] and
// [Run.Advance] execute thread blocks.
//
// Execution is warp-wide: one op works on 32 lanes. Lanes that part at a branch
// meet again at its immediate post-dominator, kept on a reconvergence stack. Lanes
// that would wait there for ever, because others of the warp wait for them, go on
// alone; so a lock that is held by a lane of the same warp works.
//
// The warps of a thread block take turns: at barriers, when they sleep, and when they
// have run for long. Thread blocks begin in linear order, x fastest, and one after the
// other has ended; while all that have begun wait, the next one begins, up to
// Launch.Resident. A kernel that waits for memory is stuck when each of its warps has
// come back to a state that it was in, and has changed nothing since: then it goes on
// when what it has read changes ([Run.Changed]). One that never ends is ended with
// [ErrStepLimit], after [DefaultStepLimit] instructions of a warp or when the caller
// says ([Run.End]).
//
// Time. Computing is free for the first 4,096 instructions of a warp; what goes on
// takes a nanosecond for each, and half a microsecond for each access that other
// threads may see. %clock counts instructions. %globaltimer tells the launch's time.
//
// Numbers. Floating-point results are the nearest value in the rounding that the
// instruction names, of f64, f32, f16, bf16, tf32 and the formats of 8 bits and less,
// also where the ISA allows an approximation. There is one NaN of each format.
//
// Addresses. Global memory is whatever the caller's [Memory] says; constants and
// module variables lie there ([Module.Image]). Addresses of the .shared, .local and
// .param spaces are offsets from zero; as generic addresses they lie in windows far
// above any user-space address.
//
// Not known, and so refused at load: textures, surfaces and matrix instructions,
// mbarrier and bulk copies, clusters of more than one thread block, shuffles and votes
// without .sync, video instructions, 128-bit types, alloca, and the driver's functions
// but vprintf and __assertfail. Memory is in order, so orderings, scopes, fences and
// cache hints are checked and say at most that a thread looks at what others do. A
// cp.async is made when its thread waits for it.
//
// Sections named in this package's comments are those of NVIDIA's "Parallel
// Thread Execution ISA" 8.8.
package ptx
