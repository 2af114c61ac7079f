package vtime

import (
	"math"
	"time"
)

// Shared is a resource whose rate is divided among flows: memory bandwidth, a
// link. The division is max-min fair: every flow gets the same, but none more
// than its cap, and what the capped ones leave goes to the others.
//
// Its methods and those of [Flow] belong to the machine.
type Shared struct {
	w     *World
	name  string
	rate  float64 // bytes a second
	flows []*Flow
	at    time.Duration // when left of each flow was brought up to date
	next  Event
	first *Flow // the one that next is for
	fn    func()
	over  []*Flow // room for finish
}

// Flow is a number of bytes on its way through a [Shared].
type Flow struct {
	s    *Shared
	left float64
	cap  float64
	rate float64
	what string
	done func()
}

// NewShared returns a resource of that rate, which must be positive.
func NewShared(w *World, name string, bytesPerSecond float64) *Shared {
	if !(bytesPerSecond > 0) || math.IsInf(bytesPerSecond, 0) {
		panic("vtime: " + name + ": a shared resource needs a positive rate")
	}
	s := &Shared{w: w, name: name, rate: bytesPerSecond}
	s.fn = s.finish
	return s
}

// Rate returns the resource's rate in bytes a second.
func (s *Shared) Rate() float64 { return s.rate }

// Busy returns the number of flows.
func (s *Shared) Busy() int { return len(s.flows) }

// Start sends bytes through, at no more than cap bytes a second (0: as fast as
// the resource allows). done runs as an event when they have passed. Fewer
// than one byte passes at once, in an event of its own.
func (s *Shared) Start(bytes, cap float64, what string, done func()) *Flow {
	f := new(Flow)
	s.StartIn(f, bytes, cap, what, done)
	return f
}

// StartIn is Start in the memory of a flow that is new or has ended.
func (s *Shared) StartIn(f *Flow, bytes, cap float64, what string, done func()) {
	if f.rate != 0 {
		panic("vtime: " + s.name + ": a flow is started in the memory of one that has not ended")
	}
	s.update()
	if done == nil {
		done = func() {}
	}
	if !(cap > 0) {
		cap = math.Inf(1)
	}
	*f = Flow{s: s, left: max(bytes, 0), cap: cap, what: what, done: done}
	s.flows = append(s.flows, f)
	s.divide()
}

func (s *Shared) drop(f *Flow) {
	f.rate, f.left = 0, 0
	for i, x := range s.flows {
		if x == f {
			s.flows = append(s.flows[:i], s.flows[i+1:]...)
			return
		}
	}
}

// update takes off what has passed since the last time.
func (s *Shared) update() {
	d := (s.w.now - s.at).Seconds()
	s.at = s.w.now
	if d <= 0 {
		return
	}
	for _, f := range s.flows {
		f.left = max(f.left-f.rate*d, 0)
	}
}

// divide gives each flow its rate and plans the next end.
func (s *Shared) divide() {
	s.w.Cancel(s.next)
	s.next, s.first = Event{}, nil
	if len(s.flows) == 0 {
		return
	}
	for _, f := range s.flows {
		f.rate = -1
	}
	left, n := s.rate, len(s.flows)
	for again := true; again && n > 0; {
		again = false
		share := left / float64(n)
		for _, f := range s.flows {
			if f.rate < 0 && f.cap <= share {
				f.rate = f.cap
				left -= f.cap
				n--
				again = true
			}
		}
	}
	soonest := math.Inf(1)
	for _, f := range s.flows {
		if f.rate < 0 {
			f.rate = max(left, 0) / float64(n)
		}
		// Rounding may leave a flow without a rate; it must still end.
		f.rate = max(f.rate, math.SmallestNonzeroFloat64)
		if t := f.left / f.rate; t < soonest {
			soonest, s.first = t, f
		}
	}
	if s.first == nil {
		s.first = s.flows[0]
	}
	at := s.w.now
	if ns := math.Ceil(soonest * 1e9); ns < float64(math.MaxInt64-int64(at)) {
		at += time.Duration(ns)
	} else {
		at = math.MaxInt64
	}
	s.next = s.w.At(at, s.name, s.fn)
}

// finish ends the flow whose time has come, and all others that have less to
// go than passes in half a nanosecond: time has no finer grain.
func (s *Shared) finish() {
	s.next = Event{}
	s.update()
	over := s.over[:0]
	for _, f := range s.flows {
		if f == s.first || f.left <= f.rate*0.5e-9 {
			over = append(over, f)
		}
	}
	for _, f := range over {
		s.drop(f)
	}
	s.divide()
	s.over = over[:0]
	if len(over) == 1 {
		over[0].done()
		return
	}
	for _, f := range over {
		s.w.At(s.w.now, f.what, f.done)
	}
}
