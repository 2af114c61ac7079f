package stream

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
)

// Batch is the work of one step for any number of streams. It goes to the
// device in one crossing, and allocates nothing once it has grown to the size
// of a step. It is used over and over: fill, Submit, Reset. A Batch is for one
// goroutine; see [event.Batch] for the order that shared streams need.
//
// A command for a nil Stream is an error that Submit returns,
// [cuda.ErrInvalidHandle]; nothing of the batch is then submitted.
type Batch struct{ b *event.Batch }

// NewBatch returns an empty batch for streams of reg.
func NewBatch(reg *event.Registry) *Batch { return &Batch{reg.NewBatch()} }

// Raw returns the commands, for typed launchers. Its Reset must not be called.
func (b *Batch) Raw() *cuda.Batch { return b.b.Raw() }

// Events returns the batch underneath.
func (b *Batch) Events() *event.Batch { return b.b }

// Len returns the number of commands.
func (b *Batch) Len() int { return b.b.Raw().Len() }

// handle returns the handle of s; for no stream 0, which no device takes, and
// Submit will fail.
func (b *Batch) handle(op cuda.Op, s *Stream) cuda.Stream {
	if s == nil {
		b.b.Fail(fmt.Errorf("stream: batch: %v on no stream: %w", op, cuda.ErrInvalidHandle))
		return 0
	}
	return s.handle
}

// Launch adds a launch and returns the n bytes of its arguments for the caller
// to fill; see [cuda.Batch.Launch]. They are valid until the next change to the
// batch.
func (b *Batch) Launch(s *Stream, f cuda.Function, g cuda.Geometry, n int) []byte {
	return b.b.Raw().Launch(b.handle(cuda.OpLaunch, s), f, g, n)
}

// Copy adds a copy of n bytes; either side may be device or pinned memory.
func (b *Batch) Copy(s *Stream, dst, src cuda.DevicePtr, n uint64) {
	b.b.Raw().Copy(b.handle(cuda.OpCopy, s), dst, src, n)
}

// Fill8 adds a fill of n bytes.
func (b *Batch) Fill8(s *Stream, dst cuda.DevicePtr, v uint8, n uint64) {
	b.b.Raw().Fill8(b.handle(cuda.OpFill, s), dst, v, n)
}

// Fill32 adds a fill of n 32-bit words.
func (b *Batch) Fill32(s *Stream, dst cuda.DevicePtr, v uint32, n uint64) {
	b.b.Raw().Fill32(b.handle(cuda.OpFill, s), dst, v, n)
}

// LaunchGraph adds a launch of a graph; see [cuda.Batch.LaunchGraph].
func (b *Batch) LaunchGraph(s *Stream, x cuda.GraphExec) {
	b.b.Raw().LaunchGraph(b.handle(cuda.OpLaunchGraph, s), x)
}

// Record adds a mark and returns its fence; see [event.Batch.Record].
// For no stream the fence is lost.
func (b *Batch) Record(s *Stream) event.Fence {
	if s == nil {
		b.handle(cuda.OpRecord, s)
		return b.b.Record(nil)
	}
	return b.b.Record(s.timeline)
}

// Wait makes s wait on the device for f; see [event.Batch.Wait].
// For no stream it returns [cuda.ErrInvalidHandle] and adds nothing.
func (b *Batch) Wait(s *Stream, f event.Fence) error {
	if s == nil {
		return fmt.Errorf("stream: batch: wait for %v on no stream: %w", f, cuda.ErrInvalidHandle)
	}
	return b.b.Wait(s.handle, f)
}

// Submit hands the batch to the device; see [event.Batch.Submit].
func (b *Batch) Submit() error { return b.b.Submit() }

// Reset empties the batch and keeps its memory. Marks that were not submitted
// are lost.
func (b *Batch) Reset() { b.b.Reset() }

// Uses counts the calls of Submit and Reset; see [event.Batch.Uses].
func (b *Batch) Uses() uint64 { return b.b.Uses() }

// Spent reports whether the batch was submitted and not reset since.
func (b *Batch) Spent() bool { return b.b.Spent() }
