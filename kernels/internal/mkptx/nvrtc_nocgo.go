//go:build !cgo || !unix

package main

import (
	"fmt"

	"github.com/kvgate/kvgate/internal/dl"
)

// compiler is an open NVRTC of the pinned release.
type compiler struct{}

func openCompiler(path string) (*compiler, error) {
	return nil, fmt.Errorf("NVRTC can not be called: %w", dl.ErrNoCgo)
}

func (c *compiler) close() {}

// compile returns the PTX of a source. The error holds the compiler's log;
// warnings are errors too.
func (c *compiler) compile(src source, headers []source, options []string) ([]byte, error) {
	return nil, dl.ErrNoCgo
}
