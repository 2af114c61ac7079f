//go:build cgo && linux

package driver_test

import (
	"slices"
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

// Of two symbols that a call needs the error names the one that is missing.
func TestTheMissingSymbolIsNamed(t *testing.T) {
	for _, symbols := range [][]string{
		{"cuMemHostRegister_v2", "cuMemHostUnregister"},
		{"cuCtxGetFlags", "cuCtxSetFlags"},
	} {
		for _, missing := range [][]string{symbols[:1], symbols[1:], symbols} {
			// Without the attribute of a range, the context needs the flag.
			d, err := openSoft(t, sim.Options{Real: true}, append([]string{"cuPointerSetAttribute"}, missing...)...)
			require.NoError(t, err)
			switch symbols[0] {
			case "cuMemHostRegister_v2":
				_, err = d.RegisterHost(make([]byte, 64))
			default:
				p, e := d.Alloc(64, cuda.AllocOptions{})
				require.NoError(t, e)
				_, err = d.PrepareRDMA(p, 64)
			}
			require.ErrorIs(t, err, cuda.ErrNotSupported)
			for _, s := range symbols {
				if slices.Contains(missing, s) {
					require.ErrorContains(t, err, s)
				} else {
					require.NotContains(t, err.Error(), s)
				}
			}
		}
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
