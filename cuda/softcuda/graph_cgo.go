//go:build cgo && linux

package softcuda

/*
#include "soft.h"
*/
import "C"

import "github.com/kvgate/kvgate/cuda"

type softGraph struct {
	c   *softContext
	sim cuda.Graph
}

type softExec struct {
	c   *softContext
	sim cuda.GraphExec
}

func (g *softGraph) owner() *softContext { return g.c }
func (x *softExec) owner() *softContext  { return x.c }

// Nodes have no handles here: they can be counted, not listed.
func doGraphGetNodes(h C.CUgraph, nodes *C.CUgraphNode, n *C.size_t) C.CUresult {
	g, ok := lookup[*softGraph](uint64(h))
	switch {
	case !ok:
		return fail(cuda.ErrInvalidValue)
	case nodes != nil:
		return fail(cuda.ErrNotSupported)
	}
	size, err := g.c.sim.GraphSize(g.sim)
	*n = C.size_t(size)
	return result(err)
}

// Flags that change how a graph is uploaded, launched from the device, or frees
// its memory are for what is not here.
func doGraphInstantiateWithFlags(out *C.CUgraphExec, h C.CUgraph, flags C.uint64_t) C.CUresult {
	g, ok := lookup[*softGraph](uint64(h))
	switch {
	case !ok:
		return fail(cuda.ErrInvalidValue)
	case flags != 0:
		return fail(cuda.ErrNotSupported)
	}
	x, err := g.c.sim.Instantiate(g.sim)
	if err != nil {
		return result(err)
	}
	*out = C.CUgraphExec(register(&softExec{g.c, x}))
	return 0
}

func doGraphLaunch(h C.CUgraphExec, stream C.CUstream) C.CUresult {
	x, ok := lookup[*softExec](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidValue)
	}
	s, r := streamOf(stream)
	if s == nil {
		return r
	}
	if s.c != x.c {
		return fail(cuda.ErrInvalidContext)
	}
	return s.submit(func(b *cuda.Batch, h cuda.Stream) { b.LaunchGraph(h, x.sim) })
}

func doGraphDestroy(h C.CUgraph) C.CUresult {
	g, ok := lookup[*softGraph](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidValue)
	}
	unregister(uint64(h))
	return result(g.c.sim.DestroyGraph(g.sim))
}

func doGraphExecDestroy(h C.CUgraphExec) C.CUresult {
	x, ok := lookup[*softExec](uint64(h))
	if !ok {
		return fail(cuda.ErrInvalidValue)
	}
	if r := x.c.safe(); r != 0 {
		return r
	}
	unregister(uint64(h))
	return result(x.c.sim.DestroyGraphExec(x.sim))
}
