package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/bench/kit/internal/report"
)

// kept says what keeps a report out of bench/results.
func kept(r *report.Report) string {
	switch {
	case r.Simulated || r.Device == nil || r.Device.Simulated:
		return "it is not of hardware"
	case r.Kit.Modified || r.Kit.Revision == "unknown":
		return "it is not of a commit"
	}
	// Later kits have more parts than this one had.
	for _, name := range []string{kitPart, probePart} {
		if r.Part(name) == nil {
			return "part " + name + " is not in it"
		}
	}
	return ""
}

// Every folder of bench/results holds a report of real hardware.
func TestResults(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("..", "results", "*"))
	require.NoError(t, err)
	require.Contains(t, dirs, filepath.Join("..", "results", "README.md"))
	for _, dir := range dirs {
		if filepath.Base(dir) == "README.md" {
			continue
		}
		require.FileExists(t, filepath.Join(dir, "report.txt"))
		text, err := os.ReadFile(filepath.Join(dir, "report.json"))
		require.NoError(t, err)
		r, err := report.Read(text)
		require.NoError(t, err, dir)
		require.Empty(t, kept(r), dir)
	}
}

func TestKept(t *testing.T) {
	r := &report.Report{Device: &report.Device{}, Kit: report.Build{Revision: "abc"}}
	require.Equal(t, "part kit is not in it", kept(r))
	r.Parts = []report.Part{{Name: kitPart}, {Name: probePart}}
	require.Empty(t, kept(r))
	r.Kit.Modified = true
	require.Equal(t, "it is not of a commit", kept(r))
	r.Simulated = true
	require.Equal(t, "it is not of hardware", kept(r))
}
