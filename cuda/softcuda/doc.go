// Package softcuda serves the CUDA driver's C interface from the simulator, so
// that code written against libcuda.so.1 runs where there is no GPU.
//
// Inside a Go program its functions are called kvg_soft_* and reached through
// [Library], to fill the table of cuda/driver. Their canonical names would
// catch the calls that other libraries of the process make to a real driver;
// they exist only in the shared library that ./build.sh softcuda makes from
// package softcuda/libcuda, for programs that are not Go.
//
// Device memory can be shared between processes with cuIpcGetMemHandle: it lies in
// a memory file, which others find as /proc/PID/fd/N. They have to be in the same
// PID namespace and allowed to look into that process. A handle whose process has
// gone, or whose memory was freed, is refused.
//
// Devices run under the real pacer: C threads are not known to a virtual world.
// Contexts of a device share its memory and bandwidth, and die together. Streams
// are captured, and graphs launched, with the rules for threads and for the
// legacy default stream; a graph's nodes can be counted but not listed or made
// by hand, and captures of another context forbid a thread nothing.
//
// The streams 0 and CU_STREAM_LEGACY are the legacy default stream of the thread's
// context, with its order; CU_STREAM_PER_THREAD is not served. Host functions run
// on threads of Go's, one of a device after the other, and are refused calls of
// CUDA. A wait for a word compares cyclically (CU_STREAM_WAIT_VALUE_GEQ); the other
// comparisons are not served.
//
// What the simulator can't do is CUDA_ERROR_NOT_SUPPORTED: see the list in
// driver.abi, and the comments here.
package softcuda
