package ptx

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// testMemory is a few regions at chosen addresses.
type testMemory []Region

func (m testMemory) Region(addr uint64) (Region, bool) {
	for _, r := range m {
		if addr-r.Base < uint64(len(r.Data)) {
			return r, true
		}
	}
	return Region{}, false
}

func loadModule(t testing.TB, file string) *Module {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	m, err := Parse(file, src)
	require.NoError(t, err)
	return m
}

func kernel(t testing.TB, file, name string) *Kernel {
	t.Helper()
	k, ok := loadModule(t, file).Kernel(name)
	require.True(t, ok, "kernel %s in %s", name, file)
	return k
}

// params packs arguments as a host compiler lays them out.
func params(args ...any) []byte {
	var p []byte
	for _, a := range args {
		if b, ok := a.([]byte); ok {
			p = append(p, b...)
			continue
		}
		n := binary.Size(a)
		for len(p)%n != 0 {
			p = append(p, 0)
		}
		p, _ = binary.Append(p, binary.LittleEndian, a)
	}
	return p
}

func runAll(t testing.TB, k *Kernel, mem Memory, l Launch) *Run {
	t.Helper()
	r, err := k.Start(mem, l)
	require.NoError(t, err)
	for done := false; !done; {
		done, err = r.Step(3)
		require.NoError(t, err)
	}
	return r
}

const base = 0x7f0000000000

func dirty(n int) []byte { return bytes.Repeat([]byte{0xee}, n) }

func TestZeroFlat(t *testing.T) {
	k := kernel(t, "zero.ptx", "zero_flat")
	data := dirty(1 << 20)
	r := runAll(t, k, testMemory{{Base: base, Data: data, Scale: 3}}, Launch{
		Grid: [3]uint32{7, 1, 1}, Block: [3]uint32{96, 1, 1}, Params: params(uint64(base+32), uint64(60000))})
	require.Equal(t, dirty(32), data[:32])
	require.Equal(t, make([]byte, 960000), data[32:960032])
	require.Equal(t, dirty(len(data)-960032), data[960032:])
	read, written := r.Traffic()
	require.Zero(t, read)
	require.EqualValues(t, 3*960000, written)
}

func TestZeroSpan(t *testing.T) {
	k := kernel(t, "zero.ptx", "zero_span")
	for _, start := range []int{0, 1, 7, 15, 16} {
		for _, n := range []int{0, 1, 5, 15, 16, 17, 31, 33, 1000, 4099} {
			data := dirty(1 << 13)
			want := dirty(1 << 13)
			clear(want[start : start+n])
			runAll(t, k, testMemory{{Base: base, Data: data}}, Launch{
				Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{40, 1, 1}, Params: params(uint64(base+start), uint64(n))})
			require.Equal(t, want, data, "%d bytes at %d", n, start)
		}
	}
}
