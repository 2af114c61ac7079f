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
	{name: "conformance", what: "behaviours that every device shows alike, polled and watched", kind: tests,
		program: "driver.test", args: []string{"-test.run", "OnGPU"}, env: []string{"KVGATE_REQUIRE_GPU=1"},
		limit: 70 * time.Second, least: 60},
	{name: "kernels", what: "tests of the kernels: bytes compared with plain Go", kind: tests,
		program: "kernels.test", env: []string{nvidia}, limit: 60 * time.Second, least: 20,
		optional: optional{"segment-oracles.json", "KVGATE_SEGMENT_ORACLES", "TestSegmentOracles"}},
	{name: "kernels-bench", what: "benchmarks of the kernels' package", kind: benchmarks,
		program: "kernels.test", args: []string{"-test.run", "^$", "-test.bench", ".", "-test.benchtime", "200ms"}, env: []string{nvidia},
		limit: 20 * time.Second, clocks: true},
}
