//go:build cgo && linux

package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestPeersWithoutTheSymbols(t *testing.T) {
	w := vtime.NewReal(vtime.Options{}, 1)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	symbols := []string{"cuDeviceCanAccessPeer", "cuCtxEnablePeerAccess", "cuCtxDisablePeerAccess"}
	a, err := openSoft(t, sim.Options{World: w}, symbols...)
	require.NoError(t, err)
	b, err := openSoft(t, sim.Options{World: w})
	require.NoError(t, err)
	_, e1 := a.CanAccess(b)
	for i, err := range []error{e1, a.EnableAccess(b), a.DisableAccess(b)} {
		require.ErrorIs(t, err, cuda.ErrNotSupported)
		require.ErrorContains(t, err, symbols[i])
	}
}

func TestNoPeers(t *testing.T) {
	a, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	b, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	can, err := a.CanAccess(b)
	require.NoError(t, err)
	require.False(t, can, "simulated devices of two worlds")
	require.ErrorIs(t, a.EnableAccess(b), cuda.ErrPeerUnsupported)
	_, err = a.CanAccess(nil)
	require.ErrorIs(t, err, cuda.ErrInvalidDevice)
	simulated, err := sim.New(sim.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, simulated.Close()) }()
	require.ErrorIs(t, a.EnableAccess(simulated), cuda.ErrInvalidDevice, "another back end")
	require.NoError(t, b.Close())
	require.ErrorIs(t, a.EnableAccess(b), cuda.ErrClosed)
}
