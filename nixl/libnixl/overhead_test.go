//go:build linux

package libnixl

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

// idle is a library whose calls of a transfer do nothing, to see what the
// binding itself costs.
type idle struct{ driver }

var something int

func (idle) create(handle, *nixl.Spec, []byte) (handle, status, error) {
	return unsafe.Pointer(&something), statusOK, nil
}
func (idle) post(handle, handle) (status, error)    { return statusOK, nil }
func (idle) release(handle, handle) (status, error) { return statusOK, nil }

// BenchmarkOverhead is the binding without the library and without cgo.
func BenchmarkOverhead(b *testing.B) {
	p := newPair(b, 1<<20, Config{})
	p.a.d = idle{p.a.d}
	spec := p.spec(nixl.Read, 0, 4096)
	b.Run("make and release", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x, err := p.a.NewTransfer(spec)
			if err != nil {
				b.Fatal(err)
			}
			if err := x.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("repost", func(b *testing.B) {
		b.ReportAllocs()
		x, err := p.a.NewTransfer(spec)
		require.NoError(b, err)
		for b.Loop() {
			if err := x.Post(); err != nil {
				b.Fatal(err)
			}
			if s, err := x.Status(); s != nixl.Done {
				b.Fatal(err)
			}
		}
		require.NoError(b, x.Close())
	})
}
