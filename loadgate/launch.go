package loadgate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/stream"
)

// ZeroRequest names blocks to be zeroed or reset; see [core.ZeroRequest].
type ZeroRequest = core.ZeroRequest

// launched is a launch of the gate in a batch.
type launched struct {
	id          core.LaunchID
	stream      *stream.Stream
	fence       event.Fence
	begin       int // its waits are the commands from begin on,
	first, last int // its kernels those from first to before last
}

// Zero asks for blocks to be zeroed, or reset. The launch goes out with the
// next [Step.Launch], [Step.Begin], [Gate.EndStep], [Gate.Progress] or wait,
// whichever comes first, so that a step and its zeroing cross into the driver
// once.
//
// Zeroing that the step under way needs and zeroing for loads belong into
// requests of their own, one before and one after the step: the step waits for
// a launch as a whole.
func (g *Gate) Zero(r ZeroRequest) error {
	g.mu.Lock()
	defer g.unlock()
	if err := g.ready("zero"); err != nil {
		return err
	}
	err := g.core.Zero(r)
	g.act()
	return err
}

// flush launches what waits to be launched.
func (g *Gate) flush() error {
	g.act()
	if len(g.launches) == 0 {
		return nil
	}
	g.batch.Reset()
	bad := g.addLaunches(g.batch)
	return errors.Join(bad, g.submit(g.batch))
}

// submit hands a batch over and tells the core what became of its launches.
func (g *Gate) submit(b *stream.Batch) error {
	err := b.Submit()
	accepted, refused := b.Len(), false // refused: the device did not take a command
	if err != nil {
		accepted = 0
		var se *cuda.SubmitError
		if errors.As(err, &se) {
			accepted = se.Index
			// A stream that is being captured refuses the batch as a whole: that is
			// no fault of whatever happens to be first in it.
			refused = !errors.Is(err, cuda.ErrStreamCapturing)
		}
	}
	for i := range g.fences {
		l := &g.fences[i]
		switch {
		case l.last <= accepted:
			// Where the mark itself is not in, the next good one covers it.
			if err != nil && l.last == accepted {
				g.unmarked(l.stream)
			}
			g.noteLaunch(l)
			g.must(g.core.Launched(l.id, l.fence.Point()))
		case l.first < accepted:
			g.unmarked(l.stream)
			g.must(g.core.LaunchFailed(l.id, l.fence.Point(), err))
		case l.begin <= accepted && refused:
			g.must(g.core.LaunchFailed(l.id, kv.Point{}, err))
		default:
			// Something else in the batch was refused: it is still to be launched.
			g.launches = append(g.launches, l.id)
		}
	}
	g.fences = g.fences[:0]
	if err != nil && g.reg.Err() != nil {
		g.die(g.reg.Err())
	}
	g.act()
	return err
}

func (g *Gate) noteLaunch(l *launched) {
	if g.listener.Launched == nil {
		return
	}
	if ln, err := g.core.Launch(l.id); err == nil && len(ln.Blocks) > 0 {
		g.note(notice{kind: noticeLaunched, launch: LaunchInfo{Filling: ln.Filling, Pool: ln.Pool,
			Blocks: slices.Clone(ln.Blocks), Where: ln.Where, Fence: l.fence}})
	}
}

// addLaunches puts the launches that the core has asked for into a batch, each
// with its waits and its mark. The error is of those that can not be launched;
// the others are in.
func (g *Gate) addLaunches(b *stream.Batch) (bad error) {
	for _, id := range g.launches {
		ln, err := g.core.Launch(id)
		if err != nil {
			continue
		}
		l := launched{id: id, stream: g.streamOf(ln.Where), begin: b.Len()}
		err = g.addWaits(b, l.stream, ln.Waits)
		l.first = b.Len()
		if err == nil {
			err = g.addKernel(b, l.stream, ln)
		}
		l.last = b.Len()
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("loadgate: %v of pool %d: %w", ln.Filling, ln.Pool, err))
			g.must(g.core.LaunchFailed(id, kv.Point{}, err))
			continue
		}
		l.fence = b.Record(l.stream)
		g.fences = append(g.fences, l)
	}
	g.launches = g.launches[:0]
	return bad
}

func (g *Gate) streamOf(w core.Where) *stream.Stream {
	switch w {
	case core.OnIdle:
		return g.idle
	case core.OnBusy:
		return g.busy
	}
	return g.compute
}

func (g *Gate) addKernel(b *stream.Batch, s *stream.Stream, ln *core.Launch) error {
	of := &g.groups[ln.Group]
	if ln.Filling == core.Resetting {
		return g.set.ResetState(b.Raw(), s.Handle(), of.table, ln.Blocks, of.Template)
	}
	return g.set.ZeroBlocks(b.Raw(), s.Handle(), of.table, ln.Blocks)
}

// addWaits makes a stream wait on the device for points. A point whose record
// failed is covered by a fresh mark of its stream.
func (g *Gate) addWaits(b *stream.Batch, s *stream.Stream, points []kv.Point) error {
	for _, p := range points {
		f, err := g.reg.Fence(p)
		if err != nil {
			return err
		}
		err = b.Wait(s, f)
		if errors.Is(err, cuda.ErrNotRecorded) {
			if of := g.streams[p.Timeline]; of != nil {
				b.Record(of)
				err = b.Wait(s, f)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unmarked remembers a stream whose last mark is not recorded, so that
// Progress records another.
func (g *Gate) unmarked(s *stream.Stream) {
	for _, have := range g.unmarks {
		if have == s {
			return
		}
	}
	g.unmarks = append(g.unmarks, s)
}

// remark records a fresh mark on streams that need one.
func (g *Gate) remark() {
	n := 0
	for _, s := range g.unmarks {
		if _, err := s.Mark(); err != nil {
			g.unmarks[n] = s
			n++
		}
	}
	clear(g.unmarks[n:])
	g.unmarks = g.unmarks[:n]
}
