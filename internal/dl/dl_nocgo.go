//go:build !cgo || !unix

package dl

import (
	"fmt"
	"unsafe"
)

// Library is a loaded shared library. Its methods are safe for use by several
// goroutines. Whoever opened it closes it; addresses from it are dead then.
type Library struct{}

// Open loads the first of the named libraries that can be loaded: a file name
// for the loader's search path, or a path. All symbols are bound at once and
// kept out of the global scope. The error is an *[OpenError].
func Open(names ...string) (*Library, error) {
	return nil, &OpenError{Names: names, kind: ErrNoCgo}
}

// Name returns which of the names given to Open was loaded.
func (l *Library) Name() string { return "" }

// Path returns the file that was loaded, as the loader knows it.
func (l *Library) Path() string { return "" }

// Symbol returns the address of a symbol. It wraps [ErrNoSymbol] when there is
// none, and [ErrClosed] after Close.
func (l *Library) Symbol(name string) (unsafe.Pointer, error) {
	return nil, fmt.Errorf("dl: symbol %s: %w", name, ErrNoCgo)
}

// Close gives the library back to the loader, which may unload it. A second
// Close does nothing.
func (l *Library) Close() error { return nil }
