package main

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README shows what the program prints.
func TestReadme(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("the default run takes seconds, or minutes under the race detector")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the README's figures are from amd64: elsewhere floating point may round differently")
	}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	status, out, _ := pipeline()
	require.Equal(t, 0, status)
	require.Contains(t, string(readme), "```\n"+out+"```\n", "put what go run ./bench/pipeline prints into README.md")
}
