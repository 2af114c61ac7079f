package cuda

import "fmt"

// Graph is a captured list of work with its dependencies, GraphExec one that
// can be launched. Zero is none.
type (
	Graph     uint64
	GraphExec uint64
)

// CaptureMode says which calls of which threads a capture forbids while it is
// under way. The numbers are CUDA's: driver API, CUstreamCaptureMode. Calls of
// this interface are never forbidden by a mode: back ends over the driver make
// the calling thread's own mode relaxed for each call.
type CaptureMode uint8

const (
	CaptureGlobal      CaptureMode = iota // potentially unsafe calls of all threads
	CaptureThreadLocal                    // those of the thread that began it
	CaptureRelaxed                        // none
)

func (m CaptureMode) String() string {
	switch m {
	case CaptureGlobal:
		return "global"
	case CaptureThreadLocal:
		return "thread-local"
	case CaptureRelaxed:
		return "relaxed"
	}
	return fmt.Sprintf("capture mode %d", uint8(m))
}

// CaptureStatus says whether a stream is being captured. The numbers are
// CUDA's.
type CaptureStatus uint8

const (
	CaptureNone        CaptureStatus = iota
	CaptureActive                    // work that is submitted becomes nodes of a graph
	CaptureInvalidated               // an error has invalidated the capture; it is yet to be ended
)

func (s CaptureStatus) String() string {
	switch s {
	case CaptureNone:
		return "not capturing"
	case CaptureActive:
		return "capturing"
	case CaptureInvalidated:
		return "capture invalidated"
	}
	return fmt.Sprintf("capture status %d", uint8(s))
}

// Grapher is implemented by devices that capture streams and launch graphs.
// Methods are safe for use by several goroutines, as those of [Device] are; a
// driver that lacks what one needs returns [ErrNotSupported] with the symbol.
//
// Commands that Submit puts into a capturing stream do not run: launches,
// copies and fills become nodes of a graph, ordered as the stream would have
// them. A record marks a place in the capture. Another stream that waits for
// that event joins the capture, and has to be waited for by the first one
// before its end. Arguments are taken when they are captured; what addresses
// hold is read when the graph runs.
//
// While a capture is under way CUDA forbids what would look at work that does
// not run yet. Such a call fails and spoils the capture, whose streams then
// take nothing ([ErrCaptureInvalid]) until it is ended:
//   - to synchronise a captured stream, or the device, or to launch a graph in
//     one: [ErrStreamCapturing]
//   - to ask after an event that was last recorded in a capture:
//     [ErrCapturedEvent]
//   - to wait in a captured stream for an event that was not:
//     [ErrCaptureIsolation]
//   - to wait there for an event of another capture: [ErrCaptureMerge]
//   - to end the capture on a stream that joined it: [ErrCaptureUnmatched]
type Grapher interface {
	// BeginCapture begins to capture s, or fails with [ErrIllegalState] where
	// that is under way. Unless the mode is CaptureRelaxed the driver wants the
	// end in the thread that began ([ErrCaptureThread]): callers lock theirs
	// with runtime.LockOSThread.
	BeginCapture(s Stream, mode CaptureMode) error
	// EndCapture ends the capture that was begun on s and returns its graph,
	// which the caller destroys. It fails with [ErrIllegalState] where none is
	// under way. After a failure for another reason than the thread there is no
	// graph, and the streams are as before the capture: [ErrCaptureInvalid] of
	// one that was spoiled, [ErrCaptureUnjoined] where s does not wait for the
	// last work of a stream that joined.
	EndCapture(s Stream) (Graph, error)
	// CaptureStatus says whether s is being captured.
	CaptureStatus(s Stream) (CaptureStatus, error)
	// GraphSize returns the number of nodes of a graph.
	GraphSize(g Graph) (int, error)

	// Instantiate returns the graph in a form that [Batch.LaunchGraph] takes. It
	// is independent of g from then on. The caller destroys it.
	Instantiate(g Graph) (GraphExec, error)
	// DestroyGraph ends a handle at once.
	DestroyGraph(g Graph) error
	// DestroyGraphExec ends a handle at once. Launches in streams still run.
	DestroyGraphExec(x GraphExec) error
}

// LaunchGraph adds a launch of x: its nodes run behind what is in s and behind
// earlier launches of x, and what follows in s runs behind all of them. A launch
// is not captured.
func (b *Batch) LaunchGraph(s Stream, x GraphExec) { b.add(s, OpLaunchGraph).A = uint64(x) }

// RefuseCapture has Submit refuse the whole batch, with [ErrStreamCapturing],
// where one of its streams is being captured. It stays over Reset. It is for
// those who have to see their marks fire: captured ones never do.
func (b *Batch) RefuseCapture() { b.uncaptured = true }

// RefusesCapture reports whether [Batch.RefuseCapture] was called.
func (b *Batch) RefusesCapture() bool { return b.uncaptured }
