package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerdicts(t *testing.T) {
	status, out, errs := race("-verdicts", "../../cuda/sim/race/testdata/scenarios.json")
	require.Equal(t, 0, status, "%s%s", out, errs)
	require.NotContains(t, out, "differs")
	wrong := filepath.Join(t.TempDir(), "wrong.json")
	require.NoError(t, os.WriteFile(wrong, []byte(`{"scenarios": [{"id": "two-writers", "streams": {"a": "nonblocking", "b": "nonblocking"},
"buffers": {"A": {"bytes": 8, "kind": "device"}}, "race": false, "ops": [
{"op": "kernel", "stream": "a", "writes": ["A"]}, {"op": "kernel", "stream": "b", "writes": ["A"]}]}]}`), 0o600))
	status, out, _ = race("-verdicts", wrong)
	require.Equal(t, 1, status)
	require.Contains(t, out, "two-writers")
	require.Contains(t, out, "false        true")
	require.Contains(t, out, "kernel (op 1 of a) writes")
	status, _, errs = race("-verdicts", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, 1, status)
	require.Contains(t, errs, "none")
	for _, args := range [][]string{{"-verdicts", ""}, {"-verdicts", wrong, "-json"}} {
		status, _, _ = race(args...)
		require.Equal(t, 2, status)
	}
}
