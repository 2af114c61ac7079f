package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// capture captures what build adds, which begins on s, and returns it
// instantiated.
func (r *rig) capture(s cuda.Stream, build func(b *cuda.Batch)) cuda.GraphExec {
	r.t.Helper()
	require.NoError(r.t, r.BeginCapture(s, cuda.CaptureGlobal))
	r.submit(build)
	g, err := r.EndCapture(s)
	require.NoError(r.t, err)
	x, err := r.Instantiate(g)
	require.NoError(r.t, err)
	return x
}

// timed makes a model that takes so long, and says when it ran.
func (r *rig) timed(name string, d time.Duration) cuda.Function {
	r.t.Helper()
	f, err := r.NewModel(name, func(k *ModelLaunch) error { k.Time = d; return nil })
	require.NoError(r.t, err)
	return f
}

// A diamond: b and c run side by side behind a, d behind both, and the second
// launch behind all of the first.
func TestGraphRunsInDependencyOrder(t *testing.T) {
	var ran []Ran
	r := newRig(t, Options{Ran: func(x Ran) { ran = append(ran, x) }})
	s, o, fork, join := r.stream("s"), r.stream("o"), r.event(), r.event()
	a, b, c, d := r.timed("a", time.Millisecond), r.timed("b", 4*time.Millisecond), r.timed("c", time.Millisecond), r.timed("d", time.Millisecond)
	x := r.capture(s, func(q *cuda.Batch) {
		q.Launch(s, a, one, 0)
		q.Record(s, fork)
		q.WaitEvent(o, fork)
		q.Launch(o, b, one, 0)
		q.Launch(s, c, one, 0)
		q.Record(o, join)
		q.WaitEvent(s, join)
		q.Launch(s, d, one, 0)
	})
	require.Empty(t, ran)
	r.submit(func(q *cuda.Batch) {
		q.LaunchGraph(s, x)
		q.LaunchGraph(o, x)
	})
	require.NoError(t, r.Sync(bg))
	require.Len(t, ran, 8)
	at := map[string][]Ran{}
	for _, x := range ran {
		at[x.What] = append(at[x.What], x)
	}
	for i, stream := range []string{"s", "o"} {
		a, b, c, d := at["a"][i], at["b"][i], at["c"][i], at["d"][i]
		require.Equal(t, stream, d.Stream, "a node is in the stream of its launch")
		require.GreaterOrEqual(t, b.Begun, a.Ended)
		require.GreaterOrEqual(t, c.Begun, a.Ended)
		require.Less(t, c.Ended, b.Ended)
		require.Less(t, b.Begun, c.Ended, "b and c run at the same time")
		require.GreaterOrEqual(t, d.Begun, b.Ended)
		if i > 0 {
			require.GreaterOrEqual(t, a.Begun, at["d"][0].Ended, "the second launch is behind the first")
		}
	}
}

// A launch of a graph costs the host less than that of its kernels.
func TestGraphLaunchIsCheaper(t *testing.T) {
	r := newRig(t, Options{})
	s, p := r.stream("s"), r.alloc("p", 64)
	f := r.storeKernel()
	add := func(b *cuda.Batch) {
		for range 50 {
			store(b, s, f, p, 0, 1)
		}
	}
	x := r.capture(s, add)
	host := func(build func(b *cuda.Batch)) time.Duration {
		require.NoError(t, r.Sync(bg))
		begin := r.world.Now()
		r.submit(build)
		return r.world.Now() - begin
	}
	require.Equal(t, r.costs.Crossing+50*r.costs.Launch, host(add))
	require.Equal(t, r.costs.Crossing+r.costs.Graph+50*r.costs.GraphNode, host(func(b *cuda.Batch) { b.LaunchGraph(s, x) }))
}

// All interleavings of a graph that forks end alike.
func TestGraphExplored(t *testing.T) {
	ends, runs := explore(t, func(r *rig) string {
		s, o := r.stream("s"), r.stream("o")
		fork, join := r.event(), r.event()
		p := r.alloc("p", 256)
		x := r.capture(s, func(b *cuda.Batch) {
			b.Fill8(s, p, 1, 64)
			b.Record(s, fork)
			b.WaitEvent(o, fork)
			b.Copy(o, p+64, p, 64)
			b.Record(o, join)
			b.Copy(s, p+128, p, 64)
			b.WaitEvent(s, join)
		})
		r.submit(func(b *cuda.Batch) {
			b.LaunchGraph(s, x)
			b.Copy(s, p, p+64, 32)
		})
		require.NoError(t, r.Sync(bg))
		m := r.read(p, 256)
		return fmt.Sprint(m[0], m[127], m[191], m[192])
	})
	require.Equal(t, map[string]int{"1 1 1 255": runs}, ends)
	require.Greater(t, runs, 10)
}

// A fault of a node leaves the device dead, and waits wake.
func TestGraphWithAFault(t *testing.T) {
	r := newRig(t, Options{})
	s, p := r.stream("s"), r.alloc("freed", 64)
	x := r.capture(s, func(b *cuda.Batch) { b.Fill8(s, p, 1, 64) })
	require.NoError(t, r.Free(p))
	r.submit(func(b *cuda.Batch) { b.LaunchGraph(s, x) })
	err := r.SyncStream(bg, s)
	require.ErrorIs(t, err, cuda.ErrIllegalAddress)
	require.ErrorContains(t, err, "freed")
	require.ErrorContains(t, err, "in s")
}

func TestDestroyedStreamsLeaveTheirCapture(t *testing.T) {
	r := newRig(t, Options{})
	s, o, e := r.stream("s"), r.stream("o"), r.event()
	join := func() {
		require.NoError(t, r.BeginCapture(s, cuda.CaptureRelaxed))
		r.submit(func(b *cuda.Batch) {
			b.Record(s, e)
			b.WaitEvent(o, e)
		})
	}
	join()
	require.NoError(t, r.DestroyStream(o))
	_, err := r.EndCapture(s)
	require.ErrorIs(t, err, cuda.ErrCaptureInvalid)
	o = r.stream("o again")
	join()
	require.NoError(t, r.DestroyStream(s))
	st, err := r.CaptureStatus(o)
	require.NoError(t, err)
	require.Equal(t, cuda.CaptureNone, st, "with its first stream the capture is over")
	require.NoError(t, r.Sync(bg))
}

// An event whose capture is over orders nothing.
func TestEventOfACaptureThatIsOver(t *testing.T) {
	r := newRig(t, Options{})
	s, o, e := r.stream("s"), r.stream("o"), r.event()
	r.capture(s, func(b *cuda.Batch) { b.Record(s, e) })
	var b cuda.Batch
	b.WaitEvent(o, e)
	require.ErrorIs(t, r.Submit(&b), cuda.ErrCapturedEvent)
	require.NoError(t, r.BeginCapture(o, cuda.CaptureRelaxed))
	require.ErrorIs(t, r.Submit(&b), cuda.ErrCaptureIsolation)
	_, err := r.EndCapture(o)
	require.ErrorIs(t, err, cuda.ErrCaptureInvalid)
}
