//go:build cgo && linux

package driver_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/memory/layout"
)

// segmentBytes is what one cuMemMap maps of memory that was made virtual.
const segmentBytes = 2 << 20

// openSegments returns a device with memory that was mapped in three segments.
func openSegments(t *testing.T) (*driver.Device, cuda.DevicePtr) {
	soft, err := softcuda.Add(sim.Options{Real: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, soft.Remove()) })
	d, err := driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	p, err := d.Alloc(3*segmentBytes, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, soft.MakeVirtual(p))
	base, size, err := d.AllocRange(p + segmentBytes + 1)
	require.NoError(t, err)
	require.Equal(t, p+segmentBytes, base)
	require.EqualValues(t, segmentBytes, size)
	return d, p
}

// What crosses segments that adjoin is one range; what runs into a hole is none.
func TestAcrossSegments(t *testing.T) {
	d, p := openSegments(t)
	ctx := context.Background()
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	q, err := d.Alloc(3*segmentBytes, cuda.AllocOptions{})
	require.NoError(t, err)
	want := bytes.Repeat([]byte{0xa5}, 8192)
	got := make([]byte, len(want))
	at := p + segmentBytes - 4096

	require.NoError(t, d.Write(at, want))
	require.NoError(t, d.Read(got, at))
	require.Equal(t, want, got)

	var b cuda.Batch
	b.Copy(s, q, at, 8192)
	b.Copy(s, at+100, q, 8092)
	b.Fill32(s, p, 7, 3*segmentBytes/4)
	b.Copy(s, q, p, 3*segmentBytes)
	require.NoError(t, d.Submit(&b))
	require.NoError(t, d.SyncStream(ctx, s))
	last := make([]byte, 4)
	require.NoError(t, d.Read(last, q+3*segmentBytes-4))
	require.Equal(t, []byte{7, 0, 0, 0}, last)

	require.NoError(t, d.CopyIn(s, at, want))
	require.NoError(t, d.CopyOut(s, got, at))
	require.Equal(t, want, got)
	require.NoError(t, d.FillRows(s, at, 4096, 9, 4, 2))
	require.NoError(t, d.SyncStream(ctx, s))

	end := p + 3*segmentBytes
	for name, call := range map[string]func() error{
		"copy from": func() error { b.Reset(); b.Copy(s, q, end-8192, 8193); return d.Submit(&b) },
		"copy to":   func() error { b.Reset(); b.Copy(s, at, q, 2*segmentBytes+4097); return d.Submit(&b) },
		"fill":      func() error { b.Reset(); b.Fill8(s, at, 0, 2*segmentBytes+4097); return d.Submit(&b) },
		"write":     func() error { return d.Write(end-1, []byte{1, 2}) },
		"read":      func() error { return d.Read(make([]byte, 2), end-1) },
		"copy in":   func() error { return d.CopyIn(s, end-8191, want) },
		"copy out":  func() error { return d.CopyOut(s, got, end-8191) },
		"fill rows": func() error { return d.FillRows(s, end-4096, 4096, 9, 4, 2) },
	} {
		err := call()
		require.ErrorIs(t, err, cuda.ErrInvalidValue, name)
		require.ErrorContains(t, err, "is memory of the driver's", name)
	}
}

// An extent is what was mapped without a hole.
func TestExtentOfSegments(t *testing.T) {
	d, p := openSegments(t)
	for _, c := range []struct{ off, size, base, extent uint64 }{
		{5, segmentBytes - 5, 0, segmentBytes},
		{5, segmentBytes - 4, 0, 2 * segmentBytes},
		{segmentBytes, 2 * segmentBytes, segmentBytes, 2 * segmentBytes},
		{0, 1 << 40, 0, 3 * segmentBytes},
	} {
		base, extent, err := cuda.Extent(d, p+cuda.DevicePtr(c.off), c.size)
		require.NoError(t, err)
		require.Equal(t, p+cuda.DevicePtr(c.base), base)
		require.Equal(t, c.extent, extent)
	}
	_, _, err := cuda.Extent(d, p+3*segmentBytes, 1)
	require.ErrorIs(t, err, cuda.ErrNotFound)
}

// A pool of blocks may cross segments, and may not leave them.
func TestTableOverSegments(t *testing.T) {
	d, p := openSegments(t)
	pool := layout.Table{Pool: 1, Blocks: 6, Segments: []layout.Segment{{Base: uint64(p) + 4096, Stride: segmentBytes/2 - 1024, Page: 4096}}}
	table, err := kernels.NewTable(d, pool)
	require.NoError(t, err)
	require.NoError(t, table.Close())
	pool.Blocks = 7
	_, err = kernels.NewTable(d, pool)
	require.ErrorIs(t, err, layout.ErrTable)
	require.ErrorContains(t, err, "behind its allocation")
}
