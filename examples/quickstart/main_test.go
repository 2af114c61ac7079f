package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl/libnixl"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "-prefill" { // the other process of TestOverNIXL
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func read(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// The README quotes the engine and what the program prints.
func TestReadme(t *testing.T) {
	engine := read(t, "engine.go")
	lines := 0
	for _, l := range strings.Split(engine, "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "//") {
			lines++
		}
	}
	require.Less(t, lines, 60, "lines of code of engine.go")
	readme := read(t, "../../README.md")
	require.Contains(t, readme, "```go\n"+engine[strings.Index(engine, "// decode serves"):]+"```\n", "put the function of engine.go into README.md")
	var out bytes.Buffer
	require.NoError(t, simulated(t.Context(), &out))
	require.Contains(t, readme, "```\n"+out.String()+"```\n", "put what go run ./examples/quickstart prints into README.md")
}

// The transport is the real one, the other engine another process.
func TestOverNIXL(t *testing.T) {
	if os.Getenv(libnixl.LibraryVariable) == "" {
		found, err := filepath.Glob("../../.cache/nixl-cu12-*/.nixl_cu12.mesonpy.libs/libnixl_capi.so")
		require.NoError(t, err)
		if len(found) != 1 || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
			testutil.SkipOrFail(t, "no NIXL: ./build.sh deps fetches it")
		}
		path, err := filepath.Abs(found[0])
		require.NoError(t, err)
		t.Setenv(libnixl.LibraryVariable, path)
	}
	needNIXL(t)
	if os.Getenv(auto.Variable) == "" {
		t.Setenv(auto.Variable, "sim")
	}
	t.Setenv("UCX_LOG_LEVEL", "error")
	var out bytes.Buffer
	require.NoError(t, overNIXL(t.Context(), &out))
	for _, what := range []string{"load held: waits for", "zero of 3 blocks launched", "load posted", "load done", "content right"} {
		require.Contains(t, out.String(), what)
	}
}
