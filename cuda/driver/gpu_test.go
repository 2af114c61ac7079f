//go:build cgo && linux

package driver_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/conformance"
	"github.com/kvgate/kvgate/cuda/driver"
)

// requireGPU makes the tests that need a GPU fail where there is none, and run
// over a simulated one, to rehearse them.
const requireGPU = "KVGATE_REQUIRE_GPU"

// openGPU opens the machine's GPU. Without one the test is skipped.
func openGPU(t testing.TB) *driver.Device {
	t.Helper()
	d, err := driver.Open(driver.Options{})
	if errors.Is(err, cuda.ErrNoDriver) && os.Getenv(requireGPU) == "" {
		t.Skipf("needs a GPU (%s=1 makes this a failure): %v", requireGPU, err)
	}
	require.NoError(t, err)
	if d.Info().Simulated && os.Getenv(requireGPU) == "" {
		path := d.Library()
		require.NoError(t, d.Close())
		t.Skipf("needs a GPU, and %s is none (%s=1 takes it for one)", path, requireGPU)
	}
	return d
}

func TestConformanceOnGPU(t *testing.T) {
	d := openGPU(t)
	t.Logf("%+v, RDMA %+v, %s", d.Info(), d.RDMA(), d.Library())
	require.NoError(t, d.Close())
	conformance.Run(t, func(t *testing.T) cuda.Device { return openGPU(t) })
}

func TestConformanceOfPairsOnGPU(t *testing.T) {
	require.NoError(t, openGPU(t).Close())
	conformance.RunPairs(t, func(t *testing.T) (cuda.Device, cuda.Device) {
		b, err := driver.Open(driver.Options{Device: 1})
		if errors.Is(err, cuda.ErrInvalidDevice) {
			t.Skipf("needs a GPU beside the first: %v", err)
		}
		require.NoError(t, err)
		return openGPU(t), b
	})
}

// Host functions are left out: they hold their streams for longer than some of
// the behaviours allow for.
func TestConformanceOnGPUWatched(t *testing.T) {
	require.NoError(t, openGPU(t).Close())
	for _, source := range []driver.Wake{driver.WakeHelper, driver.WakeWord} {
		t.Run(source.String(), func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) cuda.Device {
				w, err := openGPU(t).Watch(source)
				require.NoError(t, err)
				return w
			})
		})
	}
}
