package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/bench/kit/internal/measure"
	"github.com/kvgate/kvgate/bench/kit/internal/pack"
	"github.com/kvgate/kvgate/bench/kit/internal/proc"
	"github.com/kvgate/kvgate/bench/kit/internal/report"
	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/loadgate/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The programs of a false kit. $2 is -json's file in those that take none else.
var programs = map[string]string{
	"found":      `echo "a device"; printf '{"device":{"name":"x","driver":"12.4","library":"l"}}' >$2`,
	"simulated":  `printf '{"device":{"name":"x","simulated":true,"library":"l"}}' >$2`,
	"missing":    `printf '{"reason":"library missing"}' >$2`,
	"figures":    `echo table; printf '{"a":1}\n' >$2`,
	"broken":     `printf '{"a":' >$2`,
	"list":       `printf '[1]' >$2`,
	"nothing":    `echo table`,
	"huge":       `head -c 5000000 /dev/zero >$2`,
	"exits":      `printf '{"a":1}\n' >$2; echo last words; exit 4`,
	"crashes":    `kill -SEGV $$`,
	"hangs":      `echo begun; sleep 1000 & wait`,
	"passes":     `printf '\026=== RUN   TestA\n\026--- PASS: TestA (0.10s)\n\026=== RUN   TestB\n\026--- PASS: TestB (0.10s)\nPASS\n'`,
	"fails":      `printf '\026=== RUN   TestA\n    a.go:1: wrong\n\026--- FAIL: TestA (0.10s)\n\026=== RUN   TestB\n\026--- PASS: TestB (0.00s)\nFAIL\n'; exit 1`,
	"none":       `printf 'testing: warning: no tests to run\nPASS\n'`,
	"stops":      `printf '\026=== RUN   TestA\n\026--- PASS: TestA (0.10s)\n\026=== RUN   TestB\n\026--- PASS: TestB (0.00s)\n\026=== RUN   TestC\n'`,
	"panics":     `printf '\026=== RUN   TestA\npanic: oh\n\ngoroutine 1\n'; exit 2`,
	"overruns":   `printf '\026=== RUN   TestA\npanic: test timed out after 57s\n\trunning tests:\n'; exit 2`,
	"measures":   `printf 'BenchmarkX-2 \t 10 \t 52 ns/op\nPASS\n'`,
	"lies":       `printf '\026=== RUN   TestA\n\026--- FAIL: TestA (0.10s)\n\026=== RUN   TestB\n\026--- PASS: TestB (0.00s)\nPASS\n'`,
	"cheerful":   `printf '\026=== RUN   TestA\n\026--- PASS: TestA (0.10s)\n'`,
	"prints":     `echo on stderr >&2; printf '{"args":"%s","slow":"%s"}' "$*" "$KVGATE_SOFT_SLOW"`,
	"environ":    `env >$2.env; echo "$KVGATE_SEGMENT_ORACLES" ; printf '{"args":"%s"}' "$*" >$2`,
	"unreadable": `mkdir $2`,
}

// falseKit is a kit of those programs.
func falseKit(t *testing.T, parts ...part) *kit {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o777))
	for name, text := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\n"+text+"\n"), 0o777))
	}
	m, err := pack.Make(dir)
	require.NoError(t, err)
	require.NoError(t, m.Write(dir))
	var says strings.Builder
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(says.String())
		}
	})
	return &kit{dir: dir, out: t.TempDir(), parts: parts, clk: clock.Wall(), says: &says, env: os.Environ(),
		state: func() *report.GPUState { return &report.GPUState{Missing: "test"} }}
}

func figuresOf(program string) part {
	return part{name: program, kind: figures, program: program, limit: time.Minute}
}

func testsOf(program string) part {
	return part{name: program, kind: tests, program: program, limit: time.Minute, least: 1}
}

func probeOf(program string) part {
	p := figuresOf(program)
	p.name = probePart
	return p
}

