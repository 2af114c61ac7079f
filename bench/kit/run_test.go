package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
)

// The programs of a false kit, shell scripts.
var programs = map[string]string{
	"found":     `printf '\026=== RUN   TestP\n    x.go:1: device: {"name":"x","library":"l"}\n\026--- PASS: TestP (0.10s)\nPASS\n'`,
	"simulated": `printf '\026=== RUN   TestP\n    x.go:1: device: {"name":"x","library":"l","simulated":true}\n\026--- PASS: TestP (0.10s)\nPASS\n'`,
	"missing":   `printf '\026=== RUN   TestP\n    x.go:1: \n      Error: \n   cuda/driver: no usable CUDA driver: gone\n\026--- FAIL: TestP (0.10s)\nFAIL\n'; exit 1`,
	"exclusive": `if test -e "$(dirname $0)/twice"; then exec "$(dirname $0)/found"; fi; touch "$(dirname $0)/twice"; printf '\026=== RUN   TestP\n   cuda/driver: x: CUDA_ERROR_DEVICE_UNAVAILABLE\n\026--- FAIL: TestP (0.10s)\nFAIL\n'; exit 1`,
	"exits":     `echo last words; exit 4`,
	"crashes":   `kill -SEGV $$`,
	"hangs":     `echo begun; sleep 1000 & wait`,
	"passes":    `printf '\026=== RUN   TestA\n\026--- PASS: TestA (0.10s)\n\026=== RUN   TestB\n\026--- PASS: TestB (0.10s)\nPASS\n'`,
	"fails":     `printf '\026=== RUN   TestA\n    a.go:1: wrong\n\026--- FAIL: TestA (0.10s)\n\026=== RUN   TestB\n\026--- PASS: TestB (0.00s)\nFAIL\n'; exit 1`,
	"stops":     `printf '\026=== RUN   TestA\n\026--- PASS: TestA (0.10s)\n\026=== RUN   TestC\n'`,
	"overruns":  `printf '\026=== RUN   TestA\npanic: test timed out after 57s\n\trunning tests:\n'; exit 2`,
	"lies":      `printf '\026=== RUN   TestA\n\026--- FAIL: TestA (0.10s)\n\026=== RUN   TestB\n\026--- PASS: TestB (0.00s)\nPASS\n'`,
	"cheerful":  `printf '\026=== RUN   TestA\n\026--- PASS: TestA (0.10s)\n'`,
	"measures":  `printf 'BenchmarkX-2 \t 10 \t 52 ns/op\nPASS\n'`,
	"loses":     `printf '\026=== RUN   BenchmarkX/a\nBenchmarkX/a-2 \t 10 \t 52 ns/op\n'; kill -SEGV $$`,
	"prints":    `printf 'text\nBenchmarkY 1 2 s "%s" "%s"\nBenchmarkX 1 2 s\n' "$*" "$KVGATE_SOFT_SLOW"`,
	"environ":   `env; pwd`,
}

// falseKit is a kit of those programs.
func falseKit(t *testing.T, probe string, parts ...part) *kit {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o777))
	for name, text := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\n"+text+"\n"), 0o777))
	}
	var says strings.Builder
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(says.String())
		}
	})
	first := of(probe)
	first.name = probePart
	return &kit{dir: dir, out: t.TempDir(), parts: append([]part{first}, parts...), clk: clock.Wall(), says: &says, env: os.Environ()}
}

func of(program string) part {
	return part{name: program, program: program, limit: time.Minute, least: 1}
}

func (p part) with(change func(p *part)) part { change(&p); return p }

func (k *kit) must(t *testing.T, ctx context.Context) *Report {
	r, err := k.run(ctx)
	require.NoError(t, err)
	return r
}

