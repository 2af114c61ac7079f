package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// kept says what keeps a report out of bench/results.
func kept(r *Report) string {
	switch {
	case r.Simulated || r.Device == nil || r.Device.Simulated:
		return "it is not of hardware"
	case r.Kit.Modified || r.Kit.Revision == "unknown":
		return "it is not of a commit"
	}
	if r.Chosen {
		return "not all parts are in it"
	}
	// Later kits have more parts than this one had.
	for _, name := range []string{kitPart, probePart} {
		if r.part(name) == nil {
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
		require.FileExists(t, filepath.Join(dir, "parts.tar.gz"))
		text, err := os.ReadFile(filepath.Join(dir, "report.json"))
		require.NoError(t, err)
		r, err := readReport(text)
		require.NoError(t, err, dir)
		require.Empty(t, kept(r), dir)
	}
}

func TestKept(t *testing.T) {
	r := &Report{Device: &Device{}, Kit: Build{Revision: "abc"}}
	require.Equal(t, "part kit is not in it", kept(r))
	r.Parts = []Part{{Name: kitPart}, {Name: probePart}}
	require.Empty(t, kept(r))
	r.Chosen = true
	require.Equal(t, "not all parts are in it", kept(r))
	r.Kit.Modified = true
	require.Equal(t, "it is not of a commit", kept(r))
	r.Simulated = true
	require.Equal(t, "it is not of hardware", kept(r))
}
