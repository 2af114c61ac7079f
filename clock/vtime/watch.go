package vtime

import "time"

// How long the real pacer lets pass between two looks at what is watched, while
// nothing else happens that would make it look, and after how many looks it does
// so less often: what a timer's lateness makes of shorter times is not worth them.
const (
	lookEvery     = 100 * time.Microsecond
	idleLookEvery = time.Millisecond
	lookPatience  = 1000
)

// watch is a condition of the machine that nobody announces.
type watch struct {
	cond func() bool
	what string
	fn   func()
}

// Watch makes fn run once, as an event of that instant, when cond has become
// true. It is for what changes without the machine's doing, as memory that
// goroutines write: cond is asked, with the machine locked, after each event,
// whenever an actor gives way or enters, and under the real pacer also from time
// to time. It must not call the world. Unlike a pending event a watch does not
// keep a virtual world from being found deadlocked.
func (w *World) Watch(what string, cond func() bool, fn func()) {
	w.watches = append(w.watches, &watch{cond, what, fn})
	w.look()
	w.lookAgain()
}

// look plans the events of the watches that are over.
func (w *World) look() {
	if len(w.watches) == 0 {
		return
	}
	kept := w.watches[:0]
	for _, x := range w.watches {
		if x.cond() {
			w.At(w.now, x.what, x.fn)
			w.idle = 0
			continue
		}
		kept = append(kept, x)
	}
	clear(w.watches[len(kept):])
	w.watches = kept
}

// lookAgain keeps the real pacer looking as long as there is something to see.
func (w *World) lookAgain() {
	if w.virtual || len(w.watches) == 0 || w.looking.e != nil {
		return
	}
	every := lookEvery
	if w.idle++; w.idle > lookPatience {
		every = idleLookEvery
	}
	w.looking = w.After(every, "look", func() {
		w.looking = Event{}
		w.look()
		w.lookAgain()
	})
}
