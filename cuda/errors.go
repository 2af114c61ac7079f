package cuda

import (
	"errors"
	"fmt"
)

// Code is a CUDA driver result (CUresult). Each code is an error of its own,
// so errors.Is(err, cuda.ErrNotReady) holds for an error of any back end.
type Code int32

// The results that this library tells apart. Numbers and names are those of
// the CUDA driver API, section "Data types used by CUDA driver". A sticky one
// leaves the context dead: see [Code.Sticky].
const (
	Success              Code = 0   // no error
	ErrInvalidValue      Code = 1   // an argument is out of range, or makes no sense
	ErrOutOfMemory       Code = 2   // not enough memory for what was asked
	ErrNotInitialized    Code = 3   // cuInit has not run, or failed
	ErrDeinitialized     Code = 4   // the driver is shutting down
	ErrStubLibrary       Code = 34  // the library is the stub that programs are linked with
	ErrDeviceUnavailable Code = 46  // the device is there and busy, or kept for somebody else
	ErrNoDevice          Code = 100 // no device to be seen
	ErrInvalidDevice     Code = 101 // no device of that number
	ErrInvalidImage      Code = 200 // a module that is neither PTX nor a cubin
	ErrInvalidContext    Code = 201 // no context is current, or it has gone
	ErrECC               Code = 214 // a memory error that could not be corrected; sticky
	ErrMapFailed         Code = 205 // memory can not be mapped
	ErrPeerUnsupported   Code = 217 // the devices can not reach each other's memory
	ErrInvalidPTX        Code = 218 // PTX that does not compile
	ErrNVLink            Code = 220 // an NVLink error that could not be corrected; sticky
	ErrUnsupportedPTX    Code = 222 // PTX of a newer version than the driver knows
	ErrContained         Code = 226 // an exception that the device has contained, as of a peer's memory; sticky
	ErrInvalidHandle     Code = 400 // no such stream, event, module or function
	ErrIllegalState      Code = 401 // the thing is not in a state for the call
	ErrNotFound          Code = 500 // no such symbol, kernel or allocation
	ErrNotReady          Code = 600 // what was asked after has not happened yet; no failure
	ErrIllegalAddress    Code = 700 // a kernel or copy touched memory that it may not; sticky
	ErrLaunchResources   Code = 701 // a launch takes more registers or shared memory than there are
	ErrLaunchTimeout     Code = 702 // a kernel ran longer than the system allows; sticky
	ErrPeerEnabled       Code = 704 // access to the other device's memory is enabled already
	ErrPeerNotEnabled    Code = 705 // access to the other device's memory is not enabled
	ErrContextDestroyed  Code = 709 // the context was destroyed, or never made; sticky
	ErrAssert            Code = 710 // an assertion in a kernel failed; sticky
	ErrHostRegistered    Code = 712 // host memory is page-locked already
	ErrHostNotRegistered Code = 713 // host memory was not registered
	ErrHardwareStack     Code = 714 // the call stack of a kernel is broken or full; sticky
	ErrIllegalInstr      Code = 715 // a kernel met an instruction that is none; sticky
	ErrMisaligned        Code = 716 // a kernel touched an address that is no multiple of its access; sticky
	ErrInvalidAddrSpace  Code = 717 // an access to an address of another state space; sticky
	ErrInvalidPC         Code = 718 // a kernel left its code; sticky
	ErrLaunchFailed      Code = 719 // a kernel ended for a reason of no other code; sticky
	ErrTensorLeak        Code = 721 // a kernel ended with tensor memory that it had not freed; sticky
	ErrNotPermitted      Code = 800 // the call may not be made now, as during a capture
	ErrNotSupported      Code = 801 // the device, driver or back end can not do it
	ErrSystemNotReady    Code = 802 // the system is still starting, as NVSwitch's fabric manager
	ErrDriverMismatch    Code = 803 // the library and the driver in the kernel are of two versions
	ErrCompatUnsupported Code = 804 // the library of a compatibility package, on a device that it is not for
	ErrMPSTerminated     Code = 810 // the MPS server has ended this client; sticky
	ErrStreamCapturing   Code = 900 // the call may not be made while the stream is captured
	ErrCaptureInvalid    Code = 901 // an earlier call spoiled the capture of the stream
	ErrCaptureMerge      Code = 902 // two captures would become one
	ErrCaptureUnmatched  Code = 903 // the capture was begun on another stream
	ErrCaptureUnjoined   Code = 904 // the first stream does not wait for all that joined the capture
	ErrCaptureIsolation  Code = 905 // captured work would depend on work that is not
	ErrCaptureImplicit   Code = 906 // the legacy default stream would depend on captured work
	ErrCapturedEvent     Code = 907 // the event was last recorded in a capture
	ErrCaptureThread     Code = 908 // the capture was begun by another thread
	ErrExternalDevice    Code = 911 // a device outside of CUDA failed that work waited for; sticky
	ErrUnknown           Code = 999 // an error inside the driver
)

