package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/internal/testutil"
)

func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-only", "rust"}, {"-nonsense"}, {"extra"}} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, run(args, &out, &errs), args)
		require.Empty(t, out.String())
		require.NotEmpty(t, errs.String())
	}
}

// All bindings print all phases, and Python, which builds its lists entry by
// entry, takes longer to make a big one than C does.
func TestCompare(t *testing.T) {
	if _, err := find(); errors.Is(err, dl.ErrNoCgo) {
		t.Skip(err)
	} else if err != nil {
		testutil.SkipOrFail(t, "no NIXL: %v", err)
	}
	var out, errs bytes.Buffer
	code := run([]string{"-rounds", "1", "-json"}, &out, &errs)
	if strings.Contains(errs.String(), "no Python 3.11") || strings.Contains(errs.String(), "build.sh nixl-bench") {
		testutil.SkipOrFail(t, "%s", errs.String())
	}
	require.Zero(t, code, errs.String())
	got := map[string]map[string]float64{}
	dec := json.NewDecoder(&out)
	for dec.More() {
		var r result
		require.NoError(t, dec.Decode(&r))
		require.Positive(t, r.Nanoseconds, "%+v", r)
		if r.Descriptors == 512 {
			if got[r.Binding] == nil {
				got[r.Binding] = map[string]float64{}
			}
			got[r.Binding][r.Phase] = r.Nanoseconds
		}
	}
	require.Len(t, got, len(bindings))
	for _, f := range got {
		require.Len(t, f, len(phases))
	}
	require.Greater(t, got["python"]["make"], 2*got["c"]["make"])
}

// A C program that is missing, or older than what it is made from, is not
// measured; the error says how to make it.
func TestTheCProgramIsMadeBefore(t *testing.T) {
	e := &environment{root: t.TempDir()}
	refused := func(why string) {
		t.Helper()
		_, err := e.openC()
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, "./build.sh nixl-bench")
	}
	refused("no such file")
	for _, name := range []string{"bench/nixl/testdata/bench.c", "nixl/libnixl/table.h", ".cache/nixl-bench/c"} {
		name = filepath.Join(e.root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
		require.NoError(t, os.WriteFile(name, nil, 0o777))
	}
	exe := filepath.Join(e.root, ".cache/nixl-bench/c")
	require.NoError(t, os.Chtimes(exe, time.Unix(1, 0), time.Unix(1, 0)))
	refused("is older than")
}

func TestTable(t *testing.T) {
	f := figures{}
	for i, p := range phases {
		f[p.name] = float64(10 * (i + 1))
	}
	var out strings.Builder
	require.NoError(t, print(&out, false, 64, []string{"go"}, map[string]figures{"go": f}))
	require.Contains(t, out.String(), "64   descriptors")
	require.Regexp(t, `make \+ post +30`, out.String())
	require.Regexp(t, `whole transfer +150`, out.String())
	require.NotContains(t, out.String(), "go/c-kept")

	double := figures{}
	for k, v := range f {
		double[k] = 2 * v
	}
	out.Reset()
	require.NoError(t, print(&out, false, 64, bindings, map[string]figures{"go": double, "c-kept": f, "c": f, "python": f}))
	require.Regexp(t, `make +20 +10 +10 +10 +2\.00 `, out.String())
}