func TestPartsOfEachFate(t *testing.T) {
	rows := func(p *part) { p.least, p.rows = 0, 1 }
	plain := func(p *part) { p.least, p.plain = 0, true }
	k := falseKit(t, "found", of("passes"), of("fails"), of("stops"), of("overruns"), of("lies"), of("cheerful"), of("crashes"),
		of("passes").with(func(p *part) { p.name, p.least = "too few", 3 }),
		of("hangs").with(func(p *part) { p.limit = 500 * time.Millisecond }),
		of("measures").with(rows), of("loses").with(rows),
		of("passes").with(func(p *part) { p.name, p.rows = "no figures", 1 }),
		of("prints").with(plain), of("exits").with(plain), of("gone"),
		of("passes").with(func(p *part) { p.name, p.least = "last", 2 }))
	r := k.must(t, t.Context())
	require.Equal(t, "failed", r.Verdict)
	require.Equal(t, 1, r.exitCode())
	require.Equal(t, "x", r.Device.Name)
	for _, want := range []struct{ name, status, reason string }{
		{probePart, passed, ""},
		{"passes", passed, ""},
		{"fails", failed, "exit status 1; 1 tests failed"},
		{"stops", failed, "1 tests did not end; it did not come to its end"},
		{"overruns", late, "exit status 2; panic: test timed out after 57s; 1 tests did not end"},
		{"lies", failed, "1 tests failed"},
		{"cheerful", failed, "it did not come to its end"},
		{"crashes", failed, "signal: segmentation fault"},
		{"too few", failed, "2 tests passed, at least 3 have to"},
		{"hangs", late, "killed after 500ms, its limit; 0 tests passed"},
		{"measures", passed, ""},
		{"loses", failed, "signal: segmentation fault"},
		{"no figures", failed, "0 figures, at least 1 there have to be"},
		{"prints", passed, ""},
		{"exits", failed, "exit status 4"},
		{"gone", notRun, "no such file"},
		{"last", passed, ""},
	} {
		p := r.part(want.name)
		require.NotNil(t, p, want.name)
		require.Equal(t, want.status, p.Status, "%s: %s", want.name, p.Reason)
		require.Contains(t, p.Reason, want.reason, want.name)
		require.Equal(t, want.reason == "", p.Reason == "", want.name)
	}
	require.Equal(t, []Row{{Name: "BenchmarkX/a", Metrics: map[string]float64{"ns/op": 52}}}, r.part("loses").Rows, "what it found before it failed is kept")
	require.Equal(t, []Row{{Name: "BenchmarkX", Metrics: map[string]float64{"s": 2}}}, r.part("prints").Rows)
	require.Equal(t, "last words\n", r.part("exits").Text)
	require.Equal(t, "a.go:1: wrong", r.part("fails").Failed[0].Output)

	// In both forms, and back.
	text, err := os.ReadFile(filepath.Join(k.out, "report.json"))
	require.NoError(t, err)
	back, err := readReport(text)
	require.NoError(t, err)
	require.Equal(t, r.Verdict, back.Verdict)
	require.Len(t, back.Parts, len(k.parts))
	require.Equal(t, r.part("measures").Rows, back.part("measures").Rows)
	text, err = os.ReadFile(filepath.Join(k.out, "report.txt"))
	require.NoError(t, err)
	require.Contains(t, string(text), "kvgate GPU kit: FAILED\n")
	for _, p := range r.Parts {
		require.Contains(t, string(text), fmt.Sprintf("\n== %s: %s", p.Name, p.Status))
		if p.Status != notRun {
			require.Contains(t, packed(t, k.out), p.Name+".log")
		}
	}
	require.NotContains(t, string(text), "SIMULATED")
	require.NoDirExists(t, k.logs, "all of it is in the archive")
	require.Contains(t, r.Notes[0], "the context was not held: ")
}

