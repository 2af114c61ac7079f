package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestConformance(t *testing.T) {
	for name, o := range map[string]sim.Options{
		"virtual":        {Shareable: true},
		"virtual-seeded": {Seed: 11, Shareable: true},
		"real":           {Real: true, Slow: 20, Shareable: true},
	} {
		t.Run(name, func(t *testing.T) {
			cudatest.Run(t, func(t *testing.T) cuda.Device {
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

func TestConformanceOfPairs(t *testing.T) {
	for name, newWorld := range map[string]func() *vtime.World{
		"virtual":        func() *vtime.World { return vtime.NewVirtual(vtime.Options{}) },
		"virtual-seeded": func() *vtime.World { return vtime.NewVirtual(vtime.Options{Seed: 11}) },
		"real":           func() *vtime.World { return vtime.NewReal(vtime.Options{}, 20) },
	} {
		t.Run(name, func(t *testing.T) {
			cudatest.RunPairs(t, func(t *testing.T) (a, b cuda.Device) {
				w := newWorld()
				t.Cleanup(func() { require.NoError(t, w.Close()) })
				if !w.Virtual() {
					t.Parallel()
				}
				open := func(name string) cuda.Device {
					d, err := sim.New(sim.Options{Name: name, World: w})
					require.NoError(t, err)
					return d
				}
				return open("a"), open("b")
			})
		})
	}
}
