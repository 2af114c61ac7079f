package clib_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/abi"
	"github.com/kvgate/kvgate/internal/abi/clib"
	"github.com/kvgate/kvgate/internal/testutil"
)

// exported returns the functions that a library exports under CUDA's names.
func exported(t *testing.T, path string) map[string]bool {
	t.Helper()
	out, err := exec.Command("nm", "-D", "--defined-only", path).Output()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, line := range strings.Split(string(out), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[1] == "T" {
			names[f[2]] = true
		}
	}
	return names
}

func TestLibraries(t *testing.T) {
	if _, err := exec.LookPath(clib.Compiler()); err != nil {
		testutil.SkipOrFail(t, "no C compiler: %v", err)
	}
	noop, err := clib.Build(t.TempDir(), clib.NoOp, "KVG_WITHOUT_cuFuncLoad")
	require.NoError(t, err)
	stub, err := clib.Build(t.TempDir(), clib.Stub)
	require.NoError(t, err)
	inNoop, inStub := exported(t, noop), exported(t, stub)
	for _, s := range abi.Symbols() {
		require.Equal(t, s.Name != "cuFuncLoad", inNoop[s.Name], "%s in the no-op library", s.Name)
		require.Equal(t, s.Since > 0, inStub[s.Name], "%s in the stub", s.Name)
	}
	_, err = clib.Build(t.TempDir(), clib.NoOp, "KVG_VERSION=(")
	require.ErrorContains(t, err, "clib: ")
}