func TestPartsOfEachFate(t *testing.T) {
	short := testsOf("hangs")
	short.limit = 500 * time.Millisecond
	bench := testsOf("measures")
	bench.kind, bench.clocks, bench.least = benchmarks, true, 0
	noBench := testsOf("passes")
	noBench.name, noBench.kind = "no benchmark", benchmarks
	gone := testsOf("gone")
	few := testsOf("passes")
	few.name, few.least = "too few", 3
	k := falseKit(t, probeOf("found"), figuresOf("figures"), figuresOf("broken"), figuresOf("list"), figuresOf("nothing"),
		figuresOf("huge"), figuresOf("unreadable"), figuresOf("exits"), figuresOf("crashes"), testsOf("passes"), testsOf("fails"),
		testsOf("none"), testsOf("stops"), testsOf("panics"), testsOf("overruns"), testsOf("lies"), testsOf("cheerful"),
		few, short, bench, noBench, gone, part{name: "last", kind: tests, program: "passes", limit: time.Minute, least: 2})
	r := k.run(context.Background())
	require.Equal(t, report.Failed, r.Verdict)
	require.Equal(t, 1, r.Verdict.ExitCode())
	require.Equal(t, "x", r.Device.Name)
	require.Len(t, r.Parts, 1+len(k.parts), "each part is there")
	for _, want := range []struct {
		name   string
		status report.Status
		reason string
	}{
		{kitPart, report.PartPassed, ""},
		{probePart, report.PartPassed, ""},
		{"figures", report.PartPassed, ""},
		{"broken", report.PartFailed, "its figures are broken: unexpected end of JSON input"},
		{"list", report.PartFailed, "its figures are broken: "},
		{"nothing", report.PartFailed, "it wrote no figures"},
		{"huge", report.PartFailed, "its figures are no file of at most 4194304 bytes"},
		{"unreadable", report.PartFailed, "its figures are no file of at most 4194304 bytes"},
		{"exits", report.PartFailed, "exit status 4"},
		{"crashes", report.PartFailed, "signal: segmentation fault"},
		{"passes", report.PartPassed, ""},
		{"fails", report.PartFailed, "exit status 1; 1 tests failed"},
		{"none", report.PartFailed, "0 tests passed, at least 1 have to"},
		{"stops", report.PartFailed, "1 tests did not end; it did not come to its end"},
		{"panics", report.PartFailed, "exit status 2; panic: oh; 1 tests did not end; 0 tests passed, at least 1 have to"},
		{"overruns", report.PartTimedOut, "exit status 2; panic: test timed out after 57s; 1 tests did not end"},
		{"lies", report.PartFailed, "1 tests failed"},
		{"cheerful", report.PartFailed, "it did not come to its end"},
		{"too few", report.PartFailed, "2 tests passed, at least 3 have to"},
		{"hangs", report.PartTimedOut, "killed after 500ms, its limit; 0 tests passed"},
		{"measures", report.PartPassed, ""},
		{"no benchmark", report.PartFailed, "no benchmark ran"},
		{"gone", report.PartNotRun, "no such file"},
		{"last", report.PartPassed, ""},
	} {
		p := r.Part(want.name)
		require.NotNil(t, p, want.name)
		require.Equal(t, want.status, p.Status, "%s: %s", want.name, p.Reason)
		require.Contains(t, p.Reason, want.reason, want.name)
		require.Equal(t, want.reason == "", p.Reason == "", want.name)
	}
	require.JSONEq(t, `{"a":1}`, string(r.Part("figures").Data))
	require.JSONEq(t, `{"a":1}`, string(r.Part("exits").Data), "what it found before it failed is kept")
	require.Equal(t, "table\n", r.Part("figures").Text)
	require.Equal(t, "last words\n", r.Part("exits").Tail)
	require.Equal(t, "begun\n", r.Part("hangs").Tail[:6])
	require.Equal(t, "a.go:1: wrong", r.Part("fails").Tests.Failed[0].Output)
	require.Equal(t, "test", r.Part("measures").Before.Missing)
	require.Nil(t, r.Part("passes").Before)

	// In both forms, and back.
	require.NoError(t, write(r, k.out))
	text, err := os.ReadFile(filepath.Join(k.out, "report.json"))
	require.NoError(t, err)
	back, err := report.Read(text)
	require.NoError(t, err)
	require.Equal(t, r.Verdict, back.Verdict)
	require.Len(t, back.Parts, len(r.Parts))
	text, err = os.ReadFile(filepath.Join(k.out, "report.txt"))
	require.NoError(t, err)
	require.Contains(t, string(text), "kvgate GPU kit: FAILED\n")
	for _, p := range r.Parts {
		require.Contains(t, string(text), fmt.Sprintf("\n== %s: %s", p.Name, p.Status))
	}
	require.NotContains(t, string(text), "SIMULATED")
}

