package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNormaliseLeavesNothingOfTheCompiler(t *testing.T) {
	a, err := normalise("k.cu", []byte("//\n// Compiler Build ID: CL-1\n//\n\n.version 7.8\n.target sm_70 \n\tret;\n\n\n"))
	require.NoError(t, err)
	b, err := normalise("k.cu", []byte("// Build ID: CL-2, another machine\n.version 7.8\n.target sm_70\n\tret;\n"))
	require.NoError(t, err)
	require.Equal(t, string(a[:60]), string(b[:60]))
	require.NotContains(t, string(a), "Build ID")
	require.NotContains(t, string(b), "Build ID")
	require.Contains(t, string(a), "k.cu")
	require.True(t, len(a) > 0 && a[len(a)-1] == '\n' && a[len(a)-2] != '\n')

	_, err = normalise("k.cu", []byte("//\n.version 9.5\n"))
	require.ErrorContains(t, err, "7.8")
}

func TestRunNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "k.cu")
	require.NoError(t, os.WriteFile(src, []byte("extern \"C\" __global__ void k() {}\n"), 0o644))
	require.ErrorContains(t, run("libnvrtc.so", dir, "", nil), "no sources")
	for _, lib := range []string{"", "libkvgate-not-there.so"} {
		require.Error(t, run(lib, dir, "", []string{src}))
	}
	_, err := os.Stat(filepath.Join(dir, "k.ptx"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
