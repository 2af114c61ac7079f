//go:build cgo && linux

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/nixl/softnic"
)

func needNIXL(*testing.T) {}

// The same over the driver's own code, and a simulated device behind it.
func TestSoftcuda(t *testing.T) {
	world := vtime.NewReal(vtime.Options{}, 1)
	soft, err := softcuda.Add(sim.Options{World: world})
	require.NoError(t, err)
	dev, err := driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal(), Clock: world})
	require.NoError(t, err)
	fabric := softnic.New(world, softnic.Options{})
	var out bytes.Buffer
	require.NoError(t, bothHere(t.Context(), &out, dev, soft.Sim().NIC(), fabric))
	require.Contains(t, out.String(), "content right")
	require.NoError(t, fabric.Close())
	require.NoError(t, dev.Close())
	require.NoError(t, soft.Remove())
	require.NoError(t, world.Close())
}
