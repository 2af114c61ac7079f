package vtime

import "time"

// Event is something that will happen. The zero Event is none.
type Event struct {
	e   *event
	gen uint64
}

type event struct {
	t     time.Duration
	seq   uint64
	gen   uint64
	index int // in the queue; -1: among the due, -2: in neither
	what  string
	fn    func()
	actor *waiter // or: this one's time has come
}

// At makes fn run at t, or now if that has passed. fn runs with the machine
// locked and must not block.
func (w *World) At(t time.Duration, what string, fn func()) Event {
	return w.schedule(t, what, fn, nil)
}

// After makes fn run when d has passed.
func (w *World) After(d time.Duration, what string, fn func()) Event {
	return w.schedule(w.later(d), what, fn, nil)
}

// later returns now + d without overflow.
func (w *World) later(d time.Duration) time.Duration {
	if t := w.now + d; t >= w.now || d < 0 {
		return t
	}
	return 1<<63 - 1
}

func (w *World) schedule(t time.Duration, what string, fn func(), a *waiter) Event {
	var e *event
	if n := len(w.free); n > 0 {
		e, w.free = w.free[n-1], w.free[:n-1]
	} else {
		e = &event{}
	}
	w.seq++
	e.t, e.seq, e.what, e.fn, e.actor = max(t, w.now), w.seq, what, fn, a
	w.events.push(e)
	if !w.virtual {
		w.headMoved()
	}
	return Event{e, e.gen}
}

// Cancel takes e back and reports whether it had still to come.
func (w *World) Cancel(e Event) bool {
	if e.e == nil || e.e.gen != e.gen {
		return false
	}
	switch e.e.index {
	case -2:
		return false
	case -1:
		for i, d := range w.due {
			if d == e.e {
				w.due = append(w.due[:i], w.due[i+1:]...)
				break
			}
		}
	default:
		w.events.remove(e.e.index)
	}
	w.recycle(e.e)
	if !w.virtual {
		w.headMoved()
	}
	return true
}

func (w *World) recycle(e *event) {
	e.gen++
	e.index, e.fn, e.actor, e.what = -2, nil, nil, ""
	w.free = append(w.free, e)
}

// gather moves the events whose time has come to the due ones. An actor whose
// sleep is over is ready at once: it is chosen as an actor, not as an event.
func (w *World) gather() {
	for len(w.events) > 0 && w.events[0].t <= w.now {
		e := w.events[0]
		w.events.remove(0)
		if a := e.actor; a != nil && a.cond == nil {
			a.timer, a.ready = Event{}, true
			w.v.ready++
			w.recycle(e)
			continue
		}
		e.index = -1
		w.due = append(w.due, e)
	}
}

// runDue runs the k-th due event.
func (w *World) runDue(k int) {
	e := w.due[k]
	w.due = append(w.due[:k], w.due[k+1:]...)
	a, fn, what := e.actor, e.fn, e.what
	w.recycle(e)
	if a != nil {
		a.timer, a.expired = Event{}, true
		return
	}
	w.saw(what)
	fn()
}

// queue is a binary heap by time, then order of arrival.
type queue []*event

func (e *event) before(o *event) bool {
	return e.t < o.t || e.t == o.t && e.seq < o.seq
}

func (q *queue) push(e *event) {
	e.index = len(*q)
	*q = append(*q, e)
	q.up(e.index)
}

func (q *queue) remove(i int) {
	h := *q
	n := len(h) - 1
	h[i].index = -2
	if i != n {
		h[i] = h[n]
		h[i].index = i
	}
	h[n] = nil
	*q = h[:n]
	if i < n {
		q.down(i)
		q.up(i)
	}
}

func (q queue) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !q[i].before(q[p]) {
			return
		}
		q.swap(i, p)
		i = p
	}
}

func (q queue) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(q) {
			return
		}
		if c+1 < len(q) && q[c+1].before(q[c]) {
			c++
		}
		if !q[c].before(q[i]) {
			return
		}
		q.swap(i, c)
		i = c
	}
}

func (q queue) swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
