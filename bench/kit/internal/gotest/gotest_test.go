package gotest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, text string) *Result {
	t.Helper()
	r, err := Read(strings.NewReader(strings.ReplaceAll(text, "^V", string(mark))))
	require.NoError(t, err)
	return r
}

func TestRead(t *testing.T) {
	r := read(t, `goos: linux
^V=== RUN   TestA
    a_test.go:3: a line
^V=== RUN   TestA/sub: one (of two)
^V--- PASS: TestA/sub: one (of two) (0.25s)
^V=== NAME  TestA
^V=== RUN   TestA/sub_2
    a_test.go:9: needs a GPU
^V--- SKIP: TestA/sub_2 (0.00s)
^V=== NAME  TestA
^V--- PASS: TestA (0.30s)
^V=== RUN   TestB
--- PASS: TestB (0.00s)
    b_test.go:1: wrong: 1
        want 2
^V--- FAIL: TestB (1.50s)
FAIL
`)
	require.Equal(t, &Result{Passed: 2, Complete: true,
		Skipped: []Test{{Name: "TestA/sub_2", Output: "a_test.go:9: needs a GPU"}},
		Failed:  []Test{{Name: "TestB", Seconds: 1.5, Output: "--- PASS: TestB (0.00s)\n    b_test.go:1: wrong: 1\n        want 2"}},
	}, r)
}

// Output without an end of line, two tests that take turns.
func TestReadInterleaved(t *testing.T) {
	r := read(t, `^V=== RUN   TestA
^V=== PAUSE TestA
^V=== RUN   TestB
^V=== PAUSE TestB
^V=== CONT  TestA
from A^V=== CONT  TestB
from B
^V=== NAME  TestA
more of A
^V--- FAIL: TestA (0.00s)
^V--- FAIL: TestB (0.00s)
FAIL`)
	require.True(t, r.Complete)
	require.Equal(t, []Test{{Name: "TestA", Output: "from A\nmore of A"}, {Name: "TestB", Output: "from B"}}, r.Failed)
}

func TestReadCrash(t *testing.T) {
	r := read(t, `^V=== RUN   TestA
^V--- PASS: TestA (0.00s)
^V=== RUN   TestB
^V=== RUN   TestB/sub
panic: test timed out after 57s
	running tests:
		TestB (57s)

goroutine 1 [running]:
panic: again
`)
	require.Equal(t, &Result{Passed: 1, Unfinished: []string{"TestB", "TestB/sub"},
		Panic: "panic: test timed out after 57s"}, r)
	require.Equal(t, &Result{}, read(t, ""))
	require.Equal(t, &Result{}, read(t, "^V\n^V=== \n^V--- \n^V--- PASS\n=== RUN TestA"))
}

func TestReadBenchmarks(t *testing.T) {
	r := read(t, `goos: linux
^V=== RUN   BenchmarkZeroBlocks
BenchmarkZeroBlocks
    device: x
^V=== RUN   BenchmarkZeroBlocks/32/fill
BenchmarkZeroBlocks/32/fill-2         	       1	   1098048 ns/op	1909.89 MB/s	         1.694 simulated-GB/s
BenchmarkOdd-2	1	5 ns/op extra
BenchmarkWord-2	x	5 ns/op
PASS
`)
	require.Equal(t, &Result{Complete: true, Benchmarks: []Benchmark{{Name: "BenchmarkZeroBlocks/32/fill-2", N: 1,
		Metrics: map[string]float64{"ns/op": 1098048, "MB/s": 1909.89, "simulated-GB/s": 1.694}}}}, r)
}

func TestOutputIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("^V=== RUN   TestA\n")
	for range 10000 {
		b.WriteString("0123456789\n")
	}
	b.WriteString(strings.Repeat("x", 3*maxOutput) + "\nlast\n^V--- FAIL: TestA (0.00s)\n")
	r := read(t, b.String())
	require.Len(t, r.Failed, 1)
	require.LessOrEqual(t, len(r.Failed[0].Output), 2*maxOutput)
	require.True(t, strings.HasSuffix(r.Failed[0].Output, "\nlast") || r.Failed[0].Output == "last")
}

func FuzzRead(f *testing.F) {
	f.Add("\x16=== RUN   TestA\nout\n\x16--- FAIL: TestA (0.1s)\nFAIL\n")
	f.Add("BenchmarkX 1 2 ns/op\nPASS")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read(strings.NewReader(text))
		require.NoError(t, err)
		require.LessOrEqual(t, r.Passed+len(r.Failed)+len(r.Skipped), strings.Count(text, "---"))
	})
}
