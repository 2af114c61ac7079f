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
		"virtual":        {Shareable: true},
		"virtual-seeded": {Seed: 11, Shareable: true},
		// Slow, so that work is still pending when a busy machine gets round to
		// asking after it.
		"real": {Real: true, Slow: 500, Shareable: true},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) cuda.Device {
				if o.Real {
					t.Parallel()
				}
				d, err := sim.New(o)
				require.NoError(t, err)
				return d
			})
		})
	}
}
