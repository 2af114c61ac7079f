package ptx

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzStart: whatever a launch asks for, a kernel is refused, runs, or traps.
func FuzzStart(f *testing.F) {
	var kernels []*Kernel
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(f, err)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(f, err)
		m, err := Parse(file, src)
		require.NoError(f, err)
		kernels = append(kernels, m.Kernels()...)
	}
	for i, k := range kernels {
		p := make([]byte, k.ParamBytes())
		copy(p, params(uint64(base), uint64(base+4096), uint64(base+64), uint64(100)))
		f.Add(uint16(i), uint32(1), uint32(1), uint32(64), uint32(1), uint32(0), p)
		f.Add(uint16(i), uint32(3), uint32(2), uint32(7), uint32(5), uint32(64), p)
		f.Add(uint16(i), uint32(0), uint32(1<<20), uint32(1<<31), uint32(2), uint32(1<<31), p[:len(p)-1])
	}
	f.Fuzz(func(t *testing.T, which uint16, gx, gy, bx, by, shared uint32, p []byte) {
		k := kernels[int(which)%len(kernels)]
		r, err := k.Start(testMemory{{Base: base, Data: make([]byte, 8192)}},
			Launch{Grid: [3]uint32{gx, gy, 1}, Block: [3]uint32{bx, by, 1}, DynamicShared: shared, Params: p, StepLimit: 5000})
		if (r == nil) == (err == nil) {
			t.Fatalf("run %v, error %v", r, err)
		}
		if err != nil {
			require.ErrorIs(t, err, ErrLaunch)
			return
		}
		done, err := r.Step(3)
		var trap *Trap
		if err != nil && (!errors.As(err, &trap) || !done || errors.Is(err, ErrBadInstruction)) {
			t.Fatalf("done %t, error %v", done, err)
		}
		if err == nil && done != (r.Blocks() <= 3) {
			t.Fatalf("done %t after 3 of %d thread blocks", done, r.Blocks())
		}
	})
}
