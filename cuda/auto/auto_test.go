package auto

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// missing are options of a driver that is on no machine.
var missing = driver.Options{Path: "/nowhere/libcuda.so.1"}

func TestOpenSimulator(t *testing.T) {
	for _, c := range []struct {
		name, driver string
		o            Options
		says         []string
	}{
		{"unset", "", Options{Driver: missing},
			[]string{"device: simulated (sim, virtual time), because there is no usable GPU: no usable CUDA driver: ", "\n"}},
		{"sim", "sim", Options{Sim: sim.Options{Name: "x", Real: true}},
			[]string{"device: simulated (x, real time), because KVGATE_DRIVER asks for it\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(Variable, c.driver)
			var w strings.Builder
			d, err := Open(&w, c.o)
			require.NoError(t, err)
			for _, s := range c.says {
				require.Contains(t, w.String(), s)
			}
			require.Equal(t, 1, strings.Count(w.String(), "\n"))
			require.True(t, d.Info().Simulated)
			require.NoError(t, d.Close())
			d, err = Open(nil, c.o)
			require.NoError(t, err)
			require.NoError(t, d.Close())
		})
	}
}

func TestNoBackEnd(t *testing.T) {
	for name, says := range map[string]string{
		"nvidia":   "KVGATE_DRIVER=nvidia: cuda/driver: no usable CUDA driver: ",
		"gorgonia": "KVGATE_DRIVER=gorgonia: no usable CUDA driver: this build has no such back end",
	} {
		t.Setenv(Variable, name)
		var w strings.Builder
		_, err := Open(&w, Options{Driver: missing})
		require.ErrorIs(t, err, cuda.ErrNoDriver)
		require.ErrorContains(t, err, says)
		require.Empty(t, w.String())
	}
	t.Setenv(Variable, "cuda")
	_, err := Open(nil, Options{})
	require.EqualError(t, err, `KVGATE_DRIVER="cuda": unknown, may be sim, nvidia or gorgonia`)
}

func TestBadSimulatorOptions(t *testing.T) {
	t.Setenv(Variable, "")
	_, err := Open(nil, Options{Driver: missing, Sim: sim.Options{Bandwidth: -1}})
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
}
