package clock

import (
	"context"
	"sync"
)

// Mutex is a lock that may be held across a wait of its clock. A plain
// sync.Mutex held there stops virtual time: the goroutine that would release
// it can not run while another blocks outside the clock.
//
// The zero Mutex is not usable; make one with [NewMutex].
type Mutex struct {
	mu      sync.Mutex
	clk     Clock
	virtual bool
}

// NewMutex returns an unlocked mutex for goroutines that run on clk.
func NewMutex(clk Clock) *Mutex { return &Mutex{clk: clk, virtual: clk.Virtual()} }

// Lock blocks until the mutex is held by the caller.
func (m *Mutex) Lock() {
	if m.mu.TryLock() {
		return
	}
	if !m.virtual {
		m.mu.Lock()
		return
	}
	// Done takes the lock itself, so that no other waiter can slip in between.
	// A clock that has been closed under a waiter no longer schedules, so the
	// plain lock is all that is left.
	if m.clk.WaitUntil(context.Background(), (*lockCond)(m), Never) != nil {
		m.mu.Lock()
	}
}

// Unlock releases the mutex.
func (m *Mutex) Unlock() { m.mu.Unlock() }

type lockCond Mutex

func (l *lockCond) Done() bool     { return l.mu.TryLock() }
func (l *lockCond) String() string { return "mutex" }
