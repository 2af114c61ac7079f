package abi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/abi"
	"github.com/kvgate/kvgate/internal/abi/clib"
	"github.com/kvgate/kvgate/internal/testutil"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := abi.Generate(clib.ByHand())
	require.NoError(t, err)
	require.Len(t, files, 8)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(testutil.Root(t), name))
		require.NoError(t, err)
		require.True(t, string(want) == string(got), "%s is stale: run go run ./internal/abi/internal/mkabi", name)
	}
}

func TestSymbols(t *testing.T) {
	all := abi.Symbols()
	required := 0
	for _, s := range all {
		if s.Need == abi.Required {
			required++
			require.LessOrEqual(t, s.Since, abi.MinDriver, "%s is newer than the oldest driver", s.Name)
		}
	}
	require.Greater(t, required, 30)
	byName := map[string]abi.Symbol{}
	for _, s := range all {
		byName[s.Name] = s
	}
	free := byName["cuMemFree_v2"]
	require.Equal(t, abi.Symbol{Name: "cuMemFree_v2", Need: abi.Required, Since: 3020,
		Params: []abi.Param{{Type: "CUdeviceptr", Name: "ptr"}}}, free)
	require.Equal(t, "cuMemFree", free.Base())
	require.Equal(t, "cuInit", byName["cuInit"].Base())
	require.Equal(t, "void", byName["cuCtxSynchronize"].Prototype())
	require.Equal(t, "void **ptr, size_t size, unsigned int flags", byName["cuMemHostAlloc"].Prototype())
	require.Equal(t, "int error, const char **name", byName["cuGetErrorName"].Prototype())
	require.Equal(t, "client", byName["cuGetProcAddress_v2"].Need.String())
}

// What the no-op library has by hand is in the list under that very name.
func TestHandWrittenFunctionsAreInTheList(t *testing.T) {
	names := map[string]bool{}
	for _, s := range abi.Symbols() {
		names[s.Name] = true
	}
	byHand := clib.ByHand()
	require.Greater(t, len(byHand), 20)
	for n := range byHand {
		require.True(t, names[n], n)
	}
}

func TestParseRefuses(t *testing.T) {
	for src, says := range map[string]string{
		"required 2000 cuInit":                                           "line 1",
		"required 2000 cuInit(unsigned int flags":                        "need since name",
		"wanted 2000 cuInit()":                                           `unknown need "wanted"`,
		"required x cuInit()":                                            `"x" is no version`,
		"required 2000 cuInit(flags)":                                    `parameter "flags"`,
		"required 2000 cuInit()\n\n# twice\noptional 2000 cuInit(int a)": "line 4: cuInit is there twice",
	} {
		_, err := abi.Parse(src)
		require.ErrorContains(t, err, says, "%q", src)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("required 2000 cuInit(unsigned int flags)")
	f.Add("client 0 f(void **a, const char *b)")
	f.Fuzz(func(t *testing.T, src string) {
		s, err := abi.Parse(src)
		if err != nil {
			require.Nil(t, s)
			return
		}
		for _, x := range s {
			require.NotEmpty(t, x.Name)
			require.True(t, strings.HasPrefix(x.Name, x.Base()))
		}
	})
}

func TestISA(t *testing.T) {
	require.Equal(t, abi.ISA{7, 8}, abi.NewestISA(abi.MinDriver))
	require.Equal(t, abi.ISA{7, 4}, abi.NewestISA(11040))
	require.Equal(t, abi.ISA{8, 5}, abi.NewestISA(12060))
	require.Equal(t, abi.ISA{9, 0}, abi.NewestISA(14000))
	require.Equal(t, abi.CUDA(11080), abi.Brought(abi.ISA{7, 8}))
	require.Equal(t, abi.CUDA(0), abi.Brought(abi.ISA{99, 0}))
	require.Equal(t, "12.4", abi.CUDA(12040).String())
	v, ok := abi.ImageISA([]byte("// a kernel\n\n.version 8.4 // here\n.target sm_70\n"))
	require.True(t, ok)
	require.Equal(t, abi.ISA{8, 4}, v)
	for _, src := range []string{"", "\x7fELF", ".version x.y", ".version 7"} {
		_, ok := abi.ImageISA([]byte(src))
		require.False(t, ok, "%q", src)
	}
}
