package nvml

import "github.com/kvgate/kvgate/cuda"

// fatal are the Xid errors that leave a device of no use to its program until
// it is reset, with the CUDA error that stands for them. Others end a program's
// context at most, which CUDA itself tells. Source: NVIDIA, "XID Errors",
// https://docs.nvidia.com/deploy/xid-errors/.
var fatal = map[uint64]struct {
	code cuda.Code
	text string
}{
	48:  {cuda.ErrECC, "double-bit ECC error"},
	64:  {cuda.ErrECC, "row remapping failed"},
	74:  {cuda.ErrLaunchFailed, "NVLink error"},
	79:  {cuda.ErrLaunchFailed, "the GPU has fallen off the bus"},
	95:  {cuda.ErrECC, "uncontained ECC error"},
	119: {cuda.ErrLaunchFailed, "GSP timeout"},
	120: {cuda.ErrLaunchFailed, "GSP error"},
}