// While a part runs there is a whole report that says so.
func TestWrittenAsItGoes(t *testing.T) {
	k := falseKit(t, "found", of("passes"), of("hangs"), of("measures"))
	ctx, cancel := context.WithCancelCause(t.Context())
	k.clk.Go("interrupt", func() {
		says := func(s string) bool {
			text, _ := os.ReadFile(filepath.Join(k.out, "report.txt"))
			return strings.Contains(string(text), s)
		}
		for range 1000 {
			if says("kvgate GPU kit: RUNNING\n") && says("\n== passes: passed\n") && says("\n== hangs: running\n") &&
				says("\n== measures: not run: the run ended before\n") {
				break
			}
			_ = k.clk.Sleep(ctx, 20*time.Millisecond)
		}
		cancel(errors.New("stopped by a test"))
	})
	start := k.clk.Now()
	r := k.must(t, ctx)
	require.Less(t, k.clk.Now()-start, 19*time.Second, "the report was not there meanwhile")
	require.Equal(t, failed, r.part("hangs").Status)
	require.Contains(t, r.part("hangs").Reason, "stopped by a test")
	require.Equal(t, notRun, r.part("measures").Status)
	require.Equal(t, "interrupted", r.part("measures").Reason)
}

func TestNoDriver(t *testing.T) {
	for probe, reason := range map[string]string{
		"missing":   "no usable driver: cuda/driver: no usable CUDA driver: gone",
		"simulated": "no usable driver: l is a simulated device (-simulated takes it for a GPU)",
		"crashes":   "the probe of the driver failed: signal: segmentation fault",
		"gone":      "the probe of the driver not run: ",
		"passes":    "the probe tells of no device",
	} {
		t.Run(probe, func(t *testing.T) {
			k := falseKit(t, probe, of("passes").with(func(p *part) { p.name = "other" }))
			r := k.must(t, t.Context())
			require.Equal(t, "no driver", r.Verdict)
			require.Equal(t, 3, r.exitCode())
			require.Nil(t, r.Device)
			require.NotEqual(t, passed, r.part(probePart).Status)
			require.Equal(t, notRun, r.part("other").Status)
			require.Contains(t, r.part("other").Reason, reason)
			require.Contains(t, k.says.(fmt.Stringer).String(), reason)
			require.Contains(t, r.text(), reason)
		})
	}
}

// A GPU that takes one process at a time is not held.
func TestExclusiveDevice(t *testing.T) {
	k := falseKit(t, "exclusive", of("passes"))
	r := k.must(t, t.Context())
	require.Equal(t, "passed", r.Verdict, r.text())
	require.Equal(t, []string{"no context is held: beside one the device was not available"}, r.Notes)
}

func TestBesideASimulatedDevice(t *testing.T) {
	k := falseKit(t, "simulated", of("prints").with(func(p *part) {
		p.plain, p.least, p.simulated, p.slow = true, 0, []string{"-short"}, 7
	}))
	k.simulated = true
	r := k.must(t, t.Context())
	require.Equal(t, "passed", r.Verdict)
	require.True(t, r.Simulated)
	require.Contains(t, r.text(), "SIMULATED DEVICE")
	require.Contains(t, r.part("prints").Text, `"-short" "7"`)
	require.Equal(t, float64(60*simulatedLimit), r.part("prints").Limit)
	k.limits, k.out = 0.5, t.TempDir()
	require.Equal(t, 30.0, k.must(t, t.Context()).part("prints").Limit)
}

func TestEnvironment(t *testing.T) {
	require.Equal(t, append([]string{"A=1", "KVGATE_SOFT_SLOW=5", "KVGATE_NIXL_LIB=n"}, environment...),
		cleanEnv([]string{"A=1", "KVGATE_SOFT_SLOW=5", "KVGATE_DRIVER=sim", "KVGATE_NIXL_LIB=n"}))
	k := falseKit(t, "found", of("environ").with(func(p *part) { p.plain, p.least, p.dir = true, 0, "bin" }))
	k.env = cleanEnv(k.env)
	text := k.must(t, t.Context()).part("environ").Text
	for _, e := range environment {
		require.Contains(t, text, e+"\n")
	}
	require.Contains(t, text, filepath.Join(k.dir, "bin")+"\n")
}

