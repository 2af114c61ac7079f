package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/bench/internal/outcome"
	"github.com/kvgate/kvgate/cuda/sim"
	checker "github.com/kvgate/kvgate/cuda/sim/race"
)

// TestHappensBefore: in the modes that order, nothing that the race's machine does to
// the blocks is without an order; in the others the checker says what is.
func TestHappensBefore(t *testing.T) {
	modes, err := outcome.ParseModes("")
	require.NoError(t, err)
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			var found []checker.Race
			c := &checker.Checker{Found: func(r checker.Race) { found = append(found, r) }}
			m, err := newMachine(mode, sim.Options{Seed: 1, Races: c}, overSoftnic)
			require.NoError(t, err)
			defer func() { require.NoError(t, m.close()) }()
			for range 3 {
				_, err := m.round(t.Context())
				require.NoError(t, err)
			}
			if mode.Gated() {
				require.Empty(t, found)
			} else {
				require.NotEmpty(t, found)
			}
		})
	}
}
