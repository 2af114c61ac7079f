//go:build gorgonia

package submitbench

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/gorgonia"
)

func image(b *testing.B) string {
	src, err := os.ReadFile(filepath.Join("..", "..", "cudatest", "testdata", "behaviours.ptx"))
	require.NoError(b, err)
	return string(src)
}

// The kernel of a step has a head of 40 bytes and 56 ids, as kernels has them.
const (
	headWords = 5
	idWords   = 28
)

// BenchmarkSubmit is one step: a launch with 56 ids, the mark behind it, and the
// compute stream's wait for that. Two floors go with it: what the driver's calls
// take in a loop in C (calls), and what they take with a batch to write down and
// one crossing for each step, but neither handles that are looked up nor a
// device that can be closed meanwhile (floor).
func BenchmarkSubmit(b *testing.B) {
	b.Run("calls", func(b *testing.B) {
		if loopCalls(b.N) != 0 {
			b.Fatal("a call failed")
		}
	})
	b.Run("floor", func(b *testing.B) {
		batch := new(cuda.Batch)
		for b.Loop() {
			batch.Reset()
			args := batch.Launch(1, 1, cuda.Geometry{Grid: [3]uint32{264, 1, 1}, Block: [3]uint16{256, 1, 1}}, 8*(headWords+idWords))
			args[8*headWords] = 1
			batch.Record(1, 1)
			batch.WaitEvent(2, 1)
			if stepCalls(batch.Arena()) != 0 {
				b.Fatal("a call failed")
			}
		}
	})
	b.Run("driver", func(b *testing.B) {
		d, err := driver.Open(driver.Options{})
		require.NoError(b, err)
		defer d.Close()
		m, err := d.LoadModule([]byte(image(b)))
		require.NoError(b, err)
		f, err := d.Function(m, "fill_index")
		require.NoError(b, err)
		gate, err := d.NewStream(cuda.StreamOptions{HighPriority: true})
		require.NoError(b, err)
		compute, err := d.NewStream(cuda.StreamOptions{})
		require.NoError(b, err)
		e, err := d.NewEvent()
		require.NoError(b, err)
		step(b, d, f, gate, compute, e, 8*(headWords+idWords))
	})
	// Through the same interface: right from any goroutine.
	b.Run("gorgonia-wrapped", func(b *testing.B) {
		ctx, err := cu.Device(0).MakeContext(cu.SchedAuto)
		require.NoError(b, err)
		defer ctx.Destroy()
		d, err := gorgonia.Wrap(0, ctx)
		require.NoError(b, err)
		defer d.Close()
		// One kernel with as many bytes of parameters, the ids being the last.
		m, err := d.LoadModule([]byte(strings.Replace(image(b), ".param .u32 fill_index_v", ".param .b8 fill_index_v[248]", 1)))
		require.NoError(b, err)
		f, err := d.Function(m, "fill_index")
		require.NoError(b, err)
		gate, err := d.NewStream(cuda.StreamOptions{HighPriority: true})
		require.NoError(b, err)
		compute, err := d.NewStream(cuda.StreamOptions{})
		require.NoError(b, err)
		e, err := d.NewEvent()
		require.NoError(b, err)
		step(b, d, f, gate, compute, e, 12+248)
	})
	// The engine has made the context current on its thread, so that it need
	// not do so in each step.
	b.Run("gorgonia", func(b *testing.B) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		ctx, err := cu.Device(0).MakeContext(cu.SchedAuto)
		require.NoError(b, err)
		defer ctx.Destroy()
		m, err := cu.LoadData(image(b))
		require.NoError(b, err)
		f, err := m.Function("fill_index")
		require.NoError(b, err)
		gate, err := cu.MakeStream(cu.NonBlocking)
		require.NoError(b, err)
		compute, err := cu.MakeStream(cu.NonBlocking)
		require.NoError(b, err)
		e, err := cu.MakeEvent(cu.DisableTiming)
		require.NoError(b, err)
		words := make([]uint64, headWords+idWords)
		args := make([]unsafe.Pointer, len(words))
		b.ReportAllocs()
		crossings := runtime.NumCgoCall()
		for b.Loop() {
			words[headWords] = 1
			for i := range words {
				args[i] = unsafe.Pointer(&words[i])
			}
			if err := f.Launch(264, 1, 1, 256, 1, 1, 0, gate, args); err != nil {
				b.Fatal(err)
			}
			if err := e.Record(gate); err != nil {
				b.Fatal(err)
			}
			if err := compute.Wait(e, 0); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(runtime.NumCgoCall()-crossings)/float64(b.N), "crossings/op")
	})
}

// step submits one step after the other.
func step(b *testing.B, d cuda.Device, f cuda.Function, gate, compute cuda.Stream, e cuda.Event, argBytes int) {
	var batch cuda.Batch
	b.ReportAllocs()
	crossings := runtime.NumCgoCall()
	for b.Loop() {
		batch.Reset()
		args := batch.Launch(gate, f, cuda.Geometry{Grid: [3]uint32{264, 1, 1}, Block: [3]uint16{256, 1, 1}}, argBytes)
		args[8*headWords] = 1
		batch.Record(gate, e)
		batch.WaitEvent(compute, e)
		if err := d.Submit(&batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(runtime.NumCgoCall()-crossings)/float64(b.N), "crossings/op")
}
