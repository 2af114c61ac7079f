package sim

import (
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/cuda"
)

var _ cuda.Grapher = (*Device)(nil)

// capture is a capture under way: what its streams are given becomes nodes.
type capture struct {
	origin  *stream
	mode    cuda.CaptureMode
	streams []*stream // the origin first, and those that joined
	nodes   []*node
	spoiled bool
	over    bool
}

// node is a command of a graph. deps are indices of nodes before it.
type node struct {
	cmd      command
	deps     []int
	priority int // of the stream that it was captured in
}

// add makes a node behind what s has captured and returns its command.
func (k *capture) add(s *stream, op cuda.Op) *command {
	n := &node{cmd: command{op: op}, deps: slices.Clone(s.tips), priority: s.priority}
	s.tips = append(s.tips[:0], len(k.nodes))
	k.nodes = append(k.nodes, n)
	return &n.cmd
}

// join brings s into the capture, behind tips.
func (k *capture) join(s *stream, tips []int) {
	if s.capture == nil {
		s.capture, s.tips = k, s.tips[:0]
		k.streams = append(k.streams, s)
	}
	for _, t := range tips {
		if !slices.Contains(s.tips, t) {
			s.tips = append(s.tips, t)
		}
	}
}

// release ends the capture: its streams are as they were before.
func (k *capture) release(d *Device) {
	for _, s := range k.streams {
		s.capture, s.tips = nil, nil
	}
	k.over = true
	d.captures = slices.DeleteFunc(d.captures, func(x *capture) bool { return x == k })
}

// unjoined returns a stream that the origin does not wait for, or nil.
func (k *capture) unjoined() *stream {
	reached := make([]bool, len(k.nodes))
	for _, t := range k.origin.tips {
		reached[t] = true
	}
	for i := len(k.nodes) - 1; i >= 0; i-- {
		if reached[i] {
			for _, dep := range k.nodes[i].deps {
				reached[dep] = true
			}
		}
	}
	for _, s := range k.streams {
		for _, t := range s.tips {
			if !reached[t] {
				return s
			}
		}
	}
	return nil
}

// refuse returns the error of a call that a capture forbids, and spoils the
// captures concerned.
func refuse(c cuda.Code, op, detail string, spoil ...*capture) error {
	for _, k := range spoil {
		k.spoiled = true
	}
	return &cuda.Error{Code: c, Op: op, Detail: detail}
}

// capturing returns what stands against a command in s: a capture that is
// spoiled, or one that the batch does not want.
func (s *stream) capturing(op string, refused bool) error {
	switch k := s.capture; {
	case k == nil:
		return s.implicit(op)
	case refused:
		return refuse(cuda.ErrStreamCapturing, op, s.String())
	case k.spoiled:
		return refuse(cuda.ErrCaptureInvalid, op, s.String())
	}
	return nil
}

// captureRecord takes a record of e in s where that is captured.
func (s *stream) captureRecord(e *event) bool {
	e.capture = s.capture
	if s.capture == nil {
		return false
	}
	e.on = nil
	e.tips = append(e.tips[:0], s.tips...)
	return true
}

// captureWait takes a wait of s for e where either is captured.
func (s *stream) captureWait(op string, e *event) (taken bool, err error) {
	k, own := e.capture, s.capture
	switch {
	case k == nil && own == nil:
		return false, nil
	case k == nil:
		return true, refuse(cuda.ErrCaptureIsolation, op, fmt.Sprintf("%s is captured, the event's record is not", s), own)
	case k.over && own == nil:
		return true, refuse(cuda.ErrCapturedEvent, op, "the capture of the event's record is over")
	case k.over:
		return true, refuse(cuda.ErrCaptureIsolation, op, "the capture of the event's record is over", own)
	case k.spoiled && own == nil:
		return true, refuse(cuda.ErrInvalidValue, op, "the capture of the event's record is spoiled")
	case s == s.d.legacy:
		return true, refuse(cuda.ErrCaptureImplicit, op, s.String(), k)
	case own != nil && own != k:
		return true, refuse(cuda.ErrCaptureMerge, op, fmt.Sprintf("%s and the event are of two captures", s), own, k)
	}
	k.join(s, e.tips)
	return true, nil
}

// captured returns the error of asking after e, if its record was captured.
func (e *event) captured(op string, h cuda.Event) error {
	if e.capture == nil {
		return nil
	}
	e.capture.spoiled = true
	return refuse(cuda.ErrCapturedEvent, op, fmt.Sprintf("event %#x", uint64(h)))
}

// BeginCapture begins to capture h. The mode is kept and has no effect: the
// simulator knows no threads.
func (d *Device) BeginCapture(h cuda.Stream, mode cuda.CaptureMode) error {
	const op = "begin capture"
	if err := d.call(op, d.costs.Handle); err != nil {
		return err
	}
	defer d.world.Exit()
	s := d.streams[h]
	switch {
	case s == nil:
		return badHandle(op, "stream", uint64(h))
	case mode > cuda.CaptureRelaxed:
		return invalid(op, "%s", mode)
	case s == d.legacy:
		return &cuda.Error{Code: cuda.ErrStreamCapturing, Op: op, Detail: s.String()}
	case s.capture != nil:
		return &cuda.Error{Code: cuda.ErrIllegalState, Op: op, Detail: fmt.Sprintf("%s is captured already", s)}
	}
	k := &capture{origin: s, mode: mode}
	k.join(s, nil)
	d.captures = append(d.captures, k)
	return nil
}

// EndCapture ends the capture that was begun on h and returns its graph.
func (d *Device) EndCapture(h cuda.Stream) (cuda.Graph, error) {
	const op = "end capture"
	if err := d.call(op, d.costs.Handle); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	s := d.streams[h]
	if s == nil {
		return 0, badHandle(op, "stream", uint64(h))
	}
	k := s.capture
	switch {
	case k == nil:
		return 0, &cuda.Error{Code: cuda.ErrIllegalState, Op: op, Detail: fmt.Sprintf("%s is not captured", s)}
	case k.origin != s:
		return 0, refuse(cuda.ErrCaptureUnmatched, op, fmt.Sprintf("%s joined the capture of %s", s, k.origin), k)
	}
	left := k.unjoined()
	k.release(d)
	switch {
	case k.spoiled:
		return 0, refuse(cuda.ErrCaptureInvalid, op, s.String())
	case left != nil:
		return 0, refuse(cuda.ErrCaptureUnjoined, op, fmt.Sprintf("%s does not wait for %s", s, left))
	}
	g := cuda.Graph(d.handle(kindGraph))
	d.graphs[g] = k.nodes
	return g, nil
}

// CaptureStatus says whether h is being captured.
func (d *Device) CaptureStatus(h cuda.Stream) (cuda.CaptureStatus, error) {
	const op = "capture status"
	if err := d.call(op, 0); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	s := d.streams[h]
	switch {
	case s == nil:
		return 0, badHandle(op, "stream", uint64(h))
	case s.capture == nil:
		return cuda.CaptureNone, nil
	case s.capture.spoiled:
		return cuda.CaptureInvalidated, nil
	}
	return cuda.CaptureActive, nil
}

// forgetCapture takes a stream that is destroyed out of its capture, which is
// spoiled, and over if it was begun there.
func (s *stream) forgetCapture() {
	k := s.capture
	if k == nil {
		return
	}
	k.spoiled = true
	if k.origin == s {
		k.release(s.d)
		return
	}
	s.capture, s.tips = nil, nil
	k.streams = slices.DeleteFunc(k.streams, func(x *stream) bool { return x == s })
}
