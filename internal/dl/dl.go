// Package dl opens shared libraries at run time, so that nothing of this module
// links against a library that a machine may lack.
//
// It resolves names to addresses and no more: to call a function, a package has
// a C shim of its own that takes the address. Built without cgo, every Open
// fails with [ErrNoCgo].
package dl

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNoCgo: the program was built without cgo.
	ErrNoCgo = errors.New("built without cgo")
	// ErrNoLibrary: none of the libraries asked for is there.
	ErrNoLibrary = errors.New("no such library")
	// ErrBadLibrary: one at least is there, and none could be loaded.
	ErrBadLibrary = errors.New("library can not be loaded")
	// ErrNoSymbol: the library has no such symbol.
	ErrNoSymbol = errors.New("no such symbol")
	// ErrClosed: the library has been closed.
	ErrClosed = errors.New("library closed")
)

// OpenError says why none of the libraries could be loaded.
type OpenError struct {
	Names   []string
	Reasons []string // one for each name, as the loader gave it
	kind    error
}

func (e *OpenError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "dl: %v", e.kind)
	for i, n := range e.Names {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%q", sep, n)
		if i < len(e.Reasons) {
			fmt.Fprintf(&b, " (%s)", e.Reasons[i])
		}
	}
	return b.String()
}

// missing reports whether the loader's reason is that there is no file of that
// name, rather than what is wrong with the file, or another that it needs.
// glibc and musl put it differently.
func missing(name, reason string) bool {
	return name == "" || strings.Contains(reason, "No such file or directory") &&
		(strings.HasPrefix(reason, name+":") || strings.HasPrefix(reason, "Error loading shared library "+name+":"))
}

// Unwrap returns ErrNoLibrary, ErrBadLibrary or ErrNoCgo.
func (e *OpenError) Unwrap() error { return e.kind }
