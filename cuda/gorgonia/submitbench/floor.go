//go:build gorgonia

// Package submitbench measures a step through cuda/driver against the same step
// through gorgonia.org/cu, and against the least that it can take, over the same
// driver, which does nothing.
package submitbench

/*
#cgo LDFLAGS: -lcuda
#include <stddef.h>
#include <stdint.h>

int cuCtxPushCurrent_v2(uintptr_t context);
int cuCtxPopCurrent_v2(uintptr_t *context);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuLaunchKernel(uintptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	unsigned shared, uintptr_t stream, void **params, void **extra);
int cuEventRecord(uintptr_t event, uintptr_t stream);
int cuStreamWaitEvent(uintptr_t stream, uintptr_t event, unsigned flags);

// The driver calls of one step: the thread's context and capture mode put
// right, launch, record, wait, and both put back.
static int calls(void *args, size_t size) {
	void *extra[] = {(void *)1, args, (void *)2, &size, (void *)0};
	uintptr_t old;
	int mode = 2;
	int r = cuCtxPushCurrent_v2(0x1000);
	r |= cuThreadExchangeStreamCaptureMode(&mode);
	r |= cuLaunchKernel(0x2000, 264, 1, 1, 256, 1, 1, 0, 0x3000, NULL, extra);
	r |= cuEventRecord(0x4000, 0x3000);
	r |= cuStreamWaitEvent(0x5000, 0x4000, 0);
	r |= cuThreadExchangeStreamCaptureMode(&mode);
	r |= cuCtxPopCurrent_v2(&old);
	return r;
}

static int loop(int64_t n) {
	uint64_t args[33] = {0};
	int r = 0;
	for (int64_t i = 0; i < n; i++) r |= calls(args, sizeof args);
	return r;
}

static int step(uintptr_t args, size_t size) { return calls((void *)args, size); }
*/
import "C"

import "unsafe"

// loopCalls makes the driver calls of n steps in one crossing.
func loopCalls(n int) int { return int(C.loop(C.int64_t(n))) }

// stepCalls makes those of one step, with these arguments, and checks nothing.
func stepCalls(args []byte) int {
	return int(C.step(C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(args)))), C.size_t(len(args))))
}
