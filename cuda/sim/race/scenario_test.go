package race

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRaceVerdicts judges every scenario of the file. Where two ops are said to
// conflict, a race is found between just these.
func TestRaceVerdicts(t *testing.T) {
	f, err := os.Open("testdata/scenarios.json")
	require.NoError(t, err)
	defer f.Close()
	scenarios, err := ReadScenarios(f)
	require.NoError(t, err)
	for _, s := range scenarios {
		t.Run(s.ID, func(t *testing.T) {
			races, err := s.Judge()
			require.NoError(t, err)
			switch s.Expected() {
			case "true":
				require.NotEmpty(t, races)
			case "false":
				require.Empty(t, races)
			default:
				require.Equal(t, "unspecified", s.Expected())
			}
		})
	}
	require.Greater(t, len(scenarios), 50)
}

// TestWherePairs: the pair that a scenario names is among those that are found.
func TestWherePairs(t *testing.T) {
	text, err := os.ReadFile("testdata/scenarios.json")
	require.NoError(t, err)
	where := wherePairs(t, text)
	scenarios, err := ReadScenarios(strings.NewReader(string(text)))
	require.NoError(t, err)
	for _, s := range scenarios {
		if s.Expected() != "true" || len(where[s.ID]) == 0 {
			continue
		}
		races, err := s.Judge()
		require.NoError(t, err)
		var got [][2]int
		for _, r := range races {
			got = append(got, [2]int{min(r.First.Index, r.Second.Index), max(r.First.Index, r.Second.Index)})
		}
		named := slices.ContainsFunc(where[s.ID], func(p [2]int) bool { return slices.Contains(got, p) })
		require.True(t, named, "%s: found %v, the file names %v", s.ID, got, where[s.ID])
	}
}

func TestBadScenarios(t *testing.T) {
	const head = `{"id": "x", "streams": {"s": "blocking"}, "buffers": {"A": {"bytes": 8, "kind": "device"}}, "ops": [`
	for text, want := range map[string]string{
		`{"op": "frob"}`:                                                                 "x: op 0, frob: no such op here",
		`{"op": "kernel", "stream": "t"}`:                                                `unknown stream "t"`,
		`{"op": "kernel"}`:                                                               "lacks a stream",
		`{"op": "record", "stream": "s"}`:                                                "lacks an event",
		`{"op": "event_sync", "event": "e"}`:                                             `unknown event "e"`,
		`{"op": "host_read", "buf": "B"}`:                                                `unknown buffer "B"`,
		`{"op": "host_read", "buf": "A", "range": [4, 5]}`:                               `5 bytes at 4 of "A", which has 8`,
		`{"op": "nic_wait", "id": "t"}`:                                                  `unknown transfer "t"`,
		`{"op": "nic_post", "id": "t", "dir": "up", "buf": "A"}`:                         `direction "up"`,
		`{"op": "memcpy", "stream": "s", "kind": "D2X", "dst": "A", "src": "A"}`:         `kind "D2X"`,
		`{"op": "callback", "stream": "s", "body": [{"op": "device_sync"}]}`:             "device_sync in its body: no such op here",
		`{"op": "memset", "stream": "s", "buf": "A", "rows": {"height": 9, "width": 1}}`: "9 rows of 1 bytes",
	} {
		scenarios, err := ReadScenarios(strings.NewReader(`{"scenarios": [` + head + text + `]}]}`))
		require.NoError(t, err, text)
		_, err = scenarios[0].Judge()
		require.ErrorContains(t, err, want, text)
	}
	for _, text := range []string{"", "{}", "[]", `{"scenarios": 5}`} {
		_, err := ReadScenarios(strings.NewReader(text))
		require.Error(t, err, text)
	}
}
