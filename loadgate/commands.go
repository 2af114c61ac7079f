package loadgate

import (
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/stream"
)

// Commands takes a step's work from the function that [Step.Launch] calls. The
// work goes to the streams of the step, in the order in which it is added, and
// behind everything that the step waits for. A command for any other stream
// makes the launch fail, and nothing of the step is then launched.
//
// Commands is valid during the call, and for one goroutine.
type Commands struct {
	streams []*stream.Stream
	work    cuda.Batch
	typed   cuda.Batch
	extra   []orderCommand
	err     error
}

// orderCommand is a mark or a wait, which goes before the work from at on.
type orderCommand struct {
	at    int
	s     *stream.Stream
	fence event.Fence  // to wait for
	mark  *event.Fence // to be set to the mark's fence; nil: a wait
}

func (c *Commands) reset(streams []*stream.Stream) {
	c.streams = append(c.streams[:0], streams...)
	c.work.Reset()
	clear(c.extra)
	c.extra, c.err = c.extra[:0], nil
}

// handle returns the handle of a stream of the step. For any other the launch
// will fail.
func (c *Commands) handle(op string, s *stream.Stream) cuda.Stream {
	switch {
	case s == nil:
		c.fail(fmt.Errorf("loadgate: %s on no stream: %w", op, cuda.ErrInvalidHandle))
		return 0
	case !slices.Contains(c.streams, s):
		c.fail(fmt.Errorf("loadgate: %s on %v: the step is not launched on it: %w", op, s, core.ErrInvalid))
	}
	return s.Handle()
}

func (c *Commands) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Launch adds a launch and returns the n bytes of its arguments for the caller
// to fill; see [cuda.Batch.Launch]. They are valid until the next command.
func (c *Commands) Launch(s *stream.Stream, f cuda.Function, g cuda.Geometry, n int) []byte {
	return c.work.Launch(c.handle("launch", s), f, g, n)
}

// Copy adds a copy of n bytes; either side may be device or pinned memory.
func (c *Commands) Copy(s *stream.Stream, dst, src cuda.DevicePtr, n uint64) {
	c.work.Copy(c.handle("copy", s), dst, src, n)
}

// Fill8 adds a fill of n bytes.
func (c *Commands) Fill8(s *stream.Stream, dst cuda.DevicePtr, v uint8, n uint64) {
	c.work.Fill8(c.handle("fill", s), dst, v, n)
}

// Fill32 adds a fill of n 32-bit words.
func (c *Commands) Fill32(s *stream.Stream, dst cuda.DevicePtr, v uint32, n uint64) {
	c.work.Fill32(c.handle("fill", s), dst, v, n)
}

// LaunchGraph adds a launch of a graph; see [cuda.Batch.LaunchGraph].
func (c *Commands) LaunchGraph(s *stream.Stream, x cuda.GraphExec) {
	c.work.LaunchGraph(c.handle("launch of a graph", s), x)
}

// Wait makes a stream wait on the device for a fence.
func (c *Commands) Wait(s *stream.Stream, f event.Fence) {
	c.handle("wait", s)
	c.extra = append(c.extra, orderCommand{at: c.work.Len(), s: s, fence: f})
}

// Mark records a mark behind what was added so far. f is set to its fence when
// the step is launched, before [Step.Launch] returns.
func (c *Commands) Mark(s *stream.Stream, f *event.Fence) {
	c.handle("mark", s)
	if f == nil {
		f = new(event.Fence)
	}
	c.extra = append(c.extra, orderCommand{at: c.work.Len(), s: s, mark: f})
}

// Typed lets typed launchers add their commands, which take a [cuda.Batch]. The
// batch is empty, and what it holds when add returns is added. When add returns
// an error, nothing is, and the launch fails with it.
func (c *Commands) Typed(add func(*cuda.Batch) error) error {
	c.typed.Reset()
	err := add(&c.typed)
	for _, h := range c.typed.Streams() {
		if err == nil && !slices.ContainsFunc(c.streams, func(s *stream.Stream) bool { return s.Handle() == h }) {
			err = fmt.Errorf("loadgate: a command on stream %#x: the step is not launched on it: %w", uint64(h), core.ErrInvalid)
		}
	}
	if err != nil {
		c.fail(err)
		return err
	}
	c.work.Append(&c.typed, 0, c.typed.Len())
	return nil
}

// addTo puts the commands into a batch.
func (c *Commands) addTo(b *stream.Batch) error {
	done := 0
	for i := range c.extra {
		o := &c.extra[i]
		b.Raw().Append(&c.work, done, o.at)
		done = o.at
		if o.mark != nil {
			*o.mark = b.Record(o.s)
		} else if err := b.Wait(o.s, o.fence); err != nil {
			return err
		}
	}
	b.Raw().Append(&c.work, done, c.work.Len())
	return nil
}
