package vtime

import (
	"context"
	"time"

	"github.com/kvgate/kvgate/clock"
)

// virtualState is what the virtual pacer adds to a world. Exactly one
// goroutine runs; the code here runs on the one that gives way.
type virtualState struct {
	current string    // who holds the baton
	waiting []*waiter // in the order in which they came
	ready   int       // how many of them are ready
	free    []*waiter
}

// waiter is an actor that has given way.
type waiter struct {
	name    string
	cond    clock.Cond // nil: it sleeps, or has not started
	ctx     context.Context
	timer   Event
	expired bool
	ready   bool // chosen from among the ready ones; cond is not asked again
	err     error
	wake    chan struct{}
}

// NewVirtual returns a world on virtual time. The calling goroutine is its
// first actor, "main".
func NewVirtual(o Options) *World {
	w := newWorld(o)
	w.virtual = true
	w.v.current = "main"
	return w
}

func (w *World) setNow(t time.Duration) {
	w.now = t
	w.shown.Store(int64(t))
}

// pass lets d go by for the caller, with the machine locked before and after.
func (w *World) pass(d time.Duration) {
	t := w.later(max(d, 0))
	w.collect()
	w.gather()
	if w.v.ready == 0 && len(w.due) == 0 && (len(w.events) == 0 || w.events[0].t > t) {
		w.setNow(t)
		return
	}
	s := w.newWaiter(w.v.current, nil, context.Background())
	s.timer = w.schedule(t, "", nil, s)
	_ = w.giveWay(s) // a sleep ends early only with the world
}

// Sleep blocks for d. On virtual time Sleep(0) lets others run that are due.
func (w *World) Sleep(ctx context.Context, d time.Duration) error {
	if !w.virtual {
		return w.sleepReal(ctx, d)
	}
	w.lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := w.endErr(); err != nil {
		return err
	}
	if ctx.Done() == nil {
		w.pass(d)
		return w.endErr()
	}
	s := w.newWaiter(w.v.current, nil, ctx)
	s.timer = w.schedule(w.later(max(d, 0)), "", nil, s)
	return w.giveWay(s)
}

// WaitUntil blocks until c is done, ctx is, or the deadline has passed. It also
// ends with [ErrClosed] and, on virtual time, with a [*DeadlockError]. Actors
// that wait are looked at in the order in which they came; a Cond that takes a
// lock as its effect gives it to the first.
func (w *World) WaitUntil(ctx context.Context, c clock.Cond, deadline time.Duration) error {
	if !w.virtual {
		return w.waitReal(ctx, c, deadline)
	}
	w.lock()
	if w.ended.Load() != nil {
		w.mu.Unlock()
		if c.Done() {
			return nil
		}
		return w.endErr()
	}
	defer w.mu.Unlock()
	if c.Done() {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s := w.newWaiter(w.v.current, c, ctx)
	if deadline != clock.Never {
		s.timer = w.schedule(deadline, "", nil, s)
	}
	return w.giveWay(s)
}

// Notify says that a Cond may have become true. On virtual time conditions are
// looked at whenever an actor gives way, so there is nothing to do.
func (w *World) Notify() {
	if !w.virtual {
		w.wakeAll()
	}
}

// Go runs fn on a goroutine of its own. On virtual time it starts when the
// caller has given way and its turn has come. After Close it does nothing.
func (w *World) Go(name string, fn func()) {
	w.lock()
	defer w.mu.Unlock()
	w.Start(name, fn)
}

// Start is [World.Go] for parts of the machine.
func (w *World) Start(name string, fn func()) {
	if w.ended.Load() != nil {
		return
	}
	w.actors.Add(1)
	if !w.virtual {
		go func() {
			defer w.actors.Done()
			fn()
		}()
		return
	}
	s := w.newWaiter(name, nil, context.Background())
	s.ready = true
	w.v.ready++
	go func() {
		<-s.wake
		defer w.actors.Done()
		defer w.leave()
		fn()
	}()
}

// leave passes the baton on for good.
func (w *World) leave() {
	w.lock()
	var next *waiter
	if w.ended.Load() == nil && len(w.v.waiting) > 0 {
		next = w.pick()
	}
	w.mu.Unlock() // before the next one runs: it must not find it locked
	if next != nil {
		next.wake <- struct{}{}
	}
}

func (w *World) newWaiter(name string, c clock.Cond, ctx context.Context) *waiter {
	var s *waiter
	if n := len(w.v.free); n > 0 {
		s, w.v.free = w.v.free[n-1], w.v.free[:n-1]
		*s = waiter{wake: s.wake}
	} else {
		s = &waiter{wake: make(chan struct{}, 1)}
	}
	s.name, s.cond, s.ctx = name, c, ctx
	w.v.waiting = append(w.v.waiting, s)
	return s
}

// giveWay runs the machine until it is s's turn, with the machine locked
// before and after, and returns how the wait ended.
func (w *World) giveWay(s *waiter) error {
	if next := w.pick(); next != s {
		w.mu.Unlock()
		if next != nil {
			next.wake <- struct{}{}
		}
		<-s.wake
		w.mu.Lock()
	}
	err := s.err
	if w.ended.Load() == nil {
		w.v.free = append(w.v.free, s)
	}
	return err
}

// pick runs events until an actor is to run, takes it from the waiting ones
// and returns it; nil when the world has ended.
func (w *World) pick() *waiter {
	for {
		w.collect()
		w.gather()
		n := len(w.due) + w.v.ready
		if n == 0 {
			if len(w.events) == 0 {
				w.end(w.deadlock())
				return nil
			}
			w.setNow(w.events[0].t)
			continue
		}
		k := w.Choose("next", n)
		if k >= len(w.due) {
			s := w.nthReady(k - len(w.due))
			w.take(s)
			return s
		}
		w.runDue(k)
	}
}

// collect marks the waiting actors that may go on.
func (w *World) collect() {
	w.look()
	if w.v.ready == len(w.v.waiting) {
		return
	}
	for _, s := range w.v.waiting {
		if s.ready {
			continue
		}
		switch {
		case s.cond != nil && s.cond.Done():
		case s.ctx.Err() != nil:
			s.err = context.Cause(s.ctx)
		case s.expired:
			s.err = context.DeadlineExceeded
		default:
			continue
		}
		s.ready = true
		w.v.ready++
	}
}

func (w *World) nthReady(k int) *waiter {
	for _, s := range w.v.waiting {
		if s.ready {
			if k == 0 {
				return s
			}
			k--
		}
	}
	panic("vtime: fewer ready actors than counted")
}

// take gives the baton to s.
func (w *World) take(s *waiter) {
	if s.ready {
		w.v.ready--
	}
	for i, x := range w.v.waiting {
		if x == s {
			w.v.waiting = append(w.v.waiting[:i], w.v.waiting[i+1:]...)
			break
		}
	}
	w.Cancel(s.timer)
	w.v.current = s.name
	w.saw(s.name)
}

func (w *World) endVirtual(err error) {
	for _, s := range w.v.waiting {
		if !s.ready {
			s.err = err
		}
		s.wake <- struct{}{}
	}
	w.v.waiting = nil
	w.v.ready = 0
}
