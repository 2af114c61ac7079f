package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/cuda"
)

// The order of the legacy default stream, the obvious way: of two launches the
// second comes after the first where they share a stream, or where one is in the
// legacy stream and the other in a blocking one, or where a third stands between
// them. Launches that this leaves without order have to be free to overlap.
func TestLegacyOrderAgainstItsTwin(t *testing.T) {
	overlaps := 0
	rapid.Check(t, func(t *rapid.T) {
		type work struct {
			stream     int
			begun, end time.Duration
		}
		const legacy, blocking = 0, 2 // and streams above are non-blocking
		var all []work
		d, err := New(Options{Seed: rapid.Uint64().Draw(t, "seed"), Ran: func(x Ran) {
			var i int
			if _, err := fmt.Sscanf(x.What, "work %d", &i); err != nil {
				t.Fatal(err)
			}
			all[i].begun, all[i].end = x.Begun, x.Ended
		}})
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Close()) }()
		var streams []cuda.Stream
		for i := range 5 {
			s, err := d.NewStream(cuda.StreamOptions{Name: fmt.Sprint("s", i), Blocking: i <= blocking})
			require.NoError(t, err)
			streams = append(streams, s)
		}
		streams[legacy], err = d.LegacyStream()
		require.NoError(t, err)

		var b cuda.Batch
		for range rapid.IntRange(1, 20).Draw(t, "launches") {
			i := len(all)
			length := time.Duration(rapid.IntRange(1, 50).Draw(t, "us")) * time.Microsecond
			f, err := d.NewModel(fmt.Sprint("work ", i), func(k *ModelLaunch) error { k.Time = length; return nil })
			require.NoError(t, err)
			on := rapid.IntRange(0, 4).Draw(t, "stream")
			all = append(all, work{stream: on})
			b.Launch(streams[on], f, one, 0)
			if rapid.IntRange(0, 2).Draw(t, "submit") == 0 {
				require.NoError(t, d.Submit(&b))
				b.Reset()
				require.NoError(t, d.world.Sleep(bg, time.Duration(rapid.IntRange(0, 100).Draw(t, "pause"))*time.Microsecond))
			}
		}
		require.NoError(t, d.Submit(&b))
		require.NoError(t, d.Sync(bg))

		before := make([][]bool, len(all))
		for j, y := range all {
			before[j] = make([]bool, len(all))
			for i, x := range all[:j] {
				lo, hi := min(x.stream, y.stream), max(x.stream, y.stream)
				if lo == hi || lo == legacy && hi <= blocking {
					before[j][i] = true
					for k := range i {
						before[j][k] = before[j][k] || before[i][k]
					}
				}
			}
			for i, x := range all[:j] {
				if before[j][i] {
					require.GreaterOrEqual(t, y.begun, x.end, "launch %d on %d after %d on %d", j, y.stream, i, x.stream)
				} else if y.begun < x.end && x.begun < y.end {
					overlaps++
				}
			}
		}
	})
	require.Positive(t, overlaps)
}

// Words and host functions, too, leave one trace for one seed.
func TestSameSeedSameTraceOfWords(t *testing.T) {
	run := func(seed uint64) string {
		var log strings.Builder
		r := newRig(t, Options{Seed: seed})
		w := r.pinned("words", 64)
		for i := range 4 {
			w.Word(4 * i).Store(0)
		}
		f, err := r.NewHostFunc("that notes", func(arg uint64) { fmt.Fprintln(&log, r.world.Now(), "called with", arg) })
		require.NoError(t, err)
		for i := range 4 {
			s := r.stream(fmt.Sprint("s", i))
			r.submit(func(b *cuda.Batch) {
				for k := range uint32(5) {
					b.Signal(s, f, uint64(10*i)+uint64(k))
					b.WriteWord(s, w.Device+cuda.DevicePtr(4*i), k+1)
					b.WaitWord(s, w.Device+cuda.DevicePtr(4*((i+1)%4)), k+1) // in a ring
				}
			})
		}
		require.NoError(t, r.Sync(bg))
		require.NoError(t, r.Close())
		return log.String()
	}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		a := run(seed)
		require.Equal(t, a, run(seed), "seed %d", seed)
		require.Equal(t, 20, strings.Count(a, "\n"))
		seen[a] = true
	}
	require.Greater(t, len(seen), 10, "seeds must differ in what they do")
}