func TestAllPass(t *testing.T) {
	k := falseKit(t, probeOf("found"), testsOf("passes"), figuresOf("figures"))
	r := k.run(context.Background())
	require.Equal(t, report.Passed, r.Verdict, "%+v", r)
	require.Zero(t, r.Verdict.ExitCode())
}

func TestNoDriver(t *testing.T) {
	slow := probeOf("hangs")
	slow.limit = 300 * time.Millisecond
	for name, c := range map[string]struct {
		probe  part
		reason string
	}{
		"missing":      {probeOf("missing"), "no usable driver: library missing"},
		"simulated":    {probeOf("simulated"), "no usable driver: l is a simulated device (-simulated takes it for a GPU)"},
		"crashes":      {probeOf("crashes"), "the probe of the driver failed: signal: segmentation fault"},
		"broken":       {probeOf("broken"), "the probe of the driver failed: its figures are broken: "},
		"hangs":        {slow, "the probe of the driver timed out: killed after 300ms, its limit"},
		"gone":         {probeOf("gone"), "the probe of the driver not run: "},
		"exits":        {probeOf("exits"), "the probe of the driver failed: exit status 4"},
		"says nothing": {probeOf("figures"), "the probe of the driver tells of no device"},
	} {
		t.Run(name, func(t *testing.T) {
			k := falseKit(t, c.probe, testsOf("passes"), figuresOf("figures"))
			r := k.run(context.Background())
			require.Equal(t, report.NoDriver, r.Verdict)
			require.Equal(t, 3, r.Verdict.ExitCode())
			require.Nil(t, r.Device)
			require.NotEqual(t, report.PartPassed, r.Part(probePart).Status)
			for _, p := range []string{"passes", "figures"} {
				require.Equal(t, report.PartNotRun, r.Part(p).Status)
				require.Contains(t, r.Part(p).Reason, c.reason)
			}
			require.Contains(t, k.says.(fmt.Stringer).String(), c.reason)
			require.Contains(t, r.Text(), c.reason)
		})
	}
}

func TestSimulatedSaysSo(t *testing.T) {
	k := falseKit(t, probeOf("simulated"), testsOf("passes"))
	k.simulated = true
	r := k.run(context.Background())
	require.Equal(t, report.Passed, r.Verdict)
	require.True(t, r.Simulated)
	require.Contains(t, r.Text(), "SIMULATED DEVICE")
}

func TestDamagedKit(t *testing.T) {
	k := falseKit(t, probeOf("found"), testsOf("passes"))
	require.NoError(t, os.WriteFile(filepath.Join(k.dir, "bin", "fails"), []byte("x"), 0o777))
	r := k.run(context.Background())
	require.Equal(t, report.Failed, r.Verdict)
	require.Equal(t, "bin/fails is not as it was packed", r.Part(kitPart).Reason)
	require.Equal(t, report.PartPassed, r.Part("passes").Status, "the rest runs")

	require.NoError(t, os.Remove(filepath.Join(k.dir, pack.ManifestName)))
	r = k.run(context.Background())
	require.Contains(t, r.Part(kitPart).Reason, "manifest.json: no such file")
	require.Equal(t, report.PartPassed, r.Part("passes").Status)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	k := falseKit(t, probeOf("found"), testsOf("hangs"), testsOf("passes"))
	k.clk.Go("interrupt", func() {
		_ = k.clk.Sleep(ctx, 700*time.Millisecond)
		cancel(errors.New("interrupt"))
	})
	r := k.run(ctx)
	require.Equal(t, report.Failed, r.Verdict)
	require.Equal(t, report.PartFailed, r.Part("hangs").Status)
	require.Contains(t, r.Part("hangs").Reason, "interrupt")
	require.Equal(t, report.PartNotRun, r.Part("passes").Status)
	require.Equal(t, "interrupted", r.Part("passes").Reason)
}

func TestOptionalFile(t *testing.T) {
	p := figuresOf("environ")
	p.optional = optional{"extra.json", "KVGATE_SEGMENT_ORACLES", "TestX"}
	k := falseKit(t, probeOf("found"), p)
	r := k.run(context.Background())
	require.Equal(t, []string{"TestX is left out: this kit has no extra.json"}, r.Part("environ").Notes)
	require.Contains(t, r.Text(), "TestX is left out")
	k.manifest.Files["extra.json"] = pack.File{}
	require.NoError(t, k.manifest.Write(k.dir))
	r = k.run(context.Background())
	require.Empty(t, r.Part("environ").Notes)
	require.Equal(t, filepath.Join(k.dir, "extra.json")+"\n", r.Part("environ").Text)
}

