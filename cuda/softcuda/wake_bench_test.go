//go:build cgo && linux

package softcuda_test

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/internal/engine"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/abi/clib"
	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/stream"
)

// BenchmarkWake measures how long after a mark has fired its waiter runs: a
// goroutine that waits for the fence, for each wake source, or C code that is
// called by a thread of the system's (native). The device is a C library whose
// marks fire 400 us after they were recorded, on a thread of its own, so its
// latency (of a real device's interrupt, of a host function) is not part of
// the figures. "busy" has every P occupied by a goroutine that never waits.
func BenchmarkWake(b *testing.B) {
	path, err := clib.Build(b.TempDir(), clib.NoOp, "KVG_DELAY_US=400")
	require.NoError(b, err)
	lib, err := dl.Open(path)
	require.NoError(b, err)
	e := engine.Engine{Lib: lib}
	for _, load := range []string{"idle", "busy"} {
		b.Run(load, func(b *testing.B) {
			if load == "busy" {
				occupy(b)
			}
			b.Run("poll", func(b *testing.B) { wake(b, lib, e, 0, false) })
			for _, source := range sources {
				b.Run(source.String(), func(b *testing.B) { wake(b, lib, e, source, false) })
				b.Run(source.String()+", native", func(b *testing.B) { wake(b, lib, e, source, true) })
			}
		})
	}
}

// occupy keeps every P busy until the benchmark is over.
func occupy(b *testing.B) {
	var stop atomic.Bool
	n := runtime.GOMAXPROCS(0)
	ended := make(chan bool)
	for range n {
		go func() {
			for x := 0; !stop.Load(); x++ {
			}
			ended <- true
		}()
	}
	b.Cleanup(func() {
		stop.Store(true)
		for range n {
			<-ended
		}
	})
}

func wake(b *testing.B, lib driver.Library, e engine.Engine, source driver.Wake, native bool) {
	d, err := driver.Open(driver.Options{Library: lib})
	require.NoError(b, err)
	defer func() { require.NoError(b, d.Close()) }()
	var dev cuda.Device = d
	stamp := engine.NewStamp(nil)
	if source != 0 {
		w, err := d.Watch(source)
		require.NoError(b, err)
		if native {
			require.NoError(b, w.Hook(stamp.Func(), stamp.Arg()))
		}
		dev = w
	}
	reg := event.NewRegistry(dev)
	s, err := stream.New(reg, cuda.StreamOptions{})
	require.NoError(b, err)
	defer func() {
		require.NoError(b, s.Close())
		require.NoError(b, reg.Close())
	}()
	var late []int64
	batch := stream.NewBatch(reg)
	for b.Loop() {
		calls := stamp.Calls()
		batch.Reset()
		f := batch.Record(s)
		require.NoError(b, batch.Submit())
		require.NoError(b, f.Wait(bg))
		woken := engine.Now()
		fired := e.Time("kvgTimedRecord")
		if native {
			for stamp.Calls() == calls {
				runtime.Gosched()
			}
			woken = stamp.Last()
		}
		if source == driver.WakeHostFunc || source == driver.WakeWord {
			// The thread that stands for the device may be late itself.
			fired = max(fired, e.Time("kvgTimedLast"))
		}
		late = append(late, max(0, woken-fired))
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2])/1000, "p50-us")
	b.ReportMetric(float64(late[len(late)*99/100])/1000, "p99-us")
	b.ReportMetric(0, "ns/op") // the device's delay is most of it
}
