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
	own := [variantEnd]reflect.Type{reflect.TypeFor[ownArgs[memoryArgs]](), reflect.TypeFor[ownArgs[few]](),
		reflect.TypeFor[ownArgs[many]]()}
	types := [kernelEnd][variantEnd]reflect.Type{
		zeroBlocks: {reflect.TypeFor[zeroArgs[memoryArgs]](), reflect.TypeFor[zeroArgs[few]](),
			reflect.TypeFor[zeroArgs[many]]()},
		fillBlocks: own, resetState: own, checksumBlocks: own,
		copyBlocks: {reflect.TypeFor[copyArgs[memoryArgs]](), reflect.TypeFor[copyArgs[fewCopies]](),
			reflect.TypeFor[copyArgs[manyCopies]]()},
		// A step is one parameter, or its address.
		prepareStep: {reflect.TypeFor[struct{ At cuda.DevicePtr }](), reflect.TypeFor[struct{ Step [1016]byte }](),
			reflect.TypeFor[struct{ Step [4096]byte }]()},
	}
	for _, v := range Variants() {
		t.Run(v.String(), func(t *testing.T) { checkArguments(t, v, types) })
	}
	require.EqualValues(t, 32, reflect.TypeFor[tile]().Size())
}

// What a step has in its one parameter is laid out as the PTX reads it: the
// sections' fields are loaded from these places.
func TestStepMatchesTheSource(t *testing.T) {
	require.EqualValues(t, 72, reflect.TypeFor[section]().Size())
	require.EqualValues(t, 584, reflect.TypeFor[stepHead]().Size())
	require.EqualValues(t, 1016, reflect.TypeFor[stepArgs[fewSteps]]().Size())
	require.EqualValues(t, 4096, reflect.TypeFor[stepArgs[manySteps]]().Size())
	require.Equal(t, []string{"8 bytes at 0", "8 bytes at 8", "4 bytes at 16", "4 bytes at 20", "8 bytes at 24",
		"8 bytes at 32", "4 bytes at 40", "4 bytes at 44", "8 bytes at 48", "4 bytes at 56", "4 bytes at 60",
		"4 bytes at 64", "4 bytes at 68"}, goParams(reflect.TypeFor[section](), 0))
}

func checkArguments(t *testing.T, v Variant, types [kernelEnd][variantEnd]reflect.Type) {
	for k, img := range images {
		text, err := v.image(kernel(k), nil)
		require.NoError(t, err)
		m, err := ptx.Parse(img.name, text)
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
}

// Warps of several thread blocks add to one sum. The simulator runs them one
// after the other and would not notice an addition that is not atomic.
func TestSumsAreAddedAtomically(t *testing.T) {
	checksumPTX, err := Variant{}.image(checksumBlocks, nil)
	require.NoError(t, err)
	require.Equal(t, int(variantEnd), bytes.Count(checksumPTX, []byte("atom.global.add.u64")))
	require.Zero(t, bytes.Count(checksumPTX, []byte("st.global")))
}