func TestTogetherUnderEightMinutes(t *testing.T) {
	// nvidia-smi is not asked again where it once took too long.
	total, names := smiLimit+proc.Overtime, map[string]bool{kitPart: true}
	for _, p := range parts {
		require.False(t, names[p.name], "two parts are called %s", p.name)
		names[p.name] = true
		total += p.limit + proc.Overtime
		if p.kind == tests {
			require.Positive(t, p.least, p.name)
		}
		require.NotEmpty(t, p.what)
		if p.clocks {
			total += 2 * smiLimit
		}
	}
	require.Less(t, total, 8*time.Minute, "even if each has to be killed")
	require.Equal(t, probePart, parts[0].name)
}

func TestEnvironment(t *testing.T) {
	require.Equal(t, []string{"PATH=/bin", "KVGATE_SOFT_SLOW=5", "KVGATE_NIXL_LIB=x", "CUDA_VISIBLE_DEVICES=1"},
		cleanEnv([]string{"PATH=/bin", "KVGATE_DRIVER=sim", "KVGATE_SOFT_SLOW=5", "KVGATE_NIXL_LIB=x", "KVGATE_REQUIRE=1", "CUDA_VISIBLE_DEVICES=1"}))
}

func TestResultFolder(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
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
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"format":99}`), 0o666))
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"dance"}, 2, `no "dance"`},
		{[]string{"-x"}, 2, "run: flag provided but not defined: -x"},
		{[]string{"run", "more"}, 2, "run: 1 arguments, want 0"},
		{[]string{"-h"}, 0, ""},
		{[]string{"check"}, 2, "check: 0 arguments, want 1"},
		{[]string{"check", filepath.Join(dir, "none")}, 1, "no such file"},
		{[]string{"check", bad}, 1, "format 99"},
		{[]string{"pack", filepath.Join(dir, "none")}, 1, "no such file"},
		{[]string{"probe", "-json", filepath.Join(dir, "no", "folder")}, 1, "no such file"},
	} {
		var out, errs strings.Builder
		require.Equal(t, c.status, run(context.Background(), c.args, &out, &errs), c.args)
		require.Contains(t, errs.String(), c.says)
	}
}

// A report that lacks something is not passed.
func TestCheck(t *testing.T) {
	good := func() *report.Report {
		r := &report.Report{Format: report.Format, Verdict: report.Passed, Started: date(), Seconds: 1,
			Kit: report.Build{Revision: "x"}, Host: report.Host{CPUs: 1},
			Device: &report.Device{Name: "x", Driver: "12.4", Bandwidth: 1}}
		for _, name := range append([]string{kitPart}, partNames()...) {
			r.Parts = append(r.Parts, report.Part{Name: name, Status: report.PartPassed, Data: goodData[name]})
		}
		return r
	}
	require.NoError(t, complete(good(), false))
	require.ErrorContains(t, complete(good(), true), "simulated: false, want true")
	for name, spoil := range map[string]func(*report.Report){
		"verdict": func(r *report.Report) { r.Verdict = report.Failed },
		"device":  func(r *report.Report) { r.Device.Bandwidth = 0 },
		"part kernels failed: oh": func(r *report.Report) {
			*r.Part("kernels") = report.Part{Name: "kernels", Status: report.PartFailed, Reason: "oh"}
		},
		"part kernels is not in i": func(r *report.Report) { r.Part("kernels").Name = "x" },
	} {
		r := good()
		spoil(r)
		require.ErrorContains(t, complete(r, false), name)
	}
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// goodData is what measuring parts have to have found.
var goodData = map[string]json.RawMessage{
	bandwidthPart: encode(measure.Bandwidths{Rows: []measure.BandwidthRow{
		bandwidthRow(measure.Kernels[0], &measure.Fill{Rate: 1}), bandwidthRow(measure.Kernels[1], nil), bandwidthRow(measure.Kernels[2], nil)}}),
	wakePart: encode(goodWakes()),
	stepPart: encode(goodSteps()),
	livePart: encode(goodLive()),
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func bandwidthRow(kernel string, rows *measure.Fill) measure.BandwidthRow {
	return measure.BandwidthRow{Kernel: kernel, Rate: 1, Peak: 0.5, Seconds: measure.Spread{N: 1}, Memset: measure.Fill{Rate: 1}, Rows: rows}
}

func goodWakes() (w measure.Wakes) {
	for _, way := range measure.WakeWays {
		w.Rows = append(w.Rows, measure.WakeRow{Way: way, Missing: "not here"},
			measure.WakeRow{Way: way, Busy: true, Fence: &measure.Late{N: 1}, Post: &measure.Late{N: 1}})
	}
	return w
}

func goodSteps() (s measure.Steps) {
	for _, what := range measure.StepRows {
		s.Rows = append(s.Rows, measure.StepRow{What: what, Host: measure.Late{N: 1}, Crossings: 1})
	}
	return s
}

func goodLive() map[string]any {
	var modes []map[string]any
	for _, m := range core.Modes() {
		modes = append(modes, map[string]any{"mode": m.String(), "gated": m.Gated(), "steps": 1, "blocks": 2, "loads": 3, "held_loads": 1})
	}
	return map[string]any{"device": map[string]any{"name": "x"}, "nic": map[string]any{"kind": "copy", "what": "an engine"}, "modes": modes}
}

// Figures that lack something are told apart from good ones.
func TestCheckFigures(t *testing.T) {
	spoilt := func(part string, data any) error {
		r := &report.Report{}
		for name, good := range goodData {
			p := report.Part{Name: name, Data: good}
			if name == part {
				p.Data = encode(data)
			}
			r.Parts = append(r.Parts, p)
		}
		return checkFigures(r)
	}
	require.NoError(t, spoilt("", nil))
	noRows := bandwidthRow(measure.Kernels[0], nil)
	require.ErrorContains(t, spoilt(bandwidthPart, measure.Bandwidths{Simulated: true}), "part bandwidth: its figures say that the device is simulated: true")
	require.ErrorContains(t, spoilt(bandwidthPart, measure.Bandwidths{}), "no figures of zero_blocks")
	require.ErrorContains(t, spoilt(bandwidthPart, measure.Bandwidths{Rows: []measure.BandwidthRow{noRows,
		bandwidthRow(measure.Kernels[1], nil), bandwidthRow(measure.Kernels[2], nil)}}), "fill of rows")
	w := goodWakes()
	w.Rows[1].Fence.N = 0
	require.ErrorContains(t, spoilt(wakePart, w), "figures of poll, busy: true, are missing")
	w.Rows = w.Rows[2:]
	require.ErrorContains(t, spoilt(wakePart, w), "no figures of poll, busy: false")
	s := goodSteps()
	s.Rows[1].Host.N = 0
	require.ErrorContains(t, spoilt(stepPart, s), "no figures of poll of 4 marks")
	l := goodLive()
	l["failure"] = "oh"
	require.ErrorContains(t, spoilt(livePart, l), "failure: oh")
	l["modes"].([]map[string]any)[1]["corrupted_blocks"] = 3
	require.ErrorContains(t, spoilt(livePart, l), core.Modes()[1].String()+" corrupted 3 blocks")
	l["modes"] = l["modes"].([]map[string]any)[2:]
	require.ErrorContains(t, spoilt(livePart, l), "no figures of mode Ungated")
}

func TestLiveText(t *testing.T) {
	text := liveText(goodData[livePart])
	require.Contains(t, text, "NIC: copy: an engine\n")
	require.Regexp(t, `PerBlock +0\.0 +- .* 1 of 3 .* 0 of 2`, text)
	require.NotContains(t, text, "SIMULATED")
	require.Contains(t, liveText([]byte(`{"device":{"name":"x","simulated":true},"failure":"oh"}`)), "SIMULATED: x")
	require.Contains(t, liveText([]byte(`{"modes":1}`)), "not as they should be")
}

// What prints its figures has its standard output apart from its log.
func TestPrinted(t *testing.T) {
	print := part{name: "prints", kind: printed, program: "prints", limit: time.Minute, simulated: []string{"-short"}, slow: 7}
	k := falseKit(t, probeOf("simulated"), print)
	k.simulated = true
	r := k.run(context.Background())
	require.Equal(t, report.Passed, r.Verdict, "%+v", r.Parts)
	require.JSONEq(t, `{"args":"-short","slow":"7"}`, string(r.Part("prints").Data))
	require.Equal(t, "on stderr\n", r.Part("prints").Text)
	require.Equal(t, float64(60*rehearsalLimit), r.Part("prints").Limit)

	print.program = "nothing"
	k = falseKit(t, probeOf("found"), print)
	r = k.run(context.Background())
	require.Contains(t, r.Part("prints").Reason, "its figures are broken: ")
}
