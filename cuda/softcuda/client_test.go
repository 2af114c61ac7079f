//go:build cgo && linux

package softcuda_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/abi"
	"github.com/kvgate/kvgate/internal/testutil"
)

var buildLibrary sync.Once

// sharedLibrary builds the simulator as libcuda.so.1, once, and returns its
// folder.
func sharedLibrary(t *testing.T) string {
	t.Helper()
	buildLibrary.Do(func() {
		dir, err := os.MkdirTemp("", "softcuda")
		require.NoError(t, err)
		built = dir
		run(t, nil, "go", "build", "-buildmode=c-shared", "-o", filepath.Join(dir, "libcuda.so.1"), "./cuda/softcuda/libcuda")
	})
	require.FileExists(t, filepath.Join(built, "libcuda.so.1"))
	return built
}

// run runs a command at the module's root.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		testutil.SkipOrFail(t, "%v", err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = testutil.Root(t)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	return string(out)
}

// canonical returns CUDA's own names among those that a binary exports.
func canonical(t *testing.T, path string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, line := range strings.Split(run(t, nil, "nm", "-D", "--defined-only", path), "\n") {
		if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[2], "cu") {
			names[f[2]] = true
		}
	}
	return names
}

// CUDA's own names in any other binary would catch the calls that a library of
// its process makes to the real driver.
func TestOnlyTheSharedLibraryHasCanonicalNames(t *testing.T) {
	lib := canonical(t, filepath.Join(sharedLibrary(t), "libcuda.so.1"))
	for _, s := range abi.Symbols() {
		if s.Since > 0 {
			require.True(t, lib[s.Name], "the library lacks %s", s.Name)
		}
	}

	self, err := os.Executable()
	require.NoError(t, err)
	symbols := run(t, nil, "nm", "-D", "--defined-only", self)
	require.Contains(t, symbols, "kvg_soft_cuInit", "this test is such a binary")
	require.Empty(t, canonical(t, self))

	var commands []string
	for _, line := range strings.Fields(run(t, nil, "go", "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./...")) {
		if !strings.HasSuffix(line, "/softcuda/libcuda") {
			commands = append(commands, line)
		}
	}
	require.NotEmpty(t, commands)
	dir := t.TempDir()
	run(t, nil, "go", append([]string{"build", "-o", dir + "/"}, commands...)...)
	built, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, built, len(commands))
	for _, b := range built {
		require.Empty(t, canonical(t, filepath.Join(dir, b.Name())), b.Name())
	}
}

var findClient = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("../../scripts/deps.sh", "client").CombinedOutput()
	return strings.TrimSpace(string(out)), err
})

// A CUDA program that knows nothing of this module: NVIDIA's Python client
// loads the library, the PTX of package kernels, and checks what they do.
func TestPythonClient(t *testing.T) {
	path, err := findClient()
	if err != nil {
		testutil.SkipOrFail(t, "NVIDIA's Python client is missing: %s", path)
	}
	out := run(t, []string{
		"LD_LIBRARY_PATH=" + sharedLibrary(t), "PYTHONPATH=" + path, "PYTHONDONTWRITEBYTECODE=1",
		"KVGATE_SOFT_SLOW=100", // so that a backlog is still there when it is asked after
	}, "python3", "cuda/softcuda/testdata/client.py", "kernels")
	require.Contains(t, out, "client: kvgate simulated GPU sim CUDA 12040")
	require.Contains(t, out, "client: 33 checks passed")
}

// Two processes of that client share memory.
func TestPythonClientsShareMemory(t *testing.T) {
	path, err := findClient()
	if err != nil {
		testutil.SkipOrFail(t, "NVIDIA's Python client is missing: %s", path)
	}
	out := run(t, []string{
		"LD_LIBRARY_PATH=" + sharedLibrary(t), "PYTHONPATH=" + path, "PYTHONDONTWRITEBYTECODE=1",
	}, "python3", "cuda/softcuda/testdata/ipc.py")
	require.Contains(t, out, "ipc: another process wrote what it should")
}

// Two devices under that client.
func TestPythonClientOnTwoDevices(t *testing.T) {
	path, err := findClient()
	if err != nil {
		testutil.SkipOrFail(t, "NVIDIA's Python client is missing: %s", path)
	}
	out := run(t, []string{
		"LD_LIBRARY_PATH=" + sharedLibrary(t), "PYTHONPATH=" + path, "PYTHONDONTWRITEBYTECODE=1", "KVGATE_SOFT_DEVICES=2",
	}, "python3", "cuda/softcuda/testdata/peers.py")
	require.Contains(t, out, "peers: two devices did what they should")
}

// The library says on standard error why it has no device.
func TestSharedLibraryRefusesBadSettings(t *testing.T) {
	path, err := findClient()
	if err != nil {
		testutil.SkipOrFail(t, "NVIDIA's Python client is missing: %s", path)
	}
	for _, setting := range []string{"KVGATE_SOFT_DEVICES=two", "KVGATE_SOFT_SLOW=0.5"} {
		out := run(t, []string{"LD_LIBRARY_PATH=" + sharedLibrary(t), "PYTHONPATH=" + path, setting},
			"python3", "-c", "from cuda.bindings import driver as d; print(d.cuInit(0))")
		require.Contains(t, out, "libcuda.so.1 (simulated): ")
		require.Contains(t, out, "CUDA_ERROR_NO_DEVICE")
	}
}
