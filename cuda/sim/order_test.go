package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// Of kernels that wait for a place, one of the greatest priority starts first,
// and of these the oldest.
func TestPrioritiesInTurn(t *testing.T) {
	costs := DefaultCosts()
	costs.ResidentGrids = 1
	var order []string
	r := newRig(t, Options{Costs: &costs, Ran: func(x Ran) { order = append(order, x.Stream) }})
	f, err := r.NewModel("work", func(k *ModelLaunch) error { k.Time = time.Millisecond; return nil })
	require.NoError(t, err)
	r.b.Reset()
	for _, x := range []struct {
		name     string
		priority int
	}{{"running", 0}, {"low", 0}, {"middle", -2}, {"low again", 0}, {"high", -99}, {"middle again", -2}, {"high again", -5}} {
		s, err := r.NewStream(cuda.StreamOptions{Name: x.name, Priority: x.priority})
		require.NoError(t, err)
		r.b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}, 0)
	}
	require.NoError(t, r.Submit(&r.b))
	require.NoError(t, r.Sync(bg))
	require.Equal(t, []string{"running", "high", "high again", "middle", "middle again", "low", "low again"}, order)
}

// What the order with the legacy stream adds is told in reports, and is counted
// nowhere as a command of somebody's.
func TestLegacyOrderIsNoCommand(t *testing.T) {
	r := newRig(t, Options{})
	s, err := r.NewStream(cuda.StreamOptions{Name: "blocking", Blocking: true})
	require.NoError(t, err)
	l, err := r.LegacyStream()
	require.NoError(t, err)
	w, p := r.pinned("flags", 64), r.alloc("p", 64)
	w.Word(0).Store(0)
	r.submit(func(b *cuda.Batch) {
		b.WaitWord(s, w.Device, 1)
		b.Fill8(l, p, 1, 64)
	})
	require.Equal(t, map[cuda.Op]uint64{cuda.OpWaitWord: 1, cuda.OpFill: 1}, r.Stats().Commands)
	require.ErrorContains(t, r.Sync(bg), "legacy default stream: 2 commands; the first, wait event 0x0, waits for command 1 of blocking")
}

func TestHowLateASleeperWakes(t *testing.T) {
	r := newRig(t, Options{})
	s := r.stream("s")
	late := func(sleep bool) time.Duration {
		e, err := r.NewEventWithOptions(cuda.EventOptions{BlockingSync: sleep})
		require.NoError(t, err)
		begun := r.world.Now()
		r.submit(func(b *cuda.Batch) {
			b.Fill8(s, r.alloc("p", 1<<20), 1, 1<<20)
			b.Record(s, e)
		})
		require.NoError(t, r.SyncEvent(bg, e))
		return r.world.Now() - begun
	}
	spun := late(false)
	require.Equal(t, spun+r.costs.BlockingWake-r.costs.Wake, late(true))
}
