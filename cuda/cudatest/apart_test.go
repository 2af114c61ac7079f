package cudatest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestKillingBehavioursAreThere(t *testing.T) {
	for name := range killing {
		require.True(t, Behaviours()[name] != nil || Pairs()[name] != nil, name)
	}
}

func TestVerdict(t *testing.T) {
	const kills, spares = "sticky: a wait under way is told", "event: a chain of waits"
	alive, err := sim.New(sim.Options{})
	require.NoError(t, err)
	dead, err := sim.New(sim.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(alive.Close(), dead.Close())) }()
	require.NoError(t, dead.Kill(cuda.ErrIllegalAddress, "for the test"))
	require.NoError(t, verdict(spares, alive))
	require.NoError(t, verdict(kills, dead))
	require.NoError(t, verdict(kills, alive, dead))
	require.ErrorContains(t, verdict(spares, alive, dead), spares)
	require.ErrorContains(t, verdict(kills, alive), kills)
}

// A process for each behaviour that kills, over devices that show whether one
// was opened before them.
func TestApart(t *testing.T) {
	names := []string{"event: a chain of waits"}
	for name := range killing {
		if Behaviours()[name] != nil {
			names = append(names, name)
		}
	}
	opened := 0
	runTable(t, names, []Option{Apart}, func(t *testing.T, name string) {
		opened++
		d, err := sim.New(sim.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Close()) }()
		Behaviours()[name](t, d)
		judge(t, name, d)
	})
	require.Equal(t, 1, opened, "each in a process of its own, be it this one")
}

func TestSkipReason(t *testing.T) {
	require.Empty(t, skipReason("=== RUN   T\n    x.go:3: said\n--- PASS: T (0.00s)\n"))
	require.Equal(t, "driver: it has none", skipReason(
		"=== RUN   T/apart\n    x.go:12: driver: it has none\n--- PASS: T (0.00s)\n    --- SKIP: T/apart (0.00s)\nPASS\n"))
}
