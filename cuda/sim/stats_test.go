package sim

import (
	"testing"
	"time"

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
	require.NoError(t, r.Sync(bg))
	require.NoError(t, r.Poll([]cuda.Mark{{Event: e}, {Event: e}}))
	after := r.Stats()
	require.EqualValues(t, 3, after.Crossings-before.Crossings, "one for the batch, one for the wait, one for the poll")
	require.Equal(t, map[cuda.Op]uint64{cuda.OpLaunch: 10, cuda.OpRecord: 2}, after.Commands)
	require.Greater(t, after.MaxQueued, 2)
	require.EqualValues(t, 10, after.Kernels.Stores-before.Kernels.Stores, "each kernel stores once")
	require.Positive(t, after.Kernels.Instructions)
	require.Equal(t, before.Modules, after.Modules)
	require.Equal(t, after, r.Stats(), "asking costs nothing")
	var b cuda.Batch
	b.Record(s, 0)
	require.Error(t, r.Submit(&b))
	require.Equal(t, after.Commands, r.Stats().Commands, "what is refused does not count")
}

// Ran tells each work's own time on its stream, and nothing of records.
func TestRanTellsWhatRanWhen(t *testing.T) {
	var got []Ran
	r := newRig(t, Options{Ran: func(x Ran) { got = append(got, x) }})
	s, o, e, p := r.stream("s"), r.stream("o"), r.event(), r.alloc("p", 1<<20)
	f := r.model(func(k *ModelLaunch) error { k.Time = time.Millisecond; return nil })
	r.submit(func(b *cuda.Batch) {
		b.Launch(s, f, one, 0)
		b.Record(s, e)
		b.WaitEvent(o, e)
		b.Fill8(o, p, 1, 1<<20)
	})
	require.NoError(t, r.Sync(bg))
	require.Len(t, got, 2)
	require.Equal(t, [2]string{"s", t.Name()}, [2]string{got[0].Stream, got[0].What})
	require.Equal(t, time.Millisecond, got[0].Ended-got[0].Begun)
	require.Equal(t, [2]string{"o", "fill"}, [2]string{got[1].Stream, got[1].What})
	require.GreaterOrEqual(t, got[1].Begun, got[0].Ended, "the wait is not part of the work")
	require.Contains(t, got[1].String(), "fill on o")
}
