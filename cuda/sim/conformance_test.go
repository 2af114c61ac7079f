package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/conformance"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestConformance(t *testing.T) {
	for name, o := range map[string]sim.Options{
		"virtual":        {},
		"virtual-seeded": {Seed: 11},
		"real":           {Real: true},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) cuda.Device {
				d, err := sim.New(o)
				require.NoError(t, err)
				return d
			})
		})
	}
}
