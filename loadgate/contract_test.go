package loadgate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestContractNamesTests: every test, example, benchmark and scenario that
// CONTRACT.md names is there.
func TestContractNamesTests(t *testing.T) {
	text, err := os.ReadFile("CONTRACT.md")
	require.NoError(t, err)
	have := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "core/*_test.go", "gatetest/*/*_test.go", "../cuda/softcuda/*_test.go", "../cuda/driver/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files {
			source, err := os.ReadFile(f)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Example|Benchmark)\w*)\(`).FindAllSubmatch(source, -1) {
				have[string(m[1])] = true
			}
		}
	}
	named, scenarios := 0, 0
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Za-z_0-9/-]+)`").FindAllStringSubmatch(cells[3], -1) {
			name, _, _ := strings.Cut(m[1], "/")
			switch {
			case strings.HasPrefix(name, "Test"), strings.HasPrefix(name, "Example"), strings.HasPrefix(name, "Benchmark"):
				require.True(t, have[name], "CONTRACT.md names %s, which is nowhere", name)
				named++
			case name == strings.ToLower(name) && !strings.HasPrefix(m[1], "/") && name != "core":
				_, err := os.Stat(filepath.Join("testdata", "scenarios", name+".txt"))
				require.NoError(t, err, "CONTRACT.md names the scenario %s", name)
				scenarios++
			}
		}
	}
	require.Greater(t, named, 20)
	require.Greater(t, scenarios, 10)
}
