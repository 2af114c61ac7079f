package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	for _, what := range []string{
		"request 0.1 has blocks [1 2 3 4 5 6] on each rank\n", "request 1.1 has blocks [1 2 3 4 ",
		"tokens were shared, not computed\n", "rank 0: 0 of 23 blocks are used\n", "rank 1: 0 of 23 blocks are used\n",
	} {
		require.Contains(t, out.String(), what)
	}
	require.NotContains(t, out.String(), "\n0 times")
}
