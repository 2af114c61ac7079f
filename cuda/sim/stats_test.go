package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

func TestStatsCountCrossingsAndCommands(t *testing.T) {
	r := newRig(t, Options{})
	s, e, f := r.stream("s"), r.event(), r.storeKernel()
	p := r.alloc("p", 64)
	before := r.Stats()
	require.EqualValues(t, 1, before.Modules)
	require.EqualValues(t, 1, before.Functions)
	r.submit(func(b *cuda.Batch) {
		for range 10 {
			store(b, s, f, p, 0, 1)
		}
		b.Record(s, e)
		b.Record(s, e)
	})
	require.NoError(t, r.Poll([]cuda.Mark{{Event: e}, {Event: e}}))
	after := r.Stats()
	require.EqualValues(t, 2, after.Crossings-before.Crossings, "one for the batch, one for the poll")
	require.Equal(t, map[cuda.Op]uint64{cuda.OpLaunch: 10, cuda.OpRecord: 2}, after.Commands)
	require.Greater(t, after.MaxQueued, 2)
	require.Equal(t, before.Modules, after.Modules)
	require.Equal(t, after, r.Stats(), "asking costs nothing")
	var b cuda.Batch
	b.Record(s, 0)
	require.Error(t, r.Submit(&b))
	require.Equal(t, after.Commands, r.Stats().Commands, "what is refused does not count")
}
