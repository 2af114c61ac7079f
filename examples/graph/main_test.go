package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda/auto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	dev, err := auto.Open(t.Output(), auto.Options{})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, dev))
	require.NoError(t, dev.Close())
	require.Equal(t, `40 tokens: the graph found 3 blocks in the table, and the right content in each
80 tokens: the graph found 5 blocks in the table, and the right content in each
120 tokens: the graph found 8 blocks in the table, and the right content in each
160 tokens: the graph found 10 blocks in the table, and the right content in each
`, out.String())
}
