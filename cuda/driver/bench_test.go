//go:build cgo && linux

package driver_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/internal/abi/clib"
)

// step is a gate's step over the no-op driver: a launch with 56 ids in its
// arguments on the gate's stream, its mark, and the compute stream's wait for
// that; and the marks of a poll of four timelines.
func step(t testing.TB, path string) (*driver.Device, *cuda.Batch, []cuda.Mark) {
	d, err := driver.Open(driver.Options{Path: path})
	require.NoError(t, err)
	m, err := d.LoadModule(image(t))
	require.NoError(t, err)
	f, err := d.Function(m, "fill_index")
	require.NoError(t, err)
	gate, err := d.NewStream(cuda.StreamOptions{HighPriority: true})
	require.NoError(t, err)
	compute, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	var marks []cuda.Mark
	for range 4 {
		e, err := d.NewEvent()
		require.NoError(t, err)
		marks = append(marks, cuda.Mark{Event: e})
	}
	b := new(cuda.Batch)
	b.Launch(gate, f, cuda.Geometry{Grid: [3]uint32{264, 1, 1}, Block: [3]uint16{256, 1, 1}}, 40+4*56)
	b.Record(gate, marks[0].Event)
	b.WaitEvent(compute, marks[0].Event)
	return d, b, marks
}

// BenchmarkSubmit is the host's part of a step, over a driver that does nothing:
// what is on this side of libcuda.
func BenchmarkSubmit(b *testing.B) {
	d, batch, marks := step(b, library(b, clib.NoOp))
	defer d.Close()
	b.Run("launch-record-wait", func(b *testing.B) {
		b.ReportAllocs()
		before := runtime.NumCgoCall()
		for b.Loop() {
			if err := d.Submit(batch); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(runtime.NumCgoCall()-before)/float64(b.N), "crossings/op")
	})
	b.Run("poll-4", func(b *testing.B) {
		b.ReportAllocs()
		before := runtime.NumCgoCall()
		for b.Loop() {
			if err := d.Poll(marks); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(runtime.NumCgoCall()-before)/float64(b.N), "crossings/op")
	})
}