// What comes first is there in five minutes, all of it in eight, even if each part is
// killed.
func TestTogetherInTime(t *testing.T) {
	sum, live := firstAnswer, time.Duration(0)
	names := map[string]bool{}
	for _, p := range parts {
		require.False(t, names[p.name], "two parts are called %s", p.name)
		names[p.name] = true
		sum += p.limit + overtime
		if p.name == "live" {
			live = sum
		}
	}
	require.Less(t, live, firstTime)
	require.Less(t, sum, mostTime+40*time.Second, "the last part would get next to nothing")
	require.Equal(t, []string{kitPart, probePart}, []string{parts[0].name, parts[1].name})
	require.Equal(t, "conformance", parts[len(parts)-1].name, "what kills a context comes last")

	// When the time is over the rest is not run.
	k := falseKit(t, "found", of("hangs"), of("passes"))
	k.limits = 0.005 // 2.3 s for all, 300 ms for each
	r := k.must(t, t.Context())
	require.Equal(t, late, r.part("hangs").Status)
	require.Less(t, r.Seconds, 20.0)
}

func TestResultFolder(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		out, err := resultFolder(dir, "")
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, fmt.Sprintf("result-%d", i+1)), out)
	}
	out, err := resultFolder(dir, filepath.Join(dir, "a", "b"))
	require.NoError(t, err)
	require.DirExists(t, out)
	require.NoError(t, os.WriteFile(filepath.Join(out, "report.json"), nil, 0o666))
	_, err = resultFolder(dir, out)
	require.ErrorContains(t, err, "holds a report already")
	_, err = resultFolder(filepath.Join(dir, "nowhere"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"-x"}, 2, "flag provided but not defined: -x"},
		{[]string{"dance"}, 2, `no part "dance": there are kit, probe, bandwidth, `},
		{[]string{"-limits", "-1"}, 2, "-limits -1: want 0 to 100"},
		{[]string{"-h"}, 0, ""},
	} {
		var out, errs strings.Builder
		require.Equal(t, c.status, run(t.Context(), t.TempDir(), c.args, &out, &errs), c.args)
		require.Contains(t, errs.String(), c.says)
	}
	k, err := parse(t.TempDir(), []string{"live", "step"})
	require.NoError(t, err)
	require.True(t, k.chosen)
	var names []string
	for _, p := range k.parts {
		names = append(names, p.name)
	}
	require.Equal(t, []string{kitPart, probePart, "step", "live"}, names, "in their order")
	k, err = parse(t.TempDir(), nil)
	require.NoError(t, err)
	require.Len(t, k.parts, len(parts))
}

func TestHost(t *testing.T) {
	h := host()
	require.NotEmpty(t, h.Kernel)
	require.Positive(t, h.CPUs)
	require.Positive(t, h.MemoryMiB)
	require.Equal(t, "b c", field("x\t: y\na \t: b c\na : d\n", "a"))
	require.Empty(t, field("x: y", "a"))
	_, err := readReport([]byte("{"))
	require.ErrorContains(t, err, "report: ")
	_, err = readReport([]byte(`{}`))
	require.EqualError(t, err, "report: format 0, this program knows 2")
}

func TestText(t *testing.T) {
	r := &Report{Verdict: failed, Started: time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC), Seconds: 99.6,
		Kit:    Build{Revision: "abc", Modified: true, Go: "go1", Target: "linux/amd64"},
		Device: &Device{Name: "gpu", Driver: "12.4", Library: "lib", Memory: 5 << 20, Bandwidth: 3.35e12},
		GPU:    map[string]string{"power.limit": "700"}, Notes: []string{"a note"},
		Parts: []Part{
			{Name: "a", What: "this", Status: passed, Seconds: 1.5, Limit: 20, Clocks: &Clocks{Missing: "no smi"}, Text: "table\n\n",
				Result: Result{Observations: []string{"a word: 801"}, Rows: []Row{
					{Name: "BenchmarkX/one", Metrics: map[string]float64{"GB/s": 1.23456, "ns/op": 0, "MB": 2}},
					{Name: "BenchmarkX/two", Error: "oh\nno"},
					{Name: "BenchmarkX/three", Metrics: map[string]float64{"GB/s": 7}},
					{Name: "BenchmarkZ", Metrics: map[string]float64{"ns/op": 5}}}}},
			{Name: "b", What: "that", Status: failed, Reason: "oh", Result: Result{Passed: 1, Failed: []Test{{Name: "TestX", Output: "x\ny"}, {Name: "BenchmarkX/two"}},
				Skipped: []Test{{Name: "TestY"}}, Unfinished: []string{"TestZ"}, Panic: "panic: z"}},
		}}
	text := r.text()
	for _, want := range []string{
		"kvgate GPU kit: FAILED\n", "2026-12-01T09:30:00Z, took 100 s", "revision abc with other changes", "3350 GB/s; RDMA", "PCI unknown",
		"power.limit: 700\n", "note     a note\n", "\na            passed         1.5     20  this\n", "\n== a: passed\nclocks unknown: no smi\n",
		"         GB/s   MB\nX/one    1.235  2\nX/three  7      -\nX/two: no figures: oh\nno\n   ns/op\nZ  5\nobserved: a word: 801\n    table\n",
		"\n== b: failed: oh\ntests and subtests: 1 passed, 2 failed, 1 skipped, 1 unfinished\nFAIL TestX\n    x\n    y\nskip TestY\nunfinished TestZ\npanic: z\n",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "SIMULATED")
	r.Simulated, r.Device = true, nil
	require.Contains(t, r.text(), "\nSIMULATED DEVICE: a rehearsal. No figure below is of any hardware.\n")
	require.Contains(t, r.text(), "device   none\n")
}

