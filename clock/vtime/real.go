package vtime

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
)

// Assumptions of this package about the machine that it runs on.
const (
	// spinBelow is how close an event must be for the pacer to wait for it by
	// yielding rather than by a timer, which is late by tens of microseconds.
	spinBelow = 50 * time.Microsecond
	// jitter is how late an event may run without stretching device time:
	// what timers and the scheduler are late by.
	jitter = 200 * time.Microsecond
	// A wait looks again after minPause, then ever more seldom, as the wall
	// clock's does.
	minPause = 20 * time.Microsecond
	maxPause = 200 * time.Microsecond
)

// realState is what the real pacer adds to a world.
//
// Device time is the wall's less the lag, but never later than the next event
// that has not run. limit is the time of that event and keeps it until its
// function has returned.
type realState struct {
	start   time.Time
	lag     atomic.Int64
	limit   atomic.Int64
	running bool // an event function is: under mu
	kick    chan struct{}
	stop    chan struct{}
	done    chan struct{}

	wmu     sync.Mutex // taken with mu held, never the other way round
	waiting []*realWaiter
}

type realWaiter struct {
	wake    chan struct{}
	expired atomic.Bool
}

// NewReal returns a world that is paced by the wall clock; slow of at least 1
// is handed on by [World.Slow]. Any goroutine may use it. It does not detect
// deadlocks, since it can't know who else may call.
func NewReal(o Options, slow float64) *World {
	w := newWorld(o)
	w.slow = max(slow, 1)
	w.r.start = time.Now()
	w.r.limit.Store(int64(clock.Never))
	w.r.kick = make(chan struct{}, 1)
	w.r.stop = make(chan struct{})
	w.r.done = make(chan struct{})
	go w.pace()
	return w
}

func (w *World) realNow() time.Duration {
	// The limit before the lag: the pacer moves the lag first.
	limit := w.r.limit.Load()
	t := min(limit, int64(time.Since(w.r.start))-w.r.lag.Load())
	for {
		shown := w.shown.Load()
		if t <= shown {
			return time.Duration(shown)
		}
		if w.shown.CompareAndSwap(shown, t) {
			return time.Duration(t)
		}
	}
}

// Lag returns how far device time has fallen behind the wall because the
// machine was slower than its model. It is 0 on virtual time.
func (w *World) Lag() time.Duration {
	if w.virtual {
		return 0
	}
	lag := w.r.lag.Load()
	behind := int64(time.Since(w.r.start)) - w.r.limit.Load()
	return time.Duration(max(lag, behind))
}

// headMoved publishes the time of the next event, and tells the pacer if that
// comes sooner than what it waits for.
func (w *World) headMoved() {
	if w.r.running {
		return
	}
	before := w.r.limit.Load()
	w.publish()
	if w.r.limit.Load() >= before {
		return
	}
	select {
	case w.r.kick <- struct{}{}:
	default:
	}
}

func (w *World) publish() {
	limit := int64(clock.Never)
	if len(w.due) > 0 {
		limit = int64(w.due[0].t)
	} else if len(w.events) > 0 {
		limit = int64(w.events[0].t)
	}
	w.r.limit.Store(limit)
}

func (w *World) pace() {
	defer close(w.r.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		w.mu.Lock()
		ran, left := w.step()
		w.mu.Unlock()
		switch {
		case ran:
			w.wakeAll()
			continue
		case left <= spinBelow:
			runtime.Gosched()
			select {
			case <-w.r.stop:
				return
			default:
			}
			continue
		}
		timer.Reset(left - spinBelow/2)
		select {
		case <-timer.C:
		case <-w.r.kick:
		case <-w.r.stop:
			return
		}
	}
}

// step runs one event that is due, or tells how long until there is one.
func (w *World) step() (ran bool, left time.Duration) {
	if w.ended.Load() != nil {
		return false, time.Hour
	}
	if len(w.due) == 0 {
		if len(w.events) == 0 {
			return false, time.Hour
		}
		t := w.events[0].t
		if left := t - (time.Since(w.r.start) - time.Duration(w.r.lag.Load())); left > 0 {
			return false, left
		}
		w.now = t
	}
	// After Enter time may have moved on to an event of the same instant only.
	w.gather()
	w.r.running = true
	w.runDue(w.Choose("next", len(w.due)))
	w.look()
	w.r.running = false
	late := time.Since(w.r.start) - time.Duration(w.r.lag.Load()) - w.now
	if late > jitter {
		w.r.lag.Add(int64(late - jitter))
	}
	w.publish()
	return true, 0
}

func (w *World) wakeAll() {
	w.r.wmu.Lock()
	for _, s := range w.r.waiting {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	w.r.wmu.Unlock()
}

func (w *World) sleepReal(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return w.endErr()
	}
	w.Enter(0)
	t := w.later(d)
	w.Exit()
	err := w.waitReal(ctx, nil, t)
	if err == context.DeadlineExceeded && ctx.Err() == nil {
		return nil
	}
	return err
}

// waitReal waits on the caller's goroutine; cond is asked there, without the
// machine's lock, again after each event and each Notify, and from time to time:
// what it depends on may be no part of the machine.
func (w *World) waitReal(ctx context.Context, c clock.Cond, deadline time.Duration) error {
	if c != nil && c.Done() {
		return nil
	}
	s := &realWaiter{wake: make(chan struct{}, 1)}
	w.r.wmu.Lock()
	w.r.waiting = append(w.r.waiting, s)
	w.r.wmu.Unlock()
	var timer Event
	if deadline != clock.Never {
		w.Enter(0)
		timer = w.At(deadline, "deadline", func() { s.expired.Store(true) })
		w.Exit()
	}
	err := w.block(ctx, c, s)
	w.r.wmu.Lock()
	for i, x := range w.r.waiting {
		if x == s {
			w.r.waiting = append(w.r.waiting[:i], w.r.waiting[i+1:]...)
			break
		}
	}
	w.r.wmu.Unlock()
	if timer.e != nil && !s.expired.Load() {
		w.Enter(0)
		w.Cancel(timer)
		w.Exit()
	}
	return err
}

func (w *World) block(ctx context.Context, c clock.Cond, s *realWaiter) error {
	var look <-chan time.Time
	var timer *time.Timer
	pause := minPause
	if c != nil {
		timer = time.NewTimer(pause)
		defer timer.Stop()
		look = timer.C
	}
	for {
		expired := s.expired.Load() // before cond, which wins
		if c != nil && c.Done() {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if expired {
			return context.DeadlineExceeded
		}
		if err := w.endErr(); err != nil {
			return err
		}
		select {
		case <-s.wake:
		case <-look:
			pause = min(2*pause, maxPause)
			timer.Reset(pause)
		case <-ctx.Done():
		case <-w.r.stop:
		}
	}
}
