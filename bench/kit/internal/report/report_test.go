package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/bench/kit/internal/gotest"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		statuses []Status
		device   bool
		verdict  Verdict
		exit     int
	}{
		{[]Status{PartPassed, PartPassed}, true, Passed, 0},
		{[]Status{PartPassed, PartFailed}, true, Failed, 1},
		{[]Status{PartTimedOut, PartPassed}, true, Failed, 1},
		{[]Status{PartNotRun}, true, Failed, 1},
		{nil, true, Failed, 1},
		{[]Status{PartPassed}, false, NoDriver, 3},
	} {
		r := &Report{}
		if c.device {
			r.Device = &Device{}
		}
		for _, s := range c.statuses {
			r.Parts = append(r.Parts, Part{Status: s})
		}
		r.Judge()
		require.Equal(t, c.verdict, r.Verdict, "%+v", c)
		require.Equal(t, c.exit, r.Verdict.ExitCode())
	}
}

func TestText(t *testing.T) {
	r := &Report{Verdict: Failed, Started: time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC), Seconds: 99.6,
		Kit:    Build{Revision: "abc", Modified: true, Go: "go1", Target: "linux/amd64", Glibc: "2.34"},
		Host:   Host{Kernel: "6", CPU: "cpu", CPUs: 2, MemoryMiB: 3},
		Device: &Device{Name: "gpu", Driver: "12.4", Library: "lib", Memory: 5 << 20, Bandwidth: 3.35e12},
		Parts: []Part{
			{Name: "a", What: "this", Status: PartPassed, Seconds: 1.5, Limit: 20, Notes: []string{"a note"}, Text: "table\n\n",
				Before: &GPUState{Missing: "no smi"}},
			{Name: "b", What: "that", Status: PartFailed, Reason: "oh", Log: "b.log", Tail: "one\ntwo\n", Tests: &gotest.Result{
				Passed: 1, Failed: []gotest.Test{{Name: "TestX", Seconds: 2, Output: "x\ny"}}, Skipped: []gotest.Test{{Name: "TestY"}},
				Unfinished: []string{"TestZ"}, Panic: "panic: z", Benchmarks: []gotest.Benchmark{{Name: "BenchmarkX",
					Metrics: map[string]float64{"ns/op": 5, "GB/s": 1.23456}}}}},
		}}
	text := r.Text()
	for _, want := range []string{
		"kvgate GPU kit: FAILED\n", "2026-12-01T09:30:00Z, took 100 s", "revision abc with other changes",
		"3350 GB/s; PCI unknown", "\na             passed         1.5     20  this\n", "\n== a: passed\na note\ntable\nbefore: clocks unknown: no smi\n",
		"\n== b: failed: oh\n", "FAIL TestX (2.00 s)\n    x\n    y\n", "skip TestY\nunfinished TestZ\npanic: z\n",
		"BenchmarkX  1.235 GB/s  5 ns/op\n", "the end of b.log:\n    one\n    two\n",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "SIMULATED")
	r.Simulated, r.Device = true, nil
	require.Contains(t, r.Text(), "\nSIMULATED DEVICE: a rehearsal. No figure below is of any hardware.\n")
	require.Contains(t, r.Text(), "device   none\n")
}

func TestRead(t *testing.T) {
	text, err := json.Marshal(&Report{Format: Format, Parts: []Part{{Name: "a"}}})
	require.NoError(t, err)
	r, err := Read(text)
	require.NoError(t, err)
	require.NotNil(t, r.Part("a"))
	require.Nil(t, r.Part("b"))
	_, err = Read([]byte("{"))
	require.ErrorContains(t, err, "report: ")
	_, err = Read([]byte(`{}`))
	require.EqualError(t, err, "report: format 0, this program knows 1")
}

func TestGPUState(t *testing.T) {
	s, err := ParseGPUState(strings.Repeat("x, ", len(Queries)-1) + "y\n")
	require.NoError(t, err)
	require.Equal(t, "x", s.Values["pstate"])
	require.Equal(t, "y", s.Values[Queries[len(Queries)-1]])
	for _, bad := range []string{"", "a, b", strings.Repeat("x, ", len(Queries)) + "y"} {
		_, err := ParseGPUState(bad)
		require.Error(t, err, bad)
	}
}
