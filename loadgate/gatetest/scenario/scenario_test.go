package scenario_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/loadgate/gatetest/scenario"
)

func TestMain(m *testing.M) { os.Exit(testutil.Run(m)) }

const race = `
busy 2ms
alloc X 2    # two blocks
hold A X
zero X
load L A X
end-step
wait L
plan P A
submit P for=100us
wait P
`

func parse(t testing.TB, text string) *scenario.Script {
	s, err := scenario.Parse(text)
	require.NoError(t, err)
	return s
}

func TestParseRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                                   "no statements",
		"# only a comment":                   "no statements",
		"dance":                              `no verb "dance"`,
		"alloc X":                            "usage: alloc <blocks> <count>",
		"alloc X many":                       `"many" is no count`,
		"alloc X -1":                         `"-1" is no count`,
		"alloc none 1":                       `"none" is no name`,
		"alloc X 1\nalloc X 1":               "line 2",
		"hold A X":                           `"X" is not known here`,
		"alloc X 1\nhold A X\nzero A":        `"A" is something else`,
		"alloc X 1\nzero X.one":              `"X.one" is no block`,
		"alloc X 1\nzero (X":                 "parentheses do not match",
		"alloc X 1\nzero X)":                 "parentheses do not match",
		"busy fast":                          `"fast" is no duration`,
		"busy 1h":                            `"1h" is no duration`,
		"busy 1ms stream=mine":               `"mine" is none of compute, other`,
		"busy 1ms wide":                      `no option "wide"`,
		"busy 1ms stream=other stream=other": "option stream given twice",
		"sleep 1ms\ngate mode=PerBlock":      "gate is the first statement",
		"alloc X 1\nhold A X\nload L A X bytes=9..3": `"9..3" is no range of bytes`,
		"cancel L":         `"L" is not known here`,
		"fault vanish":     `"vanish" is none of`,
		"fault hang at=-1": `"-1" is no number`,
	} {
		s, err := scenario.Parse(text)
		require.Nil(t, s, text)
		var pe *scenario.ParseError
		require.ErrorAs(t, err, &pe, text)
		require.ErrorContains(t, err, why)
	}
	_, err := scenario.Run(parse(t, "gate mode=Nonsense\nsleep 1us"), scenario.Options{})
	require.ErrorContains(t, err, "Nonsense")
	_, err = scenario.Run(parse(t, "alloc X 1\nzero X.7"), scenario.Options{})
	require.ErrorContains(t, err, "X has 1 blocks")
}

// FuzzParse: a script or an error, never both, never a panic.
func FuzzParse(f *testing.F) {
	f.Add(race)
	f.Add(scenario.Random(1, 30))
	f.Add("gate blocks=2 limit=1ms clean\nzero (none)\nfault hang at=1e9")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := scenario.Parse(text)
		if (s == nil) == (err == nil) {
			t.Fatalf("script %v and error %v", s, err)
		}
	})
}

// TestReplay: the same seed gives the same trace, and a script of choices too.
func TestReplay(t *testing.T) {
	s := parse(t, scenario.Random(0, 100))
	traces := map[string]bool{}
	for seed := range uint64(10) {
		a, err := scenario.Run(s, scenario.Options{Seed: seed})
		require.NoError(t, err)
		b, err := scenario.Run(s, scenario.Options{Seed: seed})
		require.NoError(t, err)
		require.Equal(t, a.String(), b.String())
		traces[a.String()] = true
	}
	require.Greater(t, len(traces), 1, "the seed decides nothing")

	ungated := core.Ungated
	first := &vtime.Script{}
	a, err := scenario.Run(parse(t, race), scenario.Options{Mode: &ungated, Chooser: first})
	require.NoError(t, err)
	require.NotEmpty(t, a.Corrupted)
	require.NotEmpty(t, first.Taken, "nothing was left open")
	again := &vtime.Script{}
	for _, c := range first.Taken {
		again.Answers = append(again.Answers, uint(c.Answer))
	}
	b, err := scenario.Run(parse(t, race), scenario.Options{Mode: &ungated, Chooser: again})
	require.NoError(t, err)
	require.Equal(t, a.String(), b.String())
	require.Equal(t, first.Taken, again.Taken)
}

// TestRealPacer: the same script on the wall clock. Without a gate the race shows
// if the stream is busy for longer than the host takes, however long that is.
func TestRealPacer(t *testing.T) {
	for _, mode := range []core.Mode{core.Ungated, core.PerBlock, core.StepFIFO} {
		for busy := 2; ; busy *= 2 {
			text := strings.Replace(race, "busy 2ms", fmt.Sprintf("busy %dms", busy), 1)
			res, err := scenario.Run(parse(t, text), scenario.Options{Mode: &mode, Real: true, Slow: 5})
			require.NoError(t, err)
			if mode.Gated() {
				require.Empty(t, res.Corrupted, "%v", res)
				break
			}
			if len(res.Corrupted) > 0 {
				break
			}
			require.Less(t, busy, 1000, "the race did not show: %v", res)
		}
	}
}

// TestRandomScriptsBite: what is made at random corrupts without a gate, often.
func TestRandomScriptsBite(t *testing.T) {
	const n = 40
	ungated := core.Ungated
	corrupted := 0
	for seed := range uint64(n) {
		res, err := scenario.Run(parse(t, scenario.Random(seed, 40)), scenario.Options{Mode: &ungated, Seed: seed})
		require.NoError(t, err, "seed %d", seed)
		if len(res.Corrupted) > 0 {
			corrupted++
		}
	}
	require.Greater(t, corrupted, n/10)
	t.Logf("%d of %d random scripts corrupt without a gate", corrupted, n)
}
