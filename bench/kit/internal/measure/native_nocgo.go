//go:build !cgo || !linux

package measure

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// Without cgo there is no device to measure.

func now() int64 { return 0 }

type observer struct{}

func newObserver(cuda.PinnedBuffer) (*observer, error) {
	return nil, fmt.Errorf("built without cgo: %w", cuda.ErrNotSupported)
}

func (o *observer) arm(uint32)      {}
func (o *observer) at(uint32) int64 { return 0 }
func (o *observer) close()          {}

type stamp struct{}

func newStamp() *stamp               { return &stamp{} }
func (s *stamp) fn() unsafe.Pointer  { return nil }
func (s *stamp) arg() unsafe.Pointer { return nil }
func (s *stamp) since(int64) int64   { return 0 }
func (s *stamp) free()               {}
