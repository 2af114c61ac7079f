//go:build cgo && linux

package driver_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestRDMA(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	require.Equal(t, driver.RDMA{Supported: true, CanFlush: true}, d.RDMA())
	p, err := d.Alloc(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, d.PrepareRDMA(p+100))
	require.ErrorIs(t, d.PrepareRDMA(0x1000), cuda.ErrInvalidValue)
	require.NoError(t, d.FlushRDMA())

	d, err = openSoft(t, sim.Options{Real: true}, "cuPointerSetAttribute", "cuFlushGPUDirectRDMAWrites")
	require.NoError(t, err)
	err = d.PrepareRDMA(p)
	require.ErrorIs(t, err, cuda.ErrNotSupported)
	require.ErrorContains(t, err, "cuPointerSetAttribute")
	err = d.FlushRDMA()
	require.ErrorIs(t, err, cuda.ErrNotSupported)
	require.ErrorContains(t, err, "cuFlushGPUDirectRDMAWrites")
}

func TestIdentity(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	pci, err := d.PCIAddress()
	require.NoError(t, err)
	require.Regexp(t, `^0000:[0-9A-F]{2,}:00\.0$`, pci)
	uuid, err := d.UUID()
	require.NoError(t, err)
	require.Regexp(t, `^GPU-6b766761-7465-2d73-696d-0000[0-9a-f]{8}$`, uuid)
	d, err = openSoft(t, sim.Options{Real: true}, "cuDeviceGetPCIBusId", "cuDeviceGetUuid_v2")
	require.NoError(t, err)
	_, err = d.PCIAddress()
	require.ErrorIs(t, err, cuda.ErrNotSupported)
	_, err = d.UUID()
	require.ErrorIs(t, err, cuda.ErrNotSupported)
}

func TestKill(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, d.Kill(cuda.ErrNotReady, "no"), cuda.ErrInvalidValue)
	require.NoError(t, d.Kill(cuda.ErrECC, "Xid 48"))
	require.NoError(t, d.Kill(cuda.ErrAssert, "later"))
	err = d.SyncStream(context.Background(), s)
	require.ErrorIs(t, err, cuda.ErrECC)
	require.ErrorContains(t, err, "Xid 48")
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.Kill(cuda.ErrECC, "too late"), cuda.ErrClosed)
}
