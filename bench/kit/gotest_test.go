package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, text string) *Result {
	t.Helper()
	r, err := readResult(strings.NewReader(strings.ReplaceAll(text, "^V", string(mark))))
	require.NoError(t, err)
	return r
}

func TestReadResult(t *testing.T) {
	require.Equal(t, &Result{Passed: 2, complete: true, device: `{"a":1}`, Observations: []string{"a word: CUDA_ERROR_NOT_SUPPORTED", "last"},
		Skipped: []Test{{Name: "TestA/sub_2", Output: "a_test.go:9: needs a GPU"}},
		Failed:  []Test{{Name: "TestB", Output: "--- PASS: TestB (0.00s)\n    b_test.go:1: wrong: 1\n        want 2"}},
	}, read(t, `goos: linux
^V=== RUN   TestA
    a_test.go:3: a line
    a_test.go:4: device: {"a":1}
^V=== RUN   TestA/sub: one (of two)
        b_test.go:7: observation: a word: CUDA_ERROR_NOT_SUPPORTED
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
    b_test.go:1: observation: last
^V--- FAIL: TestB (1.50s)
FAIL
`))
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
	require.True(t, r.complete)
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
	require.Equal(t, &Result{Passed: 1, Unfinished: []string{"TestB", "TestB/sub"}, Panic: "panic: test timed out after 57s"}, r)
	require.Equal(t, &Result{}, read(t, ""))
	require.Equal(t, &Result{}, read(t, "^V\n^V=== \n^V--- \n^V--- PASS\n=== RUN TestA"))
}

// A benchmark keeps its figures when a later one fails, or does not end.
func TestReadRows(t *testing.T) {
	const text = `goos: linux
^V=== RUN   BenchmarkX
BenchmarkX
    device: x
^V=== RUN   BenchmarkX/32/fill-1
BenchmarkX/32/fill-1-16         	       1	   1098048 ns/op	         1.694 simulated-GB/s
BenchmarkOdd-2	1	5 ns/op extra
BenchmarkWord-2	x	5 ns/op
^V=== RUN   BenchmarkX/33
BenchmarkX/33
    x_test.go:7: oh
`
	good := Row{Name: "BenchmarkX/32/fill-1", Metrics: map[string]float64{"ns/op": 1098048, "simulated-GB/s": 1.694}}
	r := read(t, text+"^V--- FAIL: BenchmarkX/33\n^V--- FAIL: BenchmarkX\n    x_test.go:9: at the end\nFAIL\n")
	require.Equal(t, []Row{good, {Name: "BenchmarkX/33", Error: "BenchmarkX/33\n    x_test.go:7: oh"}}, r.Rows)
	require.Len(t, r.Failed, 2)
	r = read(t, text)
	require.Equal(t, []Row{good}, r.Rows)
	require.Equal(t, []string{"BenchmarkX/33"}, r.Unfinished)
	require.Empty(t, read(t, text+"PASS\n").Unfinished)
	require.Equal(t, []Row{{Name: "BenchmarkN", Metrics: map[string]float64{"s": 1}}, {Name: "BenchmarkM", Error: "its figures are no numbers: BenchmarkM 1 NaN s"}},
		read(t, "BenchmarkN 1 NaN GB/s 1 s\nBenchmarkM 1 NaN s\n").Rows)
	// A program that is no test, whose names may end as they like.
	require.Equal(t, []Row{{Name: "BenchmarkLive/round-1", Metrics: map[string]float64{"loads": 3}}},
		read(t, "text\nBenchmarkLive/round-1\t5\t3 loads\n").Rows)
}

func TestOutputIsBounded(t *testing.T) {
	r := read(t, "^V=== RUN   TestA\n"+strings.Repeat("0123456789\n", 10000)+strings.Repeat("x", 3<<20)+"\nlast\n^V--- FAIL: TestA (0.00s)\n")
	require.Len(t, r.Failed, 1)
	require.LessOrEqual(t, len(r.Failed[0].Output), 2*maxOutput)
	require.True(t, strings.HasSuffix(r.Failed[0].Output, "last"))
}

func FuzzReadResult(f *testing.F) {
	f.Add("\x16=== RUN   TestA\nout\n\x16--- FAIL: TestA (0.1s)\nFAIL\n")
	f.Add("BenchmarkX 1 2 ns/op\nPASS")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := readResult(strings.NewReader(text))
		require.NoError(t, err)
		require.LessOrEqual(t, r.Passed+len(r.Failed)+len(r.Skipped), strings.Count(text, "---"))
	})
}
