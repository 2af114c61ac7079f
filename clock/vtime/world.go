// Package vtime is the clock of simulated devices and fabrics, and the machine
// that they are parts of. A [World] holds what is going to happen in them (events)
// and the goroutines that use them (actors).
//
// [NewVirtual] makes a world on virtual time: it runs one actor at a time and jumps
// from event to event, so waiting costs nothing, and a run can be replayed from its
// seed or steered by a [Chooser]. [NewReal] makes one that is paced by the wall
// clock: each event waits for its time, and any goroutine may call. The parts of
// the machine do not know which of the two drives them.
//
// A program hands its world to the parts (sim.Options.World, softnic.New), or takes
// it from a device that made one: dev.Clock().(*vtime.World).
//
// On virtual time every goroutine that uses the world must be known to it: the
// one that made it, or one started by [World.Go]. Only one of them runs at a time,
// and it lets others run in [World.WaitUntil], [World.Sleep] and [World.Enter]. A
// goroutine that blocks in any other way stops the world.
package vtime

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
)

// ErrClosed is returned from the waits of a world that has been closed.
var ErrClosed = errors.New("vtime: the world has been closed")

// Options are the options of a world. The zero value takes ties in the order
// of arrival.
type Options struct {
	// Seed seeds Rand and, when Chooser is nil, a chooser. With 0 and no
	// Chooser, due events come before ready actors, each in the order of
	// arrival.
	Seed uint64
	// Chooser decides ties and ready sets.
	Chooser Chooser
	// Observe is told of each event that runs and of each actor that gets the
	// baton, with the machine locked. It must not call the world.
	Observe func(t time.Duration, what string)
}

// World is a machine and its time. It implements [clock.Clock].
//
// [World.At], [World.After], [World.Cancel], [World.Watch], [World.Start],
// [World.Time], [World.Choose], [World.Rand] and the methods of [Shared] and
// [Flow] belong to the machine: they may be called between Enter and Exit, or in
// an event function. All others may not be called there.
type World struct {
	virtual bool
	slow    float64
	chooser Chooser
	rand    *rand.Rand
	observe func(time.Duration, string)

	mu     sync.Mutex // the machine
	ended  atomic.Pointer[ending]
	now    time.Duration // the machine's time: written under mu
	shown  atomic.Int64  // what Now returns on virtual time; the largest returned by the real pacer
	events queue
	due    []*event // popped, of time now, not yet run
	free   []*event
	seq    uint64

	watches []*watch
	looking Event // of the real pacer: when it looks at them again
	idle    int   // looks since one of them was over

	explainers []*explainer
	actors     sync.WaitGroup // started by Go

	v virtualState
	r realState
}

type ending struct{ err error }

type explainer struct {
	name string
	fn   func(io.Writer)
}

var _ clock.Clock = (*World)(nil)

func newWorld(o Options) *World {
	w := &World{
		chooser: o.Chooser,
		observe: o.Observe,
		rand:    rand.New(rand.NewPCG(o.Seed, 0x6b7667617465)),
		slow:    1,
	}
	if w.chooser == nil && o.Seed != 0 {
		w.chooser = bySeed(o.Seed)
	}
	return w
}

// Virtual reports whether time stands still while code runs.
func (w *World) Virtual() bool { return w.virtual }

// Slow returns the factor by which owners of cost tables stretch them.
func (w *World) Slow() float64 { return w.slow }

// Now returns the machine's time. It may be called from anywhere.
func (w *World) Now() time.Duration {
	if w.virtual {
		return time.Duration(w.shown.Load())
	}
	return w.realNow()
}

// Enter is a call into the machine: cost passes for the caller, then the
// machine is locked until [World.Exit]. On virtual time others run meanwhile
// where they are due; under the real pacer a call takes the time that it takes
// and cost is ignored.
func (w *World) Enter(cost time.Duration) {
	w.lock()
	if w.ended.Load() != nil {
		return
	}
	if w.virtual {
		w.pass(cost)
		return
	}
	w.now = w.realNow()
}

// Exit unlocks the machine.
func (w *World) Exit() { w.mu.Unlock() }

// lock locks the machine. On virtual time only the holder of the baton comes
// here, so finding it locked is a mistake worth stopping at: the run could not
// be replayed, or would hang.
func (w *World) lock() {
	if w.mu.TryLock() {
		return
	}
	if w.virtual && w.ended.Load() == nil {
		panic("vtime: the virtual world was entered twice at once: from an event function, " +
			"between Enter and Exit, or by a goroutine not started with World.Go")
	}
	w.mu.Lock()
}

// Time returns the time that holds while the machine is locked.
func (w *World) Time() time.Duration { return w.now }

// Rand returns a source of numbers that depends on the seed alone.
func (w *World) Rand() *rand.Rand { return w.rand }

// Choose returns one of 0..n-1: the chooser's, or 0 where there is none or
// nothing to choose.
func (w *World) Choose(what string, n int) int {
	if n < 2 || w.chooser == nil {
		return 0
	}
	k := w.chooser.Choose(what, n)
	if k < 0 || k >= n {
		panic(fmt.Sprintf("vtime: the chooser returned %d of %d for %q", k, n, what))
	}
	return k
}

// Explain adds a part of the machine to deadlock reports: fn writes its lines,
// with the machine locked. remove takes it out again; neither may be called
// with the machine locked.
func (w *World) Explain(name string, fn func(io.Writer)) (remove func()) {
	e := &explainer{name, fn}
	w.lock()
	w.explainers = append(w.explainers, e)
	w.mu.Unlock()
	return func() {
		w.lock()
		defer w.mu.Unlock()
		for i, x := range w.explainers {
			if x == e {
				w.explainers = append(w.explainers[:i], w.explainers[i+1:]...)
				return
			}
		}
	}
}

// Close ends the world: waits return [ErrClosed], pending events never run,
// Enter costs nothing, Go starts nothing. It returns when the goroutines that
// Go started have. It must not be called by one of them. A second Close does
// nothing.
func (w *World) Close() error {
	w.lock()
	if w.ended.Load() == nil {
		w.end(ErrClosed)
	} else if w.ended.Load().err != ErrClosed {
		w.ended.Store(&ending{ErrClosed})
	}
	w.mu.Unlock()
	w.actors.Wait()
	if !w.virtual {
		<-w.r.done
	}
	return nil
}

// end stops time, with the machine locked. From here on goroutines run freely,
// so that one which holds a lock that another wants can let go of it.
func (w *World) end(err error) {
	w.ended.Store(&ending{err})
	if w.virtual {
		w.endVirtual(err)
	} else {
		close(w.r.stop)
		w.wakeAll()
	}
}

func (w *World) endErr() error {
	if e := w.ended.Load(); e != nil {
		return e.err
	}
	return nil
}

func (w *World) saw(what string) {
	if w.observe != nil {
		w.observe(w.now, what)
	}
}
