// Package leak notes what is open and which stack opened it, so that tests can
// name what they left behind. It is off, and costs a load, unless a test turns
// it on; see internal/testutil.
package leak

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

var (
	on   atomic.Bool
	mu   sync.Mutex
	next uint64
	open = map[*Ticket]struct{}{}
)

// Ticket stands for one thing that is open. Nil stands for one that is not
// noted.
type Ticket struct {
	number     uint64
	kind, name string
	stack      []byte
}

// Enable notes what is opened from now on.
func Enable() { on.Store(true) }

// Open notes that a thing was opened by the caller.
func Open(kind, name string) *Ticket {
	if !on.Load() {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	next++
	t := &Ticket{next, kind, name, debug.Stack()}
	open[t] = struct{}{}
	return t
}

// Close notes that the thing was closed. It may be called more than once.
func (t *Ticket) Close() {
	if t == nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	delete(open, t)
}

// Report names what is open, in the order in which it was opened.
func Report() []string {
	mu.Lock()
	defer mu.Unlock()
	var ts []*Ticket
	for t := range open {
		ts = append(ts, t)
	}
	slices.SortFunc(ts, func(a, b *Ticket) int { return int(a.number) - int(b.number) })
	var lines []string
	for _, t := range ts {
		lines = append(lines, fmt.Sprintf("%s %q is open; it was made here:\n%s", t.kind, t.name, t.stack))
	}
	return lines
}
