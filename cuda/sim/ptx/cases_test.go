package ptx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ptxCase is a kernel as several compilers made it, with what it is to do: see
// testdata/cases/README.md.
type ptxCase struct {
	Buffers []struct {
		Init []byte
		Want []byte
	}
	Tolerance float64      `json:"relative_tolerance_f32"`
	Variants  []ptxVariant `json:"variants"`
}

type ptxVariant struct {
	PTX, Entry  string
	Grid, Block [3]uint32
	Shared      uint32
	Args        []struct {
		Buffer *int
		Offset uint64
		U32    *uint32
		U64    *uint64
	}
}

// paramBytes lays the arguments out as the kernel has its parameters. Trailing
// pointers that the case does not list are null.
func (v *ptxVariant) paramBytes(k *Kernel, buffers []uint64) ([]byte, error) {
	p := make([]byte, k.ParamBytes())
	ps := k.Params()
	if len(v.Args) > len(ps) || len(ps) > len(v.Args)+2 {
		return nil, fmt.Errorf("%d arguments for %d parameters", len(v.Args), len(ps))
	}
	for i, a := range v.Args {
		at := p[ps[i].Offset:]
		switch {
		case a.Buffer != nil:
			copy(at, params(buffers[*a.Buffer]+a.Offset))
		case a.U32 != nil:
			copy(at, params(*a.U32))
		case a.U64 != nil:
			copy(at, params(*a.U64))
		default:
			return nil, fmt.Errorf("argument %d has no value", i)
		}
	}
	return p, nil
}

// TestPTXCases runs every text of a folder of cases and compares memory with what the
// case wants. KVGATE_PTX_CASES names another folder of the same form.
func TestPTXCases(t *testing.T) {
	dir := filepath.Join("testdata", "cases")
	if other := os.Getenv("KVGATE_PTX_CASES"); other != "" {
		dir = other
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "no cases in %s", dir)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var c ptxCase
		require.NoError(t, json.Unmarshal(text, &c), file)
		require.NotEmpty(t, c.Variants, file)
		for _, v := range c.Variants {
			t.Run(strings.TrimSuffix(v.PTX, ".ptx"), func(t *testing.T) { runCase(t, dir, &c, &v) })
		}
	}
}

func runCase(t *testing.T, dir string, c *ptxCase, v *ptxVariant) {
	src, err := os.ReadFile(filepath.Join(dir, v.PTX))
	require.NoError(t, err)
	m, err := Parse(v.PTX, src)
	require.NoError(t, err)
	k, ok := m.Kernel(v.Entry)
	require.True(t, ok, "no kernel %s", v.Entry)
	var a arena
	addresses := make([]uint64, len(c.Buffers))
	for i, b := range c.Buffers {
		addresses[i] = a.put(bytes.Clone(b.Init))
	}
	l := Launch{Grid: v.Grid, Block: v.Block, DynamicShared: v.Shared, SharedLimit: maxShared}
	l.Params, err = v.paramBytes(k, addresses)
	require.NoError(t, err)
	if m.ImageSize() > 0 {
		l.Image = base + uint64(len(a.testMemory))<<32
		a.put(m.Image(l.Image))
	}
	runAll(t, k, a, l)
	checked := false
	for i, b := range c.Buffers {
		if b.Want == nil {
			continue
		}
		checked = true
		compareCase(t, i, b.Want, a.testMemory[i].Data, c.Tolerance)
	}
	require.True(t, checked, "the case wants nothing")
}

func compareCase(t *testing.T, buffer int, want, got []byte, tolerance float64) {
	t.Helper()
	require.Equal(t, len(want), len(got))
	if tolerance == 0 {
		for i := range want {
			require.Equal(t, want[i], got[i], "buffer %d, byte %d", buffer, i)
		}
		return
	}
	w, g := valuesOf[float32](want), valuesOf[float32](got)
	for i := range w {
		x, y := float64(w[i]), float64(g[i])
		same := x == y || math.IsNaN(x) && math.IsNaN(y)
		require.True(t, same || math.Abs(x-y) <= tolerance*math.Abs(x), "buffer %d, float %d: %g instead of %g", buffer, i, y, x)
	}
}
