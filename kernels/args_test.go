package kernels

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

// goParams lists the fields of a struct of arguments as PTX declares them.
func goParams(v reflect.Type, base uintptr) []string {
	var out []string
	for i := range v.NumField() {
		f := v.Field(i)
		off := base + f.Offset
		switch f.Type.Kind() {
		case reflect.Struct:
			out = append(out, goParams(f.Type, off)...)
		case reflect.Array:
			out = append(out, fmt.Sprintf("%d bytes at %d", f.Type.Size(), off))
		default:
			out = append(out, fmt.Sprintf("%d bytes at %d", f.Type.Size(), off))
		}
	}
	return out
}

func TestArgumentsMatchThePTX(t *testing.T) {
	types := [kernelEnd][variantEnd]reflect.Type{
		zeroBlocks: {reflect.TypeFor[zeroArgs[memoryArgs]](), reflect.TypeFor[zeroArgs[few]](),
			reflect.TypeFor[zeroArgs[many]]()},
		resetState: {reflect.TypeFor[resetArgs[memoryArgs]](), reflect.TypeFor[resetArgs[few]](),
			reflect.TypeFor[resetArgs[many]]()},
		checksumBlocks: {reflect.TypeFor[checksumArgs[memoryArgs]](), reflect.TypeFor[checksumArgs[few]](),
			reflect.TypeFor[checksumArgs[many]]()},
	}
	for k, img := range images {
		m, err := ptx.Parse(img.file, img.ptx)
		require.NoError(t, err)
		require.Equal(t, "7.8", m.Version)
		require.Equal(t, "sm_70", m.Target)
		require.Len(t, m.Kernels(), int(variantEnd))
		for v, entry := range img.entries {
			kern, ok := m.Kernel(entry)
			require.True(t, ok, entry)
			var want []string
			for _, p := range kern.Params() {
				want = append(want, fmt.Sprintf("%d bytes at %d", p.Size, p.Offset))
			}
			require.Equal(t, want, goParams(types[k][v], 0), entry)
			require.Equal(t, kern.ParamBytes(), img.size[v], entry)
			require.EqualValues(t, types[k][v].Size(), img.size[v], entry)
			require.LessOrEqual(t, img.size[v], cuda.MaxArgBytes)
			require.EqualValues(t, blockThreads, kern.MaxThreads(), entry)
		}
	}
	require.EqualValues(t, 32, reflect.TypeFor[tile]().Size())
}

// Warps of several thread blocks add to one sum. The simulator runs them one
// after the other and would not notice an addition that is not atomic.
func TestSumsAreAddedAtomically(t *testing.T) {
	require.Equal(t, int(variantEnd), bytes.Count(checksumPTX, []byte("atom.global.add.u64")))
	require.Zero(t, bytes.Count(checksumPTX, []byte("st.global")))
}
