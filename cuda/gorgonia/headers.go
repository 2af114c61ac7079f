//go:build gorgonia

package gorgonia

/*
#include <cuda.h>
#if CUDA_VERSION >= 13000
#error "gorgonia.org/cu v0.9.6 needs the headers of CUDA 11 or 12: 13 changed cuCtxCreate and the graph calls"
#endif
*/
import "C"