var codeNames = map[Code]string{
	Success: "CUDA_SUCCESS", ErrInvalidValue: "CUDA_ERROR_INVALID_VALUE",
	ErrOutOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", ErrNotInitialized: "CUDA_ERROR_NOT_INITIALIZED",
	ErrDeinitialized: "CUDA_ERROR_DEINITIALIZED", ErrStubLibrary: "CUDA_ERROR_STUB_LIBRARY",
	ErrNoDevice: "CUDA_ERROR_NO_DEVICE", ErrInvalidDevice: "CUDA_ERROR_INVALID_DEVICE",
	ErrInvalidImage: "CUDA_ERROR_INVALID_IMAGE", ErrInvalidContext: "CUDA_ERROR_INVALID_CONTEXT",
	ErrMapFailed: "CUDA_ERROR_MAP_FAILED", ErrECC: "CUDA_ERROR_ECC_UNCORRECTABLE", ErrInvalidPTX: "CUDA_ERROR_INVALID_PTX",
	ErrUnsupportedPTX: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", ErrInvalidHandle: "CUDA_ERROR_INVALID_HANDLE",
	ErrIllegalState: "CUDA_ERROR_ILLEGAL_STATE", ErrNotFound: "CUDA_ERROR_NOT_FOUND",
	ErrNotReady: "CUDA_ERROR_NOT_READY", ErrIllegalAddress: "CUDA_ERROR_ILLEGAL_ADDRESS",
	ErrLaunchResources: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", ErrLaunchTimeout: "CUDA_ERROR_LAUNCH_TIMEOUT",
	ErrPeerUnsupported: "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", ErrPeerEnabled: "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
	ErrPeerNotEnabled: "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
	ErrHostRegistered: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", ErrHostNotRegistered: "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
	ErrContextDestroyed: "CUDA_ERROR_CONTEXT_IS_DESTROYED", ErrAssert: "CUDA_ERROR_ASSERT",
	ErrHardwareStack: "CUDA_ERROR_HARDWARE_STACK_ERROR", ErrIllegalInstr: "CUDA_ERROR_ILLEGAL_INSTRUCTION",
	ErrMisaligned: "CUDA_ERROR_MISALIGNED_ADDRESS", ErrInvalidAddrSpace: "CUDA_ERROR_INVALID_ADDRESS_SPACE",
	ErrInvalidPC: "CUDA_ERROR_INVALID_PC", ErrLaunchFailed: "CUDA_ERROR_LAUNCH_FAILED",
	ErrNotPermitted: "CUDA_ERROR_NOT_PERMITTED", ErrNotSupported: "CUDA_ERROR_NOT_SUPPORTED",
	ErrStreamCapturing:  "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	ErrCaptureInvalid:   "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	ErrCaptureMerge:     "CUDA_ERROR_STREAM_CAPTURE_MERGE",
	ErrCaptureUnmatched: "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
	ErrCaptureUnjoined:  "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
	ErrCaptureIsolation: "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
	ErrCaptureImplicit:  "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
	ErrCapturedEvent:    "CUDA_ERROR_CAPTURED_EVENT",
	ErrCaptureThread:    "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
	ErrNVLink:           "CUDA_ERROR_NVLINK_UNCORRECTABLE",
	ErrContained:        "CUDA_ERROR_CONTAINED",
	ErrTensorLeak:       "CUDA_ERROR_TENSOR_MEMORY_LEAK",
	ErrMPSTerminated:    "CUDA_ERROR_MPS_CLIENT_TERMINATED",
	ErrExternalDevice:   "CUDA_ERROR_EXTERNAL_DEVICE",
	ErrUnknown:          "CUDA_ERROR_UNKNOWN",

	ErrDeviceUnavailable: "CUDA_ERROR_DEVICE_UNAVAILABLE",
	ErrSystemNotReady:    "CUDA_ERROR_SYSTEM_NOT_READY",
	ErrDriverMismatch:    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	ErrCompatUnsupported: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
}

// String returns CUDA's name of the code, or its number where it has no name
// here.
func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("CUDA_ERROR(%d)", int32(c))
}

// Error makes each code a sentinel for errors.Is.
func (c Code) Error() string { return c.String() }

// Sticky reports whether the code leaves the context unusable: every later
// call returns it, and no memory of the context is reachable any more. These are
// the codes of which CUDA's header says that the process or context is over, and
// three of which it does not: [ErrECC] and [ErrNVLink], after which memory can not
// be trusted, and [ErrContextDestroyed].
func (c Code) Sticky() bool {
	switch c {
	case ErrECC, ErrNVLink, ErrContained, ErrIllegalAddress, ErrLaunchTimeout, ErrContextDestroyed, ErrAssert,
		ErrHardwareStack, ErrIllegalInstr, ErrMisaligned, ErrInvalidAddrSpace, ErrInvalidPC,
		ErrLaunchFailed, ErrTensorLeak, ErrMPSTerminated, ErrExternalDevice:
		return true
	}
	return false
}

// Errors of this library rather than of the driver.
var (
	// ErrNoDriver: there is no usable NVIDIA driver. The wrapping error says why.
	ErrNoDriver = errors.New("no usable CUDA driver")
	// ErrClosed: the device, stream or buffer has been closed.
	ErrClosed = errors.New("closed")
	// ErrNotRecorded: an event that was never recorded was asked after. CUDA
	// itself reports such an event as done.
	ErrNotRecorded = errors.New("event never recorded")
)

// Error is a failed call of the driver.
type Error struct {
	Code   Code
	Op     string // what was called, as this library names it
	Detail string // what it was called on; may be empty
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("cuda: %s: %s", e.Op, e.Code)
	}
	return fmt.Sprintf("cuda: %s: %s: %s", e.Op, e.Detail, e.Code)
}

// Unwrap returns the code, so that errors.Is matches it.
func (e *Error) Unwrap() error { return e.Code }

// Sticky reports whether err says that the device is dead: see [Code.Sticky].
func Sticky(err error) bool {
	var c Code
	return errors.As(err, &c) && c.Sticky()
}

// SubmitError says how far a batch got. The commands before Index are in their
// streams and will run; the one at Index and those after it are not.
type SubmitError struct {
	Index int   // the command that failed
	Op    Op    // what it was
	Done  []int // per stream of the batch, how many of its commands were accepted
	Err   error
}

func (e *SubmitError) Error() string {
	return fmt.Sprintf("cuda: submit: command %d (%s): %v", e.Index, e.Op, e.Err)
}

func (e *SubmitError) Unwrap() error { return e.Err }
