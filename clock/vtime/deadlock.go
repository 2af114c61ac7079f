package vtime

import (
	"fmt"
	"strings"
)

// DeadlockError ends a virtual world in which every actor waits and nothing
// is due. It is returned from the waits that made up the deadlock and from all
// later ones.
type DeadlockError struct {
	// Report says who waits for what.
	Report string
}

func (e *DeadlockError) Error() string { return "vtime: " + e.Report }

func (w *World) deadlock() error {
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock at %v: every actor waits and nothing is due\n", w.now)
	for _, s := range w.v.waiting {
		fmt.Fprintf(&b, "  actor %s waits for %s\n", s.name, s.cond)
	}
	for _, x := range w.explainers {
		fmt.Fprintf(&b, "%s:\n", x.name)
		x.fn(&b)
	}
	return &DeadlockError{Report: b.String()}
}
