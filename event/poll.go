package event

import (
	"context"
	"errors"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
)

const (
	// askEvery is how long a wait trusts a device that tells of no movement. A
	// device error need not move anything, and surfaces at the next question.
	askEvery = 5 * time.Millisecond

	// A device that can not tell of movement is asked again after a pause. It
	// doubles from the first to the second while nothing fires.
	minPause = 5 * time.Microsecond
	maxPause = 200 * time.Microsecond

	// densePolls is how many of a timeline's oldest open marks are all asked
	// after. Behind them the distance doubles, and the newest is asked after
	// too, so that a thousand open marks cost some twenty questions.
	densePolls = 8
)

// Moved reports whether a poll may find news. It is cheap and never crosses
// into the device. Without a [cuda.Watcher] it is true while marks are open.
func (r *Registry) Moved() bool {
	if r.open.Load() == 0 {
		return false
	}
	return r.watch == nil || r.again.Load() || r.watch.Activity() != r.polledAt.Load()
}

func (r *Registry) activity() uint64 {
	if r.watch == nil {
		return 0
	}
	return r.watch.Activity()
}

// Poll asks the device after the open marks of all timelines in one crossing
// and returns how many marks are newly known to have fired. Without open marks
// it does not cross. Callbacks of [Fence.OnDone] run before it returns.
//
// An error that is sticky, or says that the device is closed, kills the
// registry; Poll returns the first cause from then on.
func (r *Registry) Poll() (fired int, err error) {
	if r.open.Load() == 0 {
		return 0, r.Err()
	}
	r.polling.Lock()
	fired, calls, err := r.poll()
	r.polling.Unlock()
	if err != nil {
		if fatal(err) {
			r.kill(err)
			err = r.Err()
		}
		return 0, err
	}
	if calls != nil {
		for _, c := range calls {
			c.fn(c.err)
		}
		clear(calls)
		r.mu.Lock()
		r.ready = calls[:0]
		r.mu.Unlock()
	}
	if fired > 0 {
		r.clk.Notify()
	}
	return fired, nil
}

func (r *Registry) poll() (fired int, calls []call, err error) {
	r.again.Store(false)
	at := r.activity() // before the question, so that no movement is missed
	r.ask()
	if len(r.marks) == 0 {
		return 0, nil, r.Err()
	}
	if err := r.dev.Poll(r.marks); err != nil {
		return 0, nil, err
	}
	r.polledAt.Store(at)

	r.mu.Lock()
	defer r.mu.Unlock()
	for i := 0; i < len(r.asked); {
		t, end := r.asked[i].t, i
		reached, next := -1, -1
		for end < len(r.asked) && r.asked[end].t == t {
			if r.marks[end].State == cuda.MarkFired {
				reached, next = end, -1
			} else if next < 0 {
				next = end
			}
			end++
		}
		if reached >= 0 && !t.closed && r.err == nil {
			fired += r.advance(t, r.asked[reached].index+1, r.asked[reached].seq)
			if next >= 0 && r.asked[next].index > r.asked[reached].index+1 {
				r.again.Store(true) // some in between may have fired as well
			}
		}
		i = end
	}
	if len(r.ready) > 0 {
		calls, r.ready = r.ready, nil
	}
	return fired, calls, nil
}

// ask fills marks and asked with the questions of one poll.
func (r *Registry) ask() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks, r.asked = r.marks[:0], r.asked[:0]
	for _, t := range r.timelines {
		n := t.open.Len()
		for i := 0; i < n; {
			m := t.open.At(i)
			r.marks = append(r.marks, cuda.Mark{Event: r.slots[m.slot].event})
			r.asked = append(r.asked, askedMark{t, m.seq, i})
			switch {
			case i < densePolls-1:
				i++
			case i == n-1:
				i = n
			default:
				i = min(2*i+1, n-1)
			}
		}
	}
}

// advance books that the n oldest open marks of t, up to seq, have fired.
func (r *Registry) advance(t *Timeline, n int, seq kv.Seq) int {
	for i := range n {
		r.freeSlot(t.open.At(i).slot)
	}
	t.open.Pop(n)
	r.open.Add(-int64(n))
	t.completed.Store(uint64(seq))
	t.moved = r.moves.Load() + 1
	r.moves.Store(t.moved)
	w := 0
	for w < len(t.waiters) && t.waiters[w].seq <= seq {
		r.ready = append(r.ready, call{t.waiters[w].fn, nil})
		w++
	}
	if w > 0 {
		left := copy(t.waiters, t.waiters[w:])
		clear(t.waiters[left:])
		t.waiters = t.waiters[:left]
	}
	return n
}

// WaitUntil blocks until c is done, and polls the device meanwhile, so that c
// may depend on fences of this registry. It returns the device's error once
// that died, [context.DeadlineExceeded] at the deadline (an instant of the
// device's clock), and ctx's cause when ctx is done; when c is done, that wins
// over all of them. Once c has said that it is done it is not called again.
func (r *Registry) WaitUntil(ctx context.Context, c clock.Cond, deadline time.Duration) error {
	w := &waitCond{r: r, c: c}
	pause, ask := minPause, r.watch == nil
	for {
		if w.finished() {
			return nil
		}
		if err := r.Err(); err != nil {
			return err
		}
		if ask || r.Moved() {
			fired, err := r.Poll()
			if w.finished() {
				return nil
			}
			if err != nil {
				return err
			}
			if fired > 0 {
				pause = minPause
				continue
			}
		}
		until := deadline
		switch {
		case r.watch == nil:
			until = min(until, r.clk.Now()+pause)
			pause = min(2*pause, maxPause)
		case !r.clk.Virtual():
			until = min(until, r.clk.Now()+askEvery)
		}
		err := r.clk.WaitUntil(ctx, w, until)
		ask = r.watch == nil
		if err == nil {
			continue
		}
		if w.done {
			return nil
		}
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || r.clk.Now() >= deadline {
			return err
		}
		ask = true
	}
}

// waitCond ends a wait of the clock when c is done, when a poll may find news,
// or when the device is dead.
type waitCond struct {
	r    *Registry
	c    clock.Cond
	done bool
}

func (w *waitCond) finished() bool {
	if !w.done {
		w.done = w.c.Done()
	}
	return w.done
}

func (w *waitCond) Done() bool {
	if w.finished() || w.r.dead.Load() {
		return true
	}
	return w.r.watch != nil && w.r.Moved()
}

func (w *waitCond) String() string { return w.c.String() }
