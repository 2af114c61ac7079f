package race

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// wherePairs are the pairs of ops that the scenarios of a file name, by scenario.
func wherePairs(t *testing.T, text []byte) map[string][][2]int {
	t.Helper()
	var file struct {
		Scenarios []struct {
			ID    string
			Where []int
			Also  [][2]int
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	pairs := map[string][][2]int{}
	for _, s := range file.Scenarios {
		all := s.Also
		if len(s.Where) == 2 {
			all = append(all, [2]int(s.Where))
		}
		pairs[s.ID] = all
	}
	return pairs
}
