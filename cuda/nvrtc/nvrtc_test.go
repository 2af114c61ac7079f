package nvrtc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda/sim/ptx"
	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pinned opens the NVRTC that ./build.sh deps fetches, or that KVGATE_NVRTC names.
func pinned(t *testing.T) *Library {
	t.Helper()
	path := os.Getenv("KVGATE_NVRTC")
	if path == "" {
		found, err := filepath.Glob(filepath.Join(testutil.Root(t), ".cache", "nvidia-cuda-nvrtc-*", "nvidia", "*", "lib", "libnvrtc.so.*"))
		require.NoError(t, err)
		if len(found) == 0 {
			testutil.SkipOrFail(t, "no NVRTC: ./build.sh deps fetches it")
		}
		path = found[0]
	}
	l, err := Open(path)
	if errors.Is(err, dl.ErrNoCgo) {
		t.Skip("built without cgo: no C library can be called")
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

const source = `#include "add.cuh"
extern "C" __global__ void k(int *p) { *p = add(*p); }
`

func program() Program {
	return Program{Name: "k.cu", Text: source, Headers: map[string]string{
		"add.cuh": "#include \"unused.cuh\"\n__device__ inline int add(int x) { return x + N; }\n", "unused.cuh": ""},
		Options: []string{"--gpu-architecture=compute_70", "-DN=7"}}
}

func TestCompile(t *testing.T) {
	l := pinned(t)
	major, minor := l.Version()
	require.GreaterOrEqual(t, major, 11)
	require.GreaterOrEqual(t, minor, 0)
	require.Contains(t, l.Path(), "nvrtc")
	o, err := l.Compile(program())
	require.NoError(t, err)
	require.Empty(t, o.Log)
	require.NotContains(t, string(o.PTX), "\x00")
	m, err := ptx.Parse("k.ptx", o.PTX)
	require.NoError(t, err)
	_, ok := m.Kernel("k")
	require.True(t, ok)
}

func TestErrors(t *testing.T) {
	l := pinned(t)
	for name, c := range map[string]struct {
		change func(*Program)
		code   Code
		says   []string
	}{
		"source":  {func(p *Program) { p.Text = "int f( {" }, ErrCompilation, []string{"k.cu", "NVRTC_ERROR_COMPILATION", "error"}},
		"header":  {func(p *Program) { p.Headers = nil }, ErrCompilation, []string{"add.cuh"}},
		"option":  {func(p *Program) { p.Options = []string{"--no-such-option"} }, ErrInvalidOption, []string{"no-such-option"}},
		"arch":    {func(p *Program) { p.Options = []string{"--gpu-architecture=compute_1"} }, ErrInvalidOption, []string{"gpu-architecture"}},
		"zero":    {func(p *Program) { p.Text = "\x00" }, ErrInvalidInput, []string{"zero byte"}},
		"in head": {func(p *Program) { p.Headers["x"] = "\x00" }, ErrInvalidInput, []string{"a header has a zero byte"}},
	} {
		p := program()
		c.change(&p)
		o, err := l.Compile(p)
		require.Nil(t, o, name)
		require.ErrorIs(t, err, c.code, name)
		var e *Error
		require.ErrorAs(t, err, &e)
		for _, s := range append(c.says, "k.cu") {
			require.ErrorContains(t, err, s, name)
		}
	}
	p := program()
	p.Text = strings.Replace(p.Text, "*p = ", "int unused; *p = ", 1)
	o, err := l.Compile(p)
	require.NoError(t, err)
	require.Contains(t, o.Log, "unused", "warnings")
}

func TestCompileFromSeveralGoroutines(t *testing.T) {
	l := pinned(t)
	want, err := l.Compile(program())
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				o, err := l.Compile(program())
				if err != nil || string(o.PTX) != string(want.PTX) {
					t.Errorf("%v, or other PTX", err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Compile(program())
	require.ErrorIs(t, err, ErrNoCompiler)
}

func TestNoCompiler(t *testing.T) {
	_, err := Open("libkvgate-not-there.so")
	require.ErrorIs(t, err, ErrNoCompiler)
	if !errors.Is(err, dl.ErrNoCgo) {
		require.ErrorIs(t, err, dl.ErrNoLibrary)
		require.ErrorContains(t, err, "libkvgate-not-there.so")
		text := filepath.Join(t.TempDir(), "libnvrtc.so")
		require.NoError(t, os.WriteFile(text, []byte("no library"), 0o644))
		_, err = Open(text)
		require.ErrorIs(t, err, ErrNoCompiler)
		require.ErrorIs(t, err, dl.ErrBadLibrary)
	}
	l, err := Open("")
	if err == nil { // a machine with CUDA installed
		require.NoError(t, l.Close())
	} else {
		require.ErrorIs(t, err, ErrNoCompiler)
	}
}

func TestCodesHaveNames(t *testing.T) {
	require.Equal(t, "NVRTC_ERROR_COMPILATION", ErrCompilation.Error())
	require.Equal(t, "NVRTC_ERROR(77)", Code(77).String())
	e := &Error{Code: ErrInternal, Op: "nvrtcVersion"}
	require.EqualError(t, e, "nvrtc: nvrtcVersion: NVRTC_ERROR_INTERNAL_ERROR")
}
