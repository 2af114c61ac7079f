package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/bench/kit/internal/report"
	"github.com/kvgate/kvgate/clock"
)

func TestHost(t *testing.T) {
	h := host()
	require.NotEmpty(t, h.Kernel)
	require.Positive(t, h.CPUs)
	require.Positive(t, h.MemoryMiB)
	require.Equal(t, "b c", field("x\t: y\na \t: b c\na : d\n", "a"))
	require.Empty(t, field("x: y", "a"))
}

// A false nvidia-smi.
func TestClocks(t *testing.T) {
	answer := strings.Repeat("7, ", len(report.Queries)-1) + "8"
	for _, c := range []struct{ script, missing string }{
		{"echo '" + answer + "'; echo second device", ""},
		{"echo 1, 2", "nvidia-smi answered 2 values"},
		{"echo No devices were found; exit 6", "nvidia-smi: exit status 6 No devices were found"},
		{"sleep 1000", "nvidia-smi: killed after 3s, its limit"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "nvidia-smi")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+c.script+"\n"), 0o777))
		s := &smi{clk: clock.Wall(), out: dir, env: os.Environ(), path: path}
		state := s.ask(context.Background())
		if c.missing == "" {
			require.Empty(t, state.Missing)
			require.Equal(t, "8", state.Values["memory.used"])
			require.Contains(t, state.String(), "SM clock 7 of 7")
			continue
		}
		require.Contains(t, state.Missing, c.missing)
		require.Contains(t, state.String(), "clocks unknown: ")
		if s.slow {
			require.Equal(t, "nvidia-smi took too long before", s.ask(context.Background()).Missing)
		}
	}
}
