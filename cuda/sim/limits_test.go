package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// A thread block has 64 Ki registers, and a warp takes them 256 at a time.
func TestRegistersLimitAThreadBlock(t *testing.T) {
	r := newRig(t, Options{Registers: map[string]int{"hungry": 65, "full": 255}})
	s := r.stream("s")
	for name, most := range map[string]uint16{"hungry": 896, "full": 256, "other": 1024} {
		f, err := r.NewModel(name, func(*ModelLaunch) error { return nil })
		require.NoError(t, err)
		i, err := r.FunctionInfo(f)
		require.NoError(t, err)
		require.Equal(t, int(most), i.MaxThreads, name)
		for threads, ok := range map[uint16]bool{most: true, most + 1: false} {
			r.b.Reset()
			r.b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{threads, 1, 1}}, 0)
			switch err := r.Submit(&r.b); {
			case ok:
				require.NoError(t, err, name)
			case most == 1024:
				require.ErrorIs(t, err, cuda.ErrInvalidValue, "more than any thread block has")
			default:
				require.ErrorIs(t, err, cuda.ErrLaunchResources, name)
				require.False(t, cuda.Sticky(err))
			}
		}
	}
	require.NoError(t, r.Sync(bg))
	_, err := r.FunctionInfo(0)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	for _, n := range []int{0, -1, 256} {
		_, err := New(Options{Registers: map[string]int{"k": n}})
		require.ErrorIs(t, err, cuda.ErrInvalidValue)
		require.ErrorContains(t, err, "Registers")
	}
}
