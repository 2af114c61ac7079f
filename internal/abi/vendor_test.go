package abi_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/abi"
	"github.com/kvgate/kvgate/internal/abi/clib"
	"github.com/kvgate/kvgate/internal/testutil"
)

// vendorHeaders returns the folder of NVIDIA's own headers.
func vendorHeaders(t *testing.T) string {
	out, err := exec.Command(filepath.Join(testutil.Root(t), "scripts", "deps.sh"), "headers").CombinedOutput()
	if err != nil {
		testutil.SkipOrFail(t, "NVIDIA's headers are missing: %s", out)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

var typedef = regexp.MustCompile(`typedef CUresult \(CUDAAPI \*PFN_(cu\w+?)_v(\d+)\)\(([^;]*)\);`)

// The list has the version of each name, and as many parameters, pointers where
// pointers are, as NVIDIA's cudaTypedefs.h.
func TestListAgainstVendor(t *testing.T) {
	src, err := os.ReadFile(filepath.Join(vendorHeaders(t), "cudaTypedefs.h"))
	require.NoError(t, err)
	vendor := map[string]map[int][]string{}
	for _, m := range typedef.FindAllStringSubmatch(string(src), -1) {
		since, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		if vendor[m[1]] == nil {
			vendor[m[1]] = map[int][]string{}
		}
		var params []string
		if p := strings.TrimSpace(m[3]); p != "void" {
			params = strings.Split(p, ",")
		}
		vendor[m[1]][since] = params
	}
	require.Greater(t, len(vendor), 300)
	checked := 0
	for _, s := range abi.Symbols() {
		if s.Since == 0 || s.Need == abi.Refused {
			continue
		}
		params, ok := vendor[s.Base()][s.Since]
		require.True(t, ok, "%s: the vendor has versions %v, not %d", s.Name, vendor[s.Base()], s.Since)
		require.Len(t, params, len(s.Params), s.Name)
		for i, p := range params {
			if strings.Contains(p, "CUdeviceptr") || strings.Contains(p, "CUhostFn") {
				continue
			}
			require.Equal(t, strings.ContainsAny(p, "*["), strings.Contains(s.Params[i].Type, "*"), "%s: parameter %d, %s", s.Name, i, p)
		}
		checked++
	}
	require.Greater(t, checked, 90)
}

func TestNumbersAgainstVendor(t *testing.T) {
	headers := vendorHeaders(t)
	if _, err := exec.LookPath(clib.Compiler()); err != nil {
		testutil.SkipOrFail(t, "no C compiler: %v", err)
	}
	out, err := exec.Command(clib.Compiler(), "-fsyntax-only", "-I", headers, "testdata/numbers.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// CUDA 13 still has every name that cuda/driver asks for: NVIDIA's client of
// that version knows them.
func TestNamesInCUDA13(t *testing.T) {
	out, err := exec.Command(filepath.Join(testutil.Root(t), "scripts", "deps.sh"), "client").CombinedOutput()
	if err != nil {
		testutil.SkipOrFail(t, "NVIDIA's Python client is missing: %s", out)
	}
	for _, dir := range strings.Split(strings.TrimSpace(string(out)), ":") {
		paths, err := filepath.Glob(filepath.Join(dir, "cuda", "bindings", "_bindings", "cydriver.*.so"))
		require.NoError(t, err)
		if len(paths) == 0 {
			continue
		}
		library, err := os.ReadFile(paths[0])
		require.NoError(t, err)
		for _, s := range abi.Symbols() {
			if s.InDriver() && s.Since > 0 {
				require.True(t, bytes.Contains(library, []byte(s.Name)), s.Name)
			}
		}
		return
	}
	t.Fatalf("no driver module in %s", out)
}
