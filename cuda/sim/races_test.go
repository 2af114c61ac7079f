package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/race"
)

// TestRacesAreFound runs small programs on the device, each without and with the order
// that it needs.
func TestRacesAreFound(t *testing.T) {
	type world struct {
		*rig
		a, b cuda.Stream
		e    cuda.Event
		p    cuda.DevicePtr
		f    cuda.Function
	}
	for name, c := range map[string]struct {
		run    func(w *world, ordered bool)
		always bool // no race in either case
	}{
		"fill and kernel": {run: func(w *world, ordered bool) {
			w.submit(func(b *cuda.Batch) {
				b.Fill8(w.a, w.p, 0, 4096)
				if ordered {
					b.Record(w.a, w.e)
					b.WaitEvent(w.b, w.e)
				}
				store(b, w.b, w.f, w.p, 64, 4)
			})
		}},
		"kernel and copy": {run: func(w *world, ordered bool) {
			w.submit(func(b *cuda.Batch) { store(b, w.a, w.f, w.p, 64, 4) })
			if ordered {
				require.NoError(w.t, w.SyncStream(bg, w.a))
			}
			w.submit(func(b *cuda.Batch) { b.Copy(w.b, w.p+4096, w.p, 64) })
		}},
		"kernels on other bytes": {always: true, run: func(w *world, ordered bool) {
			w.submit(func(b *cuda.Batch) {
				store(b, w.a, w.f, w.p, 8, 16)
				store(b, w.b, w.f, w.p+4, 8, 16)
			})
		}},
		"host read": {run: func(w *world, ordered bool) {
			w.submit(func(b *cuda.Batch) { b.Fill8(w.a, w.p, 0, 4096); b.Record(w.a, w.e) })
			require.NoError(w.t, w.Clock().Sleep(bg, time.Second)) // time is no order
			if ordered {
				require.NoError(w.t, w.SyncEvent(bg, w.e))
			}
			w.read(w.p, 16)
		}},
		"polled event": {run: func(w *world, ordered bool) {
			w.submit(func(b *cuda.Batch) { b.Fill8(w.a, w.p, 0, 4096); b.Record(w.a, w.e) })
			require.NoError(w.t, w.Clock().Sleep(bg, time.Second))
			if ordered {
				marks := []cuda.Mark{{Event: w.e}}
				require.NoError(w.t, w.Poll(marks))
				require.Equal(w.t, cuda.MarkFired, marks[0].State)
			}
			w.read(w.p, 16)
		}},
		"old record": {run: func(w *world, ordered bool) {
			w.submit(func(b *cuda.Batch) {
				if !ordered {
					b.Record(w.a, w.e)
				}
				b.Fill8(w.a, w.p, 0, 4096)
				if ordered {
					b.Record(w.a, w.e)
				}
				b.WaitEvent(w.b, w.e)
				b.Fill8(w.b, w.p, 1, 4096)
			})
		}},
		"transfer under a fill": {run: func(w *world, ordered bool) {
			w.submit(func(b *cuda.Batch) { b.Fill8(w.a, w.p, 0, 4096) })
			if ordered {
				require.NoError(w.t, w.Sync(bg))
			}
			w.world.Enter(0)
			w.NIC().Posted(7)
			w.world.Exit()
			require.NoError(w.t, w.Clock().Sleep(bg, time.Second))
			w.world.Enter(0)
			w.NIC().Carries(7)
			require.NoError(w.t, w.NIC().Write(uint64(w.p)+100, make([]byte, 8)))
			w.NIC().Ended(7)
			w.world.Exit()
			w.read(w.p+100, 8)
		}},
		"kernel under a transfer": {run: func(w *world, ordered bool) {
			w.world.Enter(0)
			w.NIC().Posted(7)
			w.NIC().Carries(7)
			require.NoError(w.t, w.NIC().Write(uint64(w.p), make([]byte, 8)))
			if ordered {
				w.NIC().Ended(7)
			}
			w.world.Exit()
			w.submit(func(b *cuda.Batch) { store(b, w.b, w.f, w.p, 64, 4) })
		}},
	} {
		for _, ordered := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "", true: ", ordered"}[ordered], func(t *testing.T) {
				var found []race.Race
				checker := &race.Checker{Found: func(r race.Race) { found = append(found, r) }}
				r := newRig(t, Options{Races: checker})
				w := &world{rig: r, a: r.stream("a"), b: r.stream("b"), e: r.event(), p: r.alloc("p", 8192), f: r.storeKernel()}
				require.NoError(t, w.Write(w.p, make([]byte, 8192)))
				c.run(w, ordered)
				require.NoError(t, w.Sync(bg))
				if ordered || c.always {
					require.Empty(t, found)
					return
				}
				require.NotEmpty(t, found)
				text := found[0].String()
				require.Contains(t, text, "race over")
				require.Contains(t, text, "writes")
			})
		}
	}
}
