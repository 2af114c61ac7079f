package ptx

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkInterpretZero zeroes 64 MiB with 16-byte stores in a grid-stride
// loop, as NVRTC compiles it, beside Go's clear on the same memory in the same
// run, and reports both and their ratio.
func BenchmarkInterpretZero(b *testing.B) {
	k := kernel(b, "zero.ptx", "zero_flat")
	data := make([]byte, 64<<20)
	r := start(b, k, testMemory{{Base: base, Data: data}}, Launch{
		Grid: [3]uint32{64, 1, 1}, Block: [3]uint32{256, 1, 1}, Params: params(uint64(base), uint64(len(data)/16))})
	for i := range data {
		data[i] = 1
	}
	var ours, clears time.Duration
	n := 0
	for b.Loop() {
		r.next, r.ended = 0, 0
		at := time.Now()
		_, err := r.Step(r.Blocks())
		ours += time.Since(at)
		require.NoError(b, err)
		at = time.Now()
		clear(data)
		clears += time.Since(at)
		n++
	}
	bytes := float64(n) * float64(len(data))
	mine, plain := bytes/1e6/ours.Seconds(), bytes/1e6/clears.Seconds()
	b.ReportMetric(mine, "MB/s")
	b.ReportMetric(plain, "clear-MB/s")
	b.ReportMetric(100*mine/plain, "%clear")
	b.ReportMetric(0, "ns/op")
}

func start(t testing.TB, k *Kernel, mem Memory, l Launch) *Run {
	t.Helper()
	r, err := k.Start(mem, l)
	require.NoError(t, err)
	return r
}

func BenchmarkInterpretZeroSpan(b *testing.B) {
	k := kernel(b, "zero.ptx", "zero_span")
	data := make([]byte, 32512)
	r := start(b, k, testMemory{{Base: base, Data: data}}, Launch{
		Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{256, 1, 1}, Params: params(uint64(base+5), uint64(len(data)-8))})
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r.next, r.ended = 0, 0
		if _, err := r.Step(1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is what a launch costs before its first thread block.
func BenchmarkStart(b *testing.B) {
	for _, c := range []struct{ file, name string }{{"zero.ptx", "zero_ids"}, {"block.ptx", "reduce"}} {
		b.Run(c.name, func(b *testing.B) {
			k := kernel(b, c.file, c.name)
			l := grid(64, 256)
			l.Params = make([]byte, k.ParamBytes())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Start(nil, l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
