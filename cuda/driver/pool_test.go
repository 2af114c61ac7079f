//go:build cgo && linux

package driver_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/internal/abi/clib"
)

// Each call says which symbol it lacks.
func TestPoolsNeedTheirSymbols(t *testing.T) {
	calls := map[string]func(d *driver.Device, s cuda.Stream) error{
		"cuMemAllocAsync": func(d *driver.Device, s cuda.Stream) error {
			_, err := d.AllocAsync(s, 64, 0, cuda.AllocOptions{})
			return err
		},
		"cuMemAllocFromPoolAsync": func(d *driver.Device, s cuda.Stream) error {
			p, err := d.NewPool("")
			require.NoError(t, err)
			_, err = d.AllocAsync(s, 64, p, cuda.AllocOptions{})
			return err
		},
		"cuMemFreeAsync": func(d *driver.Device, s cuda.Stream) error {
			p, err := d.AllocAsync(s, 64, 0, cuda.AllocOptions{})
			require.NoError(t, err)
			err = d.FreeAsync(s, p)
			require.NoError(t, d.Free(p), "it is allocated still")
			return err
		},
		"cuMemPoolCreate": func(d *driver.Device, _ cuda.Stream) error {
			_, err := d.NewPool("")
			return err
		},
		"cuMemPoolDestroy": func(d *driver.Device, _ cuda.Stream) error {
			_, err := d.NewPool("")
			return err
		},
		"cuMemPoolGetAttribute": func(d *driver.Device, _ cuda.Stream) error {
			_, err := d.PoolAttribute(0, cuda.PoolUsed)
			return err
		},
		"cuMemPoolSetAttribute": func(d *driver.Device, _ cuda.Stream) error {
			return d.SetPoolAttribute(0, cuda.PoolUsedHigh, 0)
		},
		"cuMemPoolTrimTo":    func(d *driver.Device, _ cuda.Stream) error { return d.TrimPool(0, 0) },
		"cuDeviceGetMemPool": func(d *driver.Device, _ cuda.Stream) error { return d.TrimPool(0, 0) },
	}
	for symbol, call := range calls {
		d, err := openSoft(t, sim.Options{Real: true}, symbol)
		require.NoError(t, err)
		s, err := d.NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		err = call(d, s)
		require.ErrorIs(t, err, cuda.ErrNotSupported, symbol)
		require.ErrorContains(t, err, symbol)
	}
	d, err := driver.Open(driver.Options{Path: library(t, clib.NoOp, "KVG_WITHOUT_cuMemPoolCreate")})
	require.NoError(t, err)
	require.ErrorContains(t, calls["cuMemPoolCreate"](d, 0), "cuMemPoolCreate: the driver lacks the symbol")
	require.NoError(t, d.Close())
}

// Memory of pools, and pools, that are left go with the device.
func TestCloseWithPools(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	p, err := d.NewPool("left")
	require.NoError(t, err)
	for _, pool := range []cuda.Pool{0, p} {
		_, err := d.AllocAsync(s, 64, pool, cuda.AllocOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, d.Close())
	_, err = d.AllocAsync(s, 64, 0, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrClosed)
}

// The simulator tells the driver's callers of a use after a free as well.
func TestPoolUseAfterFreeReachesTheCaller(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	m, err := d.LoadModule(image(t))
	require.NoError(t, err)
	f, err := d.Function(m, "fill_index")
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, d.SetPoolAttribute(0, cuda.PoolReleaseThreshold, 1<<20))
	p, err := d.AllocAsync(s, 400, 0, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, d.FreeAsync(s, p))
	var b cuda.Batch
	b.Fill8(s, p, 1, 400)
	require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidValue)
	b.Reset()
	fillIndex(&b, s, f, p, 100, 0)
	require.NoError(t, d.Submit(&b))
	require.ErrorIs(t, d.SyncStream(context.Background(), s), cuda.ErrIllegalAddress)
}
