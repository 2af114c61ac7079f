package softnic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/nixltest"
	"github.com/kvgate/kvgate/nixl/softnic"
)

func TestConformance(t *testing.T) {
	for name, world := range map[string]func() *vtime.World{
		"virtual":        func() *vtime.World { return vtime.NewVirtual(vtime.Options{}) },
		"virtual seeded": func() *vtime.World { return vtime.NewVirtual(vtime.Options{Seed: 12345}) },
		"real":           func() *vtime.World { return vtime.NewReal(vtime.Options{}, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			nixltest.Run(t, func(t *testing.T) nixltest.Pair {
				// Slow enough that the test acts in mid transfer, whoever else
				// wants the processor.
				return openPair(t, world(), softnic.Options{Bandwidth: 5e7, Chunk: 8 << 10, Reorder: true})
			})
		})
	}
}

func openPair(t *testing.T, w *vtime.World, o softnic.Options) nixltest.Pair {
	p, _ := openFaulty(t, w, o)
	return p
}

// openFaulty also returns the fabric, for faults.
func openFaulty(t *testing.T, w *vtime.World, o softnic.Options) (nixltest.Pair, *softnic.Fabric) {
	f := softnic.New(w, o)
	t.Cleanup(func() {
		require.NoError(t, f.Close())
		require.NoError(t, w.Close())
	})
	open := func(name string) (nixl.Agent, nixltest.Buffer) {
		m := softnic.NewHostMemory(nixltest.Size)
		a, err := f.NewAgent(name, m)
		require.NoError(t, err)
		return a, nixltest.Buffer{Addr: m.Addr(), Data: m.Bytes()}
	}
	p := nixltest.Pair{Clock: w, Memory: nixl.DRAM}
	p.A, p.BufferA = open("decode")
	p.B, p.BufferB = open("prefill")
	p.Disconnect = func() { require.NoError(t, f.Disconnect("prefill")) }
	p.RestartB = func() nixl.Agent {
		a, err := f.Restart("prefill")
		require.NoError(t, err)
		return a
	}
	return p, f
}
