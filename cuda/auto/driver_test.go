//go:build cgo && linux

package auto

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/internal/abi/clib"
	"github.com/kvgate/kvgate/internal/testutil"
)

func TestOpenDriver(t *testing.T) {
	if _, err := exec.LookPath(clib.Compiler()); err != nil {
		testutil.SkipOrFail(t, "no C compiler: %v", err)
	}
	path, err := clib.Build(t.TempDir(), clib.NoOp)
	require.NoError(t, err)
	for name, why := range map[string]string{"": "it is there", "nvidia": "KVGATE_DRIVER asks for it"} {
		t.Setenv(Variable, name)
		var w strings.Builder
		d, err := Open(&w, Options{Driver: driver.Options{Path: path}})
		require.NoError(t, err)
		require.Equal(t, "device: no GPU, a stand-in for one (no-op device, CUDA 12.4, "+path+"), because "+why+"\n", w.String())
		require.Equal(t, "driver", d.Info().Backend)
		require.NoError(t, d.Close())
		// A driver that is there is not passed over.
		_, err = Open(&w, Options{Driver: driver.Options{Path: path, Device: 7}})
		require.ErrorIs(t, err, cuda.ErrInvalidDevice)
	}
}
