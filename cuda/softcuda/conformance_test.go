//go:build cgo && linux

package softcuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
)

// add adds a device that goes with the test.
func add(t testing.TB, o sim.Options) *softcuda.Device {
	t.Helper()
	soft, err := softcuda.Add(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, soft.Remove()) })
	return soft
}

// open opens a driver's device over a simulated one.
func open(t testing.TB, o sim.Options) (*driver.Device, *softcuda.Device) {
	t.Helper()
	soft := add(t, o)
	d, err := driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d, soft
}

// The table of behaviours holds for the driver's code as for the simulator.
func TestConformance(t *testing.T) {
	t.Parallel()
	cudatest.Run(t, func(t *testing.T) cuda.Device {
		t.Parallel()
		d, _ := open(t, sim.Options{Real: true, Slow: 20})
		return d
	})
}

// The warm-up is clean: on a GPU, what it fails to do is only logged.
func TestWarm(t *testing.T) {
	d, _ := open(t, sim.Options{Real: true})
	require.NoError(t, cudatest.Warm(t, d))
}

// pair opens two devices of one world.
func pair(t testing.TB, slow float64) (a, b *driver.Device) {
	t.Helper()
	w := vtime.NewReal(vtime.Options{}, slow)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	a, _ = open(t, sim.Options{Name: "a", World: w})
	b, _ = open(t, sim.Options{Name: "b", World: w})
	return a, b
}

func TestConformanceOfPairs(t *testing.T) {
	t.Parallel()
	cudatest.RunPairs(t, func(t *testing.T) (cuda.Device, cuda.Device) {
		t.Parallel()
		a, b := pair(t, 20)
		return a, b
	})
}

// A device that is watched is one with nothing else changed. Host functions are
// left out: they hold their streams for longer than some of the behaviours
// allow for.
func TestConformanceWatched(t *testing.T) {
	t.Parallel()
	for _, source := range []driver.Wake{driver.WakeHelper, driver.WakeWord} {
		t.Run(source.String(), func(t *testing.T) {
			t.Parallel()
			cudatest.Run(t, func(t *testing.T) cuda.Device {
				t.Parallel()
				d, _ := open(t, sim.Options{Real: true, Slow: 20})
				w, err := d.Watch(source)
				require.NoError(t, err)
				return w
			})
		})
	}
}