// A false nvidia-smi.
func TestSampler(t *testing.T) {
	line := func(sm, reasons string) string {
		f := []string{sm, "2600", "40", "300.5", "P0", reasons}
		return "echo '" + strings.Join(append(f, slices.Repeat([]string{"x"}, len(queries)-steady)...), ", ") + "'; "
	}
	clk := clock.Wall()
	for _, c := range []struct{ name, script, says string }{
		{"answers", line("1980", "0x0000000000000004") + line("1200", "0x0000000000000061") + line("1500", "0x0") + "sleep 1000",
			"3 samples meanwhile: SM clock 1200 to 1980 MHz (median 1500), memory clock 2600 to 2600, P0, up to 40 C and 300 W; " +
				"clocks low for: hardware thermal slowdown, idle, software power cap, software thermal slowdown"},
		{"an old one", `case "$*" in *clocks_event_reasons*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2;; esac; ` +
			line("7", "0x0") + line("7", "0x0") + line("7", "0x0") + "sleep 1000", "3 samples meanwhile: SM clock 7 to 7 MHz"},
		{"no device", "echo No devices were found; exit 6", "clocks unknown: nvidia-smi ended: exit status 6: No devices were found"},
		{"silent", "sleep 1000", "clocks unknown: nvidia-smi has not answered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o777))
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			s := startSampler(clk, os.Environ())
			if c.name != "silent" {
				s.ready(firstAnswer)
			} else {
				s.ready(time.Millisecond)
			}
			for range 500 { // until it has said what it says
				s.mu.Lock()
				enough := len(s.samples) == 3 || s.ended
				s.mu.Unlock()
				if enough || c.name == "silent" {
					break
				}
				require.NoError(t, clk.Sleep(t.Context(), 20*time.Millisecond))
			}
			require.Contains(t, s.take().String(), c.says)
			if c.name == "answers" {
				require.Equal(t, "x", s.steadyValues()["mig.mode.current"])
				require.Contains(t, s.take().String(), "clocks unknown", "each sample counts once")
			}
			s.stop()
		})
	}
	t.Setenv("PATH", t.TempDir())
	s := startSampler(clk, nil)
	require.Contains(t, s.take().String(), "executable file not found")
	s.stop()
	// Where it is not on the path.
	place := filepath.Join(t.TempDir(), "nvidia-smi")
	require.NoError(t, os.WriteFile(place, []byte("#!/bin/sh\n"+line("5", "0x0")+"\n"), 0o777))
	before := smiPlaces
	smiPlaces = []string{"nvidia-smi", place}
	defer func() { smiPlaces = before }()
	s = startSampler(clk, nil)
	s.ready(firstAnswer)
	require.Contains(t, s.take().String(), "1 samples meanwhile: SM clock 5 to 5 MHz")
	s.stop()
}
