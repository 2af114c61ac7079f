//go:build cgo && linux

package driver

import (
	"sync/atomic"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// Word returns the word that marks of a stream write.
func (w *Watched) Word(s cuda.Stream) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&w.words.Host[4*index(uint64(s))]))
}

// Attribute is a CU_DEVICE_ATTRIBUTE_*, by its number.
func (d *Device) Attribute(n int) (int, error) { return d.attribute(n) }

// SearchIn has Open look for libraries of those names until the function that it
// returns is called.
func SearchIn(names ...string) (restore func()) {
	before := libraries
	libraries = names
	return func() { libraries = before }
}

// Searched is where Open looks.
func Searched() []string { return libraries }
