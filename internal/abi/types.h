// Declarations of the CUDA driver's C interface as far as this module uses it,
// for 64-bit Linux. Handles are integers as wide as the pointers that they are
// in the vendor's header: nothing here looks behind them.
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUcontext;
typedef uint64_t CUmodule;
typedef uint64_t CUfunction;
typedef uint64_t CUstream;
typedef uint64_t CUevent;
typedef uint64_t CUgraph;
typedef uint64_t CUgraphExec;
typedef uint64_t CUgraphNode;
typedef uint64_t CUlinkState;
typedef struct { char bytes[16]; } CUuuid;
typedef struct { char bytes[64]; } CUipcMemHandle;
typedef void (*CUhostFn)(void *arg);
