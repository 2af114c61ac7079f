//go:build !cgo || !unix

package nvrtc

import (
	"fmt"

	"github.com/kvgate/kvgate/internal/dl"
)

// Library is an open NVRTC. Built without cgo there is none.
type Library struct{}

// Open opens NVRTC. The error wraps [ErrNoCompiler] and says that this program was
// built without cgo.
func Open(path string) (*Library, error) {
	from := names
	if path != "" {
		from = []string{path}
	}
	_, err := dl.Open(from...)
	return nil, fmt.Errorf("nvrtc: %w: %w", ErrNoCompiler, err)
}

// Version returns the release of CUDA that the library is of.
func (l *Library) Version() (major, minor int) { return 0, 0 }

// Path returns the file that was loaded.
func (l *Library) Path() string { return "" }

// Close gives the library back.
func (l *Library) Close() error { return nil }

// Compile makes PTX of a program.
func (l *Library) Compile(p Program) (*Output, error) {
	return nil, fmt.Errorf("nvrtc: %s: %w: %w", p.Name, ErrNoCompiler, dl.ErrNoCgo)
}
