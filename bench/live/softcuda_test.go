//go:build cgo && linux

package main

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
)

// softDevice is the driver's device over the simulator, in this process.
type softDevice struct {
	*driver.Device
	soft *softcuda.Device
}

func init() { openers["softcuda"] = openSoft }

func openSoft(_ io.Writer, slow float64) (cuda.Device, error) {
	soft, err := softcuda.Add(sim.Options{Real: true, Slow: slow, SMs: simulatedSMs, Shareable: true})
	if err != nil {
		return nil, err
	}
	d, err := driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal()})
	if err != nil {
		return nil, errors.Join(err, soft.Remove())
	}
	return softDevice{d, soft}, nil
}

func (d softDevice) Close() error { return errors.Join(d.Device.Close(), d.soft.Remove()) }

// That simulator is as slow as it is told to be by other means.
func TestSlowIsTheSimulators(t *testing.T) {
	t.Setenv(openerVariable, "softcuda")
	status, out, errs := live("-slow", "3", "-nic", "copy")
	require.Equal(t, 2, status)
	require.Empty(t, out)
	require.Contains(t, errs, "-slow 3: the device is ")
}

// The driver's own code, in both processes.
func TestSoftcuda(t *testing.T) {
	t.Setenv(openerVariable, "softcuda")
	for _, kind := range nic.Kinds {
		t.Run(kind, func(t *testing.T) {
			if kind == nic.NIXL {
				needNIXL(t)
			}
			s := measured(t, "-nic", kind, "-for", "300ms", "-rounds", "1", "-mode", "Ungated,PerBlock+SkipCovered")
			require.Equal(t, kind, s.NIC.Kind)
			require.Equal(t, "driver", s.Device.Backend)
			require.NotEmpty(t, s.Device.Driver)
			require.True(t, s.Device.Simulated)
			require.True(t, s.Modes[0].Simulated)
		})
	}
}
