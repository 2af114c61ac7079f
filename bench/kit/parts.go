package main

import (
	"path/filepath"
	"time"

	"github.com/kvgate/kvgate/bench/kit/internal/pack"
)

// kind says what a part's program is, and what it owes the report.
type kind uint8

const (
	tests      kind = iota // a test binary, of which at least some tests pass
	benchmarks             // a test binary that runs benchmarks
	figures                // a program that writes JSON into the file that -json names
	printed                // a program that writes JSON, and nothing else, to its standard output
)

// part is one part of the kit: a program of its folder.
type part struct {
	name, what string
	kind       kind
	program    string // in bin/
	args       []string
	env        []string
	limit      time.Duration
	// least is how many tests have to pass: who runs none has not passed.
	least int
	// clocks are asked after before and after.
	clocks bool
	// Beside a simulated device a part takes these arguments too, which make it
	// shorter; and slow, if not 0, is how many times as slow as its model the
	// device is, so that a busy host is fast enough for what is tested.
	simulated []string
	slow      int
	// optional is a file that not every kit has.
	optional optional
}

// optional is a file of the kit: where it is there, variable names it, and
// where it is not, the tests that skip names are left out, which is noted.
type optional struct{ file, variable, skip string }

// use adds what the file means to a part's arguments and environment.
func (o optional) use(dir string, m *pack.Manifest) (args, env, notes []string) {
	if o.file == "" {
		return nil, nil, nil
	}
	if _, ok := m.Files[o.file]; ok {
		return nil, []string{o.variable + "=" + filepath.Join(dir, o.file)}, nil
	}
	return []string{"-test.skip", "^" + o.skip + "$"}, nil, []string{o.skip + " is left out: this kit has no " + o.file}
}

// nvidia makes cuda/auto take the driver and nothing else.
const nvidia = "KVGATE_DRIVER=nvidia"

// kitPart is the check of the kit's files, the only part that is no program. It
// and the probe come before all others.
const (
	kitPart   = "kit"
	probePart = "probe"
)

// parts are run in this order. Together they take less than eight minutes, even
// if each has to be killed: a test sees to it.
var parts = []part{
	{name: probePart, what: "the driver opens, and what it says of the device", kind: figures,
		program: "kit", args: []string{"probe"}, limit: 20 * time.Second},
	// Some 195 behaviours and twice 85 of them at 50 ms, and 30 processes at 1 s
	// each, make 48 s: an estimate for hardware. Simulated it takes as long.
	{name: "conformance", what: "behaviours that every device shows alike, polled and watched", kind: tests,
		program: "driver.test", args: []string{"-test.run", "OnGPU"}, env: []string{"KVGATE_REQUIRE_GPU=1"},
		limit: 85 * time.Second, least: 60, slow: 500},
	{name: "kernels", what: "tests of the kernels: bytes compared with plain Go", kind: tests,
		program: "kernels.test", env: []string{nvidia}, limit: 60 * time.Second, least: 20,
		optional: optional{"segment-oracles.json", "KVGATE_SEGMENT_ORACLES", "TestSegmentOracles"}},
	{name: "loadgate", what: "the gate on this device: the race in each mode, and a soak, contents checked", kind: tests,
		program: "loadgate.test", args: []string{"-test.run", "OnDevice"}, env: []string{nvidia},
		limit: 40 * time.Second, least: 8, slow: 100},
	{name: bandwidthPart, what: "what the kernels move, beside the driver's own fills", kind: figures,
		program: "kit", args: []string{"bandwidth"}, limit: 45 * time.Second, clocks: true},
	{name: wakePart, what: "how late waiters and held loads are, by the way to wait", kind: figures,
		program: "kit", args: []string{"wake"}, limit: 40 * time.Second, clocks: true, slow: 100},
	{name: stepPart, what: "what a step costs the host", kind: figures,
		program: "kit", args: []string{"step"}, limit: 15 * time.Second, clocks: true},
	{name: "bench", what: "benchmarks of the kernels' package", kind: benchmarks,
		program: "kernels.test", args: []string{"-test.run", "^$", "-test.bench", ".", "-test.benchtime", "200ms"}, env: []string{nvidia},
		limit: 15 * time.Second, clocks: true},
	{name: livePart, what: "ordering modes of the gate under a stand-in for a model, with another process as the NIC", kind: printed,
		program: "live", args: []string{"-json", "-for", "5s"}, simulated: []string{"-for", "500ms", "-rounds", "1"},
		env: []string{nvidia}, limit: 60 * time.Second, clocks: true},
}

// The parts whose figures a report has to have.
const (
	bandwidthPart = "bandwidth"
	wakePart      = "wake"
	stepPart      = "step"
	livePart      = "live"
)
