package cudatest

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestVerdict(t *testing.T) {
	kills, spares := behaviour{name: "one that kills", kills: true}, behaviour{name: "one that does not"}
	alive, err := sim.New(sim.Options{})
	require.NoError(t, err)
	dead, err := sim.New(sim.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(alive.Close(), dead.Close())) }()
	require.NoError(t, dead.Kill(cuda.ErrIllegalAddress, "for the test"))
	require.NoError(t, spares.verdict(alive))
	require.NoError(t, kills.verdict(dead))
	require.NoError(t, kills.verdict(alive, dead))
	require.ErrorContains(t, spares.verdict(alive, dead), spares.name)
	require.ErrorContains(t, kills.verdict(alive), kills.name)
}

// A process for each behaviour that kills, over devices that show whether one
// was opened before them.
func TestApart(t *testing.T) {
	killing := slices.DeleteFunc(slices.Clone(behaviours), func(b behaviour) bool { return !b.kills && b.name != "event: a chain of waits" })
	require.Greater(t, len(killing), 1)
	opened := 0
	runTable(t, killing, []Option{Apart}, func(t *testing.T, b behaviour) {
		opened++
		d, err := sim.New(sim.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Close()) }()
		b.one(t, d)
		b.judge(t, d)
	})
	require.Equal(t, 1, opened, "each in a process of its own, be it this one")
}

func TestSkipReason(t *testing.T) {
	require.Empty(t, skipReason("=== RUN   T\n    x.go:3: said\n--- PASS: T (0.00s)\n"))
	require.Equal(t, "driver: it has none", skipReason(
		"=== RUN   T/apart\n    x.go:12: driver: it has none\n--- PASS: T (0.00s)\n    --- SKIP: T/apart (0.00s)\nPASS\n"))
}
