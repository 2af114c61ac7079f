package loadgate_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/loadgate/gatetest/scenario"
)

const scenarios = "testdata/scenarios"

var scenarioSeeds = flag.Int("scenario.seeds", 3, "how many seeds each scenario runs under in each mode")

var scenarioRandom = flag.Int("scenario.random", 25, "how many random scripts are run in each gated mode")

// TestScenarios runs the stories of testdata/scenarios and compares their
// traces. In a file, `script` takes the statements that follow it, and `run
// mode=M` runs them and prints the trace. `script race` says that Ungated has
// to corrupt: [TestScenarioSeeds] demands it. go test -run TestScenarios
// -rewrite rewrites the traces.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, scenarios, func(t *testing.T, path string) {
		var s *scenario.Script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "script":
				var err error
				if s, err = scenario.Parse(d.Input); err != nil {
					return err.Error()
				}
				return fmt.Sprintf("%d statements", s.Len())
			case "run":
				if s == nil {
					d.Fatalf(t, "no script before it")
				}
				res, err := scenario.Run(s, options(t, d))
				if err != nil {
					return err.Error()
				}
				return res.String()
			}
			d.Fatalf(t, "no command %q", d.Cmd)
			return ""
		})
	})
}

func options(t *testing.T, d *datadriven.TestData) (o scenario.Options) {
	if d.HasArg("mode") {
		var name string
		d.ScanArgs(t, "mode", &name)
		mode, err := core.ParseMode(name)
		require.NoError(t, err)
		o.Mode = &mode
	}
	return o
}

// story is the script of a file.
type story struct {
	name   string
	script *scenario.Script
	race   bool
}

func stories(t testing.TB) (all []story) {
	require.NoError(t, filepath.WalkDir(scenarios, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		datadriven.RunTestFromStringAny(t, string(raw), func(t testing.TB, d *datadriven.TestData) string {
			if d.Cmd == "script" {
				s, err := scenario.Parse(d.Input)
				require.NoError(t, err, path)
				all = append(all, story{strings.TrimSuffix(filepath.Base(path), ".txt"), s, d.HasArg("race")})
			}
			return d.Expected
		})
		return nil
	}))
	require.NotEmpty(t, all)
	return all
}

// TestScenarioSeeds runs every story in every mode under many seeds, which
// change durations and the order of what happens at one moment: no gated mode
// may corrupt under any, and of a race Ungated has to under some.
func TestScenarioSeeds(t *testing.T) {
	for _, st := range stories(t) {
		t.Run(st.name, func(t *testing.T) {
			for _, mode := range core.Modes() {
				if !mode.Gated() && mode != core.Ungated {
					continue
				}
				corrupted := 0
				for seed := range uint64(*scenarioSeeds) {
					res, err := scenario.Run(st.script, scenario.Options{Mode: &mode, Seed: seed})
					require.NoError(t, err, "%v seed %d", mode, seed)
					if len(res.Corrupted) > 0 {
						corrupted++
					}
					if mode.Gated() {
						require.Empty(t, res.Corrupted, "%v seed %d:\n%v", mode, seed, res)
					}
				}
				if st.race && mode == core.Ungated {
					require.NotZero(t, corrupted, "%d seeds and no corruption", *scenarioSeeds)
				}
			}
		})
	}
}

// TestScenarioRandom runs scripts made at random, in every gated mode. What
// fails is printed as a script that is as short as taking lines away makes it,
// to be put into a file of testdata/scenarios.
func TestScenarioRandom(t *testing.T) {
	run := func(s *scenario.Script, mode core.Mode, seed uint64) string {
		res, err := scenario.Run(s, scenario.Options{Mode: &mode, Seed: seed})
		switch {
		case err != nil:
			return err.Error()
		case len(res.Corrupted) > 0:
			return res.String()
		}
		return ""
	}
	for seed := range uint64(*scenarioRandom) {
		text := scenario.Random(seed, 20+int(seed%4)*30)
		s, err := scenario.Parse(text)
		require.NoError(t, err, "random script %d:\n%s", seed, text)
		for _, mode := range core.Modes() {
			if !mode.Gated() {
				continue
			}
			fault := run(s, mode, seed)
			if fault == "" {
				continue
			}
			lines := strings.Split(text, "\n")
			for i := len(lines) - 1; i >= 0; i-- {
				fewer := slices.Delete(slices.Clone(lines), i, i+1)
				s, err := scenario.Parse(strings.Join(fewer, "\n"))
				if err != nil { // the line made what later ones name
					continue
				}
				if less := run(s, mode, seed); less != "" {
					lines, fault = fewer, less
				}
			}
			t.Fatalf("random script %d, %v:\n%s\n----\n%s", seed, mode, strings.Join(lines, "\n"), fault)
		}
	}
}
