package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// A host function runs when its time has come, and its stream goes on when it
// has returned, which takes no time of its own.
func TestHostFuncTimes(t *testing.T) {
	r := newRig(t, Options{})
	s, p := r.stream("s"), r.alloc("p", 64)
	var at, after time.Duration
	f, err := r.NewHostFunc("that looks at the clock", func(uint64) { at = r.world.Now() })
	require.NoError(t, err)
	r.ran = func(x Ran) { after = x.Begun }
	begun := r.world.Now()
	r.submit(func(b *cuda.Batch) { b.Signal(s, f, 0) })
	r.submit(func(b *cuda.Batch) { b.Fill8(s, p, 0, 64) })
	require.NoError(t, r.SyncStream(bg, s))
	require.Equal(t, begun+r.costs.Crossing+r.costs.Signal+r.costs.HostFunc, at)
	require.Equal(t, at+r.costs.CopyGap, after)
}

func TestHostFuncsAreNotCalledAfterDeath(t *testing.T) {
	for _, o := range []Options{{}, {Real: true, Slow: 100}} {
		r := newRig(t, o)
		s, w := r.stream("s"), r.pinned("flags", 64)
		f, err := r.NewHostFunc("that must not be called", func(uint64) { t.Error("called") })
		require.NoError(t, err)
		g, err := r.NewSignal()
		require.NoError(t, err)
		w.Word(0).Store(0)
		r.submit(func(b *cuda.Batch) {
			b.WaitWord(s, w.Device, 1) // until the device is dead
			b.Signal(s, f, 0)
			b.Signal(s, g, 0)
		})
		require.NoError(t, r.Kill(cuda.ErrECC, "a test"))
		w.Word(0).Store(1)
		require.ErrorIs(t, r.SyncStream(bg, s), cuda.ErrECC)
		require.NoError(t, r.world.Sleep(bg, 2*r.costs.HostFunc))
		n, err := r.SignalCount(g)
		require.NoError(t, err, "though the device is dead")
		require.Zero(t, n)
	}
}

// Functions of several streams come one after the other.
func TestHostFuncsAreSerialized(t *testing.T) {
	r := newRig(t, Options{Real: true})
	inside, calls := 0, 0 // guarded by nothing else
	f, err := r.NewHostFunc("that counts", func(uint64) {
		inside++
		require.Equal(t, 1, inside)
		calls++
		inside--
	})
	require.NoError(t, err)
	var streams [8]cuda.Stream
	for i := range streams {
		streams[i] = r.stream("s")
	}
	r.submit(func(b *cuda.Batch) {
		for i := range 40 {
			b.Signal(streams[i%8], f, 0)
		}
	})
	require.NoError(t, r.Sync(bg))
	require.Equal(t, 40, calls)
}

func TestHostFuncThatIsNone(t *testing.T) {
	r := newRig(t, Options{})
	_, err := r.NewHostFunc("none", nil)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
}
