package auto

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name, driver string
		o            Options
		says         string
	}{
		{"unset", "", Options{}, "device: simulated (sim, virtual time), because there is no usable GPU: this build has no driver back end\n"},
		{"sim", "sim", Options{Sim: sim.Options{Name: "x", Real: true}}, "device: simulated (x, real time), because KVGATE_DRIVER asks for it\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(Variable, c.driver)
			var w strings.Builder
			d, err := Open(&w, c.o)
			require.NoError(t, err)
			require.Equal(t, c.says, w.String())
			require.True(t, d.Info().Simulated)
			require.NoError(t, d.Close())
			d, err = Open(nil, c.o)
			require.NoError(t, err)
			require.NoError(t, d.Close())
		})
	}
}

func TestNoBackEnd(t *testing.T) {
	for _, name := range []string{"nvidia", "gorgonia"} {
		t.Setenv(Variable, name)
		var w strings.Builder
		_, err := Open(&w, Options{})
		require.ErrorIs(t, err, cuda.ErrNoDriver)
		require.EqualError(t, err, "KVGATE_DRIVER="+name+": no usable CUDA driver: this build has no driver back end")
		require.Empty(t, w.String())
	}
	t.Setenv(Variable, "cuda")
	_, err := Open(nil, Options{})
	require.EqualError(t, err, `KVGATE_DRIVER="cuda": unknown, may be sim, nvidia or gorgonia`)
}

func TestBadSimulatorOptions(t *testing.T) {
	t.Setenv(Variable, "")
	_, err := Open(nil, Options{Sim: sim.Options{Bandwidth: -1}})
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
}
