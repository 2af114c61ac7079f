package pack

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func folder(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "a"), []byte("text"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o666))
	return dir
}

func TestManifest(t *testing.T) {
	dir := folder(t)
	m, err := Make(dir)
	require.NoError(t, err)
	require.Equal(t, "0", m.Glibc)
	require.Len(t, m.Files, 2)
	require.Equal(t, int64(4), m.Files["bin/a"].Bytes)
	require.NoError(t, m.Write(dir))
	m, err = Read(dir)
	require.NoError(t, err)
	require.NoError(t, m.Verify(dir))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "a"), []byte("tex_"), 0o666))
	require.EqualError(t, m.Verify(dir), "bin/a is not as it was packed")
	require.NoError(t, os.Remove(filepath.Join(dir, "empty")))
	require.ErrorContains(t, m.Verify(dir), "empty: no such file")

	require.NoError(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte("{"), 0o666))
	_, err = Read(dir)
	require.ErrorContains(t, err, ManifestName)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte("{}"), 0o666))
	_, err = Read(dir)
	require.ErrorContains(t, err, "lists no files")
	_, err = Read(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTooLarge(t *testing.T) {
	dir := folder(t)
	require.NoError(t, os.Truncate(filepath.Join(dir, "bin", "a"), MaxBytes+1))
	_, err := Make(dir)
	require.ErrorContains(t, err, "60000001 bytes, may be 60000000")
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "bin", "link")))
	_, err = Make(dir)
	require.ErrorContains(t, err, "bin/link is no regular file")
}

// The versions of this machine's own programs, beside what readelf says.
func TestNeeds(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs gcc: ", err)
	}
	src := filepath.Join(t.TempDir(), "x.c")
	require.NoError(t, os.WriteFile(src, []byte("#include <math.h>\n#include <stdio.h>\nint main(int n, char **v) { printf(\"%f\", cos(n)); return 0; }\n"), 0o666))
	build := func(name string, args ...string) string {
		out := filepath.Join(filepath.Dir(src), name)
		text, err := exec.Command(gcc, append([]string{"-o", out, src, "-lm"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", text)
		return out
	}
	v, err := needs(build("dynamic"))
	require.NoError(t, err)
	require.True(t, older("2.0", v), v)

	require.NoError(t, os.WriteFile(src, []byte("int main(void) { return 0; }\nint other(void) { return 1; }\n"), 0o666))
	own := build("libown.so", "-shared", "-fPIC", "-Wl,-soname,libown.so.1")
	require.NoError(t, os.WriteFile(src, []byte("int other(void);\nint main(void) { return other(); }\n"), 0o666))
	_, err = needs(build("uses", own))
	require.EqualError(t, err, "is linked with libown.so.1, which another machine need not have")
}

func TestOlder(t *testing.T) {
	for _, c := range [][2]string{{"0", "2.2.5"}, {"2.2.5", "2.3"}, {"2.9", "2.36"}, {"2.36", "2.36.1"}, {"2.36", "PRIVATE"}} {
		require.True(t, older(c[0], c[1]), c)
		require.False(t, older(c[1], c[0]), c)
	}
	require.False(t, older("2.36", "2.36"))
}
