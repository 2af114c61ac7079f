package sim

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// watch calls see from time to time until e has fired.
func (r *rig) watch(e cuda.Event, every time.Duration, see func()) {
	r.t.Helper()
	for {
		m := []cuda.Mark{{Event: e}}
		require.NoError(r.t, r.Poll(m))
		if m[0].State == cuda.MarkFired {
			return
		}
		see()
		require.NoError(r.t, r.world.Sleep(bg, every))
	}
}

func TestStoresLandPieceByPiece(t *testing.T) {
	const n = 1 << 20
	every := map[string]time.Duration{"copy": 50 * time.Microsecond}
	for name, submit := range map[string]func(r *rig, b *cuda.Batch, s cuda.Stream, p cuda.DevicePtr){
		"fill": func(r *rig, b *cuda.Batch, s cuda.Stream, p cuda.DevicePtr) { b.Fill8(s, p, 1, n) },
		"copy": func(r *rig, b *cuda.Batch, s cuda.Stream, p cuda.DevicePtr) {
			h := r.pinned("h", n)
			copy(h.Host, bytes.Repeat([]byte{1}, n))
			b.Copy(s, p, h.Device, n)
		},
		"kernel": func(r *rig, b *cuda.Batch, s cuda.Stream, p cuda.DevicePtr) {
			store(b, s, r.storeKernel(), p, n/4096, 4096)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			s, p, e := r.stream("s"), r.allocScaled("p", n, 100), r.event()
			require.NoError(t, r.Write(p, make([]byte, n)))
			r.submit(func(b *cuda.Batch) {
				submit(r, b, s, p)
				b.Record(s, e)
			})
			seen := map[int]bool{}
			last := 0
			r.watch(e, every[name], func() {
				got := bytes.Count(r.peek(p, n), []byte{1})
				require.GreaterOrEqual(t, got, last)
				last = got
				seen[got] = true
			})
			require.GreaterOrEqual(t, len(seen), 4, "states seen: %v", seen)
		})
	}
}

func TestSmallFillsAreTornToo(t *testing.T) {
	r := newRig(t, Options{})
	s, p, e := r.stream("s"), r.allocScaled("p", 1024, 1<<16), r.event()
	require.NoError(t, r.Write(p, make([]byte, 1024)))
	r.submit(func(b *cuda.Batch) { b.Fill8(s, p, 1, 1024); b.Record(s, e) })
	torn := false
	r.watch(e, 0, func() {
		n := bytes.Count(r.peek(p, 1024), []byte{1})
		torn = torn || n > 0 && n < 1024
	})
	require.True(t, torn)
}

// A NIC that writes while a zeroing runs loses what the zeroing has still to
// reach, and keeps what it has passed: the harm that the gate exists for.
func TestZeroingDestroysWhatArrivesMeanwhile(t *testing.T) {
	r := newRig(t, Options{})
	const n = 1 << 20
	s, p, e := r.stream("zero"), r.allocScaled("p", n, 100), r.event()
	begun := func() bool { return r.peek(p, 1)[0] == 0 }
	r.submit(func(b *cuda.Batch) { b.Fill8(s, p, 0, n); b.Record(s, e) })
	for !begun() {
		require.NoError(t, r.world.Sleep(bg, 100))
	}
	r.world.Enter(0)
	require.NoError(t, r.mem.Write(uint64(p), bytes.Repeat([]byte{7}, n)))
	r.world.Exit()
	require.NoError(t, r.SyncStream(bg, s))
	got := r.read(p, n)
	kept := bytes.Count(got, []byte{7})
	require.Positive(t, kept)
	require.Less(t, kept, n)
	require.Equal(t, kept, bytes.LastIndexByte(got, 7)+1)
}

// NIC writes and kernels take bandwidth from each other.
func TestMemoryBandwidthIsSharedWithANIC(t *testing.T) {
	r := newRig(t, Options{})
	s := r.stream("s")
	f := r.model(func(k *ModelLaunch) error { k.Read = 3.35e12 * 0.918 * 1e-3; return nil })
	alone := r.took(func(b *cuda.Batch) { b.Launch(s, f, one, 0) })
	r.world.Enter(0)
	done := false
	r.Memory().Bandwidth().Start(1e12, 0, "nic", func() { done = true })
	r.world.Exit()
	shared := r.took(func(b *cuda.Batch) { b.Launch(s, f, one, 0) })
	require.InEpsilon(t, 2*float64(alone), float64(shared), 0.01)
	require.NoError(t, r.world.WaitUntil(bg, clock.Func("nic", func() bool { return done }), clock.Never))
}
