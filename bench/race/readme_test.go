package main

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README shows what the program prints.
func TestReadme(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the README's figures are from amd64: elsewhere the cost model may round differently")
	}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	status, out, _ := race()
	require.Equal(t, 0, status)
	require.Contains(t, string(readme), "```\n"+out+"```\n", "put what go run ./bench/race prints into README.md")
}
