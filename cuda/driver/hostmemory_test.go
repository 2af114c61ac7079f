//go:build cgo && linux

package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestHostMemoryWithoutTheSymbols(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true}, "cuMemAllocManaged", "cuMemHostRegister_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2")
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	p, err := d.Alloc(64, cuda.AllocOptions{})
	require.NoError(t, err)
	for symbol, call := range map[string]func() error{
		"cuMemAllocManaged":    func() error { _, err := d.AllocManaged(64, cuda.AllocOptions{}); return err },
		"cuMemHostRegister_v2": func() error { _, err := d.RegisterHost(make([]byte, 64)); return err },
		"cuMemcpyHtoDAsync_v2": func() error { return d.CopyIn(s, p, make([]byte, 64)) },
		"cuMemcpyDtoHAsync_v2": func() error { return d.CopyOut(s, make([]byte, 64), p) },
	} {
		err := call()
		require.ErrorIs(t, err, cuda.ErrNotSupported)
		require.ErrorContains(t, err, symbol)
	}
}

func TestManagedMemoryIsNotForTheHostMeanwhile(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true, ExclusiveManaged: true})
	require.NoError(t, err)
	require.False(t, d.Info().ConcurrentManaged)
	d, err = openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	require.True(t, d.Info().ConcurrentManaged)
}

// What is left of each kind of memory goes with the device.
func TestCloseGivesBackHostMemory(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	m, err := d.AllocManaged(64, cuda.AllocOptions{})
	require.NoError(t, err)
	_, err = d.RegisterHost(m.Host)
	require.ErrorIs(t, err, cuda.ErrHostRegistered)
	h, err := d.AllocPinned(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, h.Host)
	require.NoError(t, d.Close())
	_, err = d.AllocManaged(64, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrClosed)
}
