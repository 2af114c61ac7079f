//go:build cgo && linux

package driver

/*
#include "graph.h"
*/
import "C"

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.Grapher = (*Device)(nil)

// graphSymbols are what a capture that leads to a launch needs.
var graphSymbols = []string{"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags",
	"cuGraphLaunch", "cuGraphDestroy", "cuGraphExecDestroy"}

// BeginCapture begins to capture s. A driver that lacks any of what it takes to
// launch the graph is told here. A stream that was adopted belongs to whoever
// made it, who captures it: the error is [cuda.ErrNotPermitted].
func (d *Device) BeginCapture(s cuda.Stream, mode cuda.CaptureMode) error {
	const op = "begin capture"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	if err := d.needs(op, graphSymbols...); err != nil {
		return err
	}
	e, ok := d.find(C.KVG_STREAM, uint64(s))
	switch {
	case !ok:
		return badHandle(op, "stream", uint64(s))
	case e.foreign:
		return &cuda.Error{Code: cuda.ErrNotPermitted, Op: op, Detail: fmt.Sprintf("stream %#x was adopted", uint64(s))}
	case mode > cuda.CaptureRelaxed:
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: mode.String()}
	}
	if r := C.kvg_begin_capture(d.c, C.uint64_t(e.raw), C.int(mode)); r.why != C.KVG_OK {
		return d.fail(op, r, fmt.Sprintf("stream %#x", uint64(s)))
	}
	return nil
}

// EndCapture ends the capture that was begun on s and returns its graph.
func (d *Device) EndCapture(s cuda.Stream) (cuda.Graph, error) {
	const op = "end capture"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	e, ok := d.find(C.KVG_STREAM, uint64(s))
	if !ok || e.foreign {
		return 0, badHandle(op, "stream", uint64(s))
	}
	var raw C.uint64_t
	if r := C.kvg_end_capture(d.c, C.uint64_t(e.raw), &raw); r.why != C.KVG_OK {
		return 0, d.lacking(op, r, fmt.Sprintf("stream %#x", uint64(s)), "cuStreamEndCapture")
	}
	h, err := d.add(C.KVG_GRAPH, uint64(raw), false, 0)
	if err != nil {
		C.kvg_free_graph(d.c, raw)
	}
	return cuda.Graph(h), err
}

// CaptureStatus says whether s is being captured, also of an adopted stream.
func (d *Device) CaptureStatus(s cuda.Stream) (cuda.CaptureStatus, error) {
	const op = "capture status"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	e, ok := d.find(C.KVG_STREAM, uint64(s))
	if !ok {
		return 0, badHandle(op, "stream", uint64(s))
	}
	var status C.int
	if r := C.kvg_capture_status(d.c, C.uint64_t(e.raw), &status); r.why != C.KVG_OK {
		return 0, d.fail(op, r, fmt.Sprintf("stream %#x", uint64(s)))
	}
	return cuda.CaptureStatus(status), nil
}

// GraphSize returns the number of nodes of a graph.
func (d *Device) GraphSize(g cuda.Graph) (int, error) {
	const op = "size of graph"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	e, ok := d.find(C.KVG_GRAPH, uint64(g))
	if !ok {
		return 0, badHandle(op, "graph", uint64(g))
	}
	var n C.uint64_t
	if r := C.kvg_graph_size(d.c, C.uint64_t(e.raw), &n); r.why != C.KVG_OK {
		return 0, d.lacking(op, r, fmt.Sprintf("graph %#x", uint64(g)), "cuGraphGetNodes")
	}
	return int(n), nil
}

// Instantiate returns the graph in a form that can be launched.
func (d *Device) Instantiate(g cuda.Graph) (cuda.GraphExec, error) {
	const op = "instantiate graph"
	if err := d.enter(op); err != nil {
		return 0, err
	}
	defer d.leave()
	e, ok := d.find(C.KVG_GRAPH, uint64(g))
	if !ok {
		return 0, badHandle(op, "graph", uint64(g))
	}
	var raw C.uint64_t
	if r := C.kvg_instantiate(d.c, C.uint64_t(e.raw), &raw); r.why != C.KVG_OK {
		return 0, d.lacking(op, r, fmt.Sprintf("graph %#x", uint64(g)), "cuGraphInstantiateWithFlags")
	}
	h, err := d.add(C.KVG_GRAPH_EXEC, uint64(raw), false, 0)
	if err != nil {
		C.kvg_free_exec(d.c, raw)
	}
	return cuda.GraphExec(h), err
}

// DestroyGraph makes the handle invalid.
func (d *Device) DestroyGraph(g cuda.Graph) error {
	const op = "destroy graph"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	return d.end(op, C.KVG_GRAPH, "graph", uint64(g), "cuGraphDestroy", func(raw C.uint64_t) C.kvg_result {
		return C.kvg_free_graph(d.c, raw)
	})
}

// DestroyGraphExec makes the handle invalid. Launches that are in streams still
// run.
func (d *Device) DestroyGraphExec(x cuda.GraphExec) error {
	const op = "destroy executable graph"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	return d.end(op, C.KVG_GRAPH_EXEC, "executable graph", uint64(x), "cuGraphExecDestroy", func(raw C.uint64_t) C.kvg_result {
		return C.kvg_free_exec(d.c, raw)
	})
}
