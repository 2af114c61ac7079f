//go:build cgo && linux

package driver_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
)

func TestRDMA(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	require.Equal(t, cuda.RDMA{Supported: true, CanFlush: true}, d.RDMA())
	require.NoError(t, d.FlushRDMA())
	d, err = openSoft(t, sim.Options{Real: true, NICWritesLate: true})
	require.NoError(t, err)
	require.Equal(t, cuda.RDMA{Supported: true, NeedsFlush: true, CanFlush: true}, d.RDMA())

	d, err = openSoft(t, sim.Options{Real: true}, "cuFlushGPUDirectRDMAWrites")
	require.NoError(t, err)
	require.False(t, d.RDMA().CanFlush)
	err = d.FlushRDMA()
	require.ErrorIs(t, err, cuda.ErrNotSupported)
	require.ErrorContains(t, err, "cuFlushGPUDirectRDMAWrites")
}

// Each allocation has its attribute; memory of the virtual memory functions has
// none, so that the context gets a flag.
func TestPrepareRDMA(t *testing.T) {
	soft, err := softcuda.Add(sim.Options{Real: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, soft.Remove()) })
	open := func(missing ...string) *driver.Device {
		names := map[string]bool{}
		for _, n := range missing {
			names[n] = true
		}
		d, err := driver.Open(driver.Options{Library: without{softcuda.Library{}, names}, Device: soft.Ordinal()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		return d
	}
	d := open()
	p, err := d.Alloc(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	h, err := d.AllocPinned(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	sync, err := d.PrepareRDMA(p+100, 3996)
	require.NoError(t, err)
	require.Equal(t, cuda.SyncRange, sync)
	require.True(t, soft.SyncMemops(p))
	require.False(t, soft.SyncMemops(0))
	sync, err = d.PrepareRDMA(h.Device, 4096)
	require.NoError(t, err)
	require.Equal(t, cuda.SyncNotNeeded, sync)
	for what, bad := range map[string][2]uint64{"over the end": {uint64(p), 4097}, "nowhere": {0x1000, 1}, "past the end of addresses": {^uint64(0), 2}} {
		_, err = d.PrepareRDMA(cuda.DevicePtr(bad[0]), bad[1])
		require.ErrorIs(t, err, cuda.ErrInvalidValue, what)
		require.ErrorContains(t, err, "not all of it is memory of the driver's")
	}

	v, err := d.Alloc(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, soft.MakeVirtual(v))
	require.ErrorIs(t, soft.MakeVirtual(0x1000), cuda.ErrNotFound)
	old := open("cuCtxSetFlags") // CUDA 12.0
	_, err = old.PrepareRDMA(v, 4096)
	require.ErrorIs(t, err, cuda.ErrNotSupported)
	require.ErrorContains(t, err, "no cuCtxSetFlags for the context")
	require.Zero(t, soft.ContextFlags()&0x80)
	sync, err = d.PrepareRDMA(v, 4096)
	require.NoError(t, err)
	require.Equal(t, cuda.SyncContext, sync)
	require.False(t, soft.SyncMemops(v))
	require.NotZero(t, soft.ContextFlags()&0x80, "CU_CTX_SYNC_MEMOPS")
	sync, err = open("cuPointerSetAttribute").PrepareRDMA(p, 4096)
	require.NoError(t, err)
	require.Equal(t, cuda.SyncContext, sync)
}

// The whole context is told at open, before any work, where that is asked for; and
// a driver that can't is told of, rather than passed over.
func TestSyncMemopsAtOpen(t *testing.T) {
	soft, err := softcuda.Add(sim.Options{Real: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, soft.Remove()) })
	o := driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal()}
	d, err := driver.Open(o)
	require.NoError(t, err)
	require.Zero(t, soft.ContextFlags()&0x80, "the context stays as it is")
	require.NoError(t, d.Close())
	o.SyncMemops = true
	d, err = driver.Open(o)
	require.NoError(t, err)
	require.NotZero(t, soft.ContextFlags()&0x80, "CU_CTX_SYNC_MEMOPS")
	require.NoError(t, d.Close())
	for _, symbol := range []string{"cuCtxGetFlags", "cuCtxSetFlags"} {
		o.Library = without{softcuda.Library{}, map[string]bool{symbol: true}}
		_, err = driver.Open(o)
		require.ErrorIs(t, err, cuda.ErrNotSupported)
		require.ErrorContains(t, err, symbol)
		require.NotErrorIs(t, err, cuda.ErrNoDriver, "there is a driver")
	}
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
