package testutil

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReduceAndExpand(t *testing.T) {
	const cases = `[{"a": [1, 3, 5, 7, 9, 11, 13, 20], "b": [[0, 8, 4], [8, 8, 4], [16, 8, 4], [24, 8, 4], [5, 1, 1], [6, 1, 1], [7, 1, 1]],
		"c": [1, 2], "d": ["x", "x", "x", "x", "x", "x", "x"], "e": [1.5, 1, 1, 1, 1, 1, 1], "f": 18446744073709551615}, {"g": null}]`
	small, err := Reduce([]byte(`{"note": "n", "cases": ` + cases + `}`))
	require.NoError(t, err)
	require.Equal(t, `{"cases": [
{"a":{"runs":[[1,2,7],[20]]},"b":{"runs":[[[0,8,4],[8,0,0],4],[[5,1,1],[1,0,0],3]]},"c":[1,2],"d":["x","x","x","x","x","x","x"],"e":[1.5,1,1,1,1,1,1],"f":18446744073709551615},
{"g":null}
]}
`, string(small))
	back, err := Expand(small)
	require.NoError(t, err)
	require.JSONEq(t, `{"cases": `+cases+`}`, string(back))
	same, err := Expand([]byte(`{"cases": ` + cases + `}`))
	require.NoError(t, err)
	require.JSONEq(t, string(back), string(same))
	for _, bad := range []string{"", "{}", `{"x": 5}`} {
		_, err := Reduce([]byte(bad))
		require.Error(t, err)
	}
}
