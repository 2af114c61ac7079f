//go:build cgo && linux

package driver_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
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

// closeLast closes a device that was open while others were, so that the context
// that they share was not made anew for each. In a process that is there for a
// behaviour that kills it, it is dead.
func closeLast(t testing.TB, d *driver.Device) {
	if err := d.Close(); !cuda.Sticky(err) {
		require.NoError(t, err)
	}
}

// warm warms a device. What it fails to do a behaviour will tell.
func warm(t *testing.T, d *driver.Device) {
	if err := cudatest.Warm(t, d); err != nil {
		t.Logf("warm-up: %v", err)
	}
}

func TestConformanceOnGPU(t *testing.T) {
	d := openGPU(t)
	t.Logf("%+v, RDMA %+v, %s", d.Info(), d.RDMA(), d.Library())
	defer closeLast(t, d)
	warm(t, d)
	cudatest.Run(t, func(t *testing.T) cuda.Device { return openGPU(t) }, cudatest.Apart)
}

func TestConformanceOfPairsOnGPU(t *testing.T) {
	first := openGPU(t)
	defer closeLast(t, first)
	second, err := driver.Open(driver.Options{Device: 1})
	if errors.Is(err, cuda.ErrInvalidDevice) {
		t.Skipf("needs a GPU beside the first: %v", err)
	}
	require.NoError(t, err)
	defer closeLast(t, second)
	for _, d := range []*driver.Device{first, second} {
		warm(t, d)
	}
	cudatest.RunPairs(t, func(t *testing.T) (cuda.Device, cuda.Device) {
		b, err := driver.Open(driver.Options{Device: 1})
		require.NoError(t, err)
		return openGPU(t), b
	}, cudatest.Apart)
}

// Host functions are left out: they hold their streams for longer than some of
// the behaviours allow for.
func TestConformanceOnGPUWatched(t *testing.T) {
	d := openGPU(t)
	defer closeLast(t, d)
	warm(t, d)
	for _, source := range []driver.Wake{driver.WakeHelper, driver.WakeWord} {
		t.Run(source.String(), func(t *testing.T) {
			cudatest.Run(t, func(t *testing.T) cuda.Device {
				w, err := openGPU(t).Watch(source)
				require.NoError(t, err)
				return w
			}, cudatest.Apart, cudatest.Waits)
		})
	}
}

// The fill that kernels are measured against leaves the gaps alone.
func TestFillRowsOnGPU(t *testing.T) {
	d := openGPU(t)
	defer func() { require.NoError(t, d.Close()) }()
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	const size = 4096
	p, err := d.Alloc(size, cuda.AllocOptions{})
	require.NoError(t, err)
	type rows struct {
		at, pitch   uint64
		width, rows uint64
	}
	for _, c := range []rows{{0, 64, 16, 64}, {4, 100, 7, 40}, {1000, 4096, 5, 1}, {0, 0, 1, 1}, {8, 12, 0, 5}, {8, 12, 3, 0}, {3996, 100, 25, 1}} {
		want := bytes.Repeat([]byte{0xA5}, size)
		require.NoError(t, d.Write(p, want))
		require.NoError(t, d.FillRows(s, p+cuda.DevicePtr(c.at), c.pitch, 0x04030201, c.width, c.rows))
		require.NoError(t, d.SyncStream(context.Background(), s))
		for r := range c.rows {
			for w := range c.width {
				copy(want[c.at+r*c.pitch+4*w:], []byte{1, 2, 3, 4})
			}
		}
		got := make([]byte, size)
		require.NoError(t, d.Read(got, p))
		require.Equal(t, want, got, "%+v", c)
	}
	for _, c := range []rows{{2, 64, 16, 2}, {0, 66, 16, 2}, {0, 60, 16, 2}, {0, 64, 16, 65}, {64, 64, 16, 64}, {4000, 100, 25, 1},
		{0, 64, 1 << 62, 2}, {0, 1 << 40, 1, 1 << 40}} {
		require.ErrorIs(t, d.FillRows(s, p+cuda.DevicePtr(c.at), c.pitch, 0, c.width, c.rows), cuda.ErrInvalidValue, "%+v", c)
	}
	require.ErrorIs(t, d.FillRows(s+1, p, 64, 0, 1, 1), cuda.ErrInvalidHandle)
	require.NoError(t, d.Sync(context.Background()), "none of that is sticky")
}
