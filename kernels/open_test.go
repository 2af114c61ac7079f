package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openDevice opens a GPU where there is one, else the simulator: the tests are
// the same. It is closed with the test.
func openDevice(t testing.TB) cuda.Device {
	dev, err := auto.Open(t.Output(), auto.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}
