//go:build cgo && linux

package driver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/internal/abi/clib"
	"github.com/kvgate/kvgate/internal/testutil"
)

func image(t testing.TB) []byte {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(testutil.Root(t), "cuda/cudatest/testdata/behaviours.ptx"))
	require.NoError(t, err)
	return src
}

func fillIndex(b *cuda.Batch, s cuda.Stream, f cuda.Function, p cuda.DevicePtr, n, v uint32) {
	a := b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{(n + 127) / 128, 1, 1}, Block: [3]uint16{128, 1, 1}}, 16)
	binary.LittleEndian.PutUint64(a, uint64(p))
	binary.LittleEndian.PutUint32(a[8:], n)
	binary.LittleEndian.PutUint32(a[12:], v)
}

// requireWorks runs a kernel, a copy and an event.
func requireWorks(t testing.TB, d *driver.Device) {
	t.Helper()
	m, err := d.LoadModule(image(t))
	require.NoError(t, err)
	f, err := d.Function(m, "fill_index")
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{HighPriority: true})
	require.NoError(t, err)
	e, err := d.NewEvent()
	require.NoError(t, err)
	p, err := d.Alloc(400, cuda.AllocOptions{})
	require.NoError(t, err)
	h, err := d.AllocPinned(400, cuda.AllocOptions{})
	require.NoError(t, err)
	var b cuda.Batch
	fillIndex(&b, s, f, p, 100, 7)
	b.Copy(s, h.Device, p, 400)
	b.Record(s, e)
	require.NoError(t, d.Submit(&b))
	require.NoError(t, d.SyncStream(context.Background(), s))
	marks := []cuda.Mark{{Event: e}}
	require.NoError(t, d.Poll(marks))
	require.Equal(t, cuda.MarkFired, marks[0].State)
	require.EqualValues(t, 106, binary.LittleEndian.Uint32(h.Host[396:]))
	require.NoError(t, d.UnloadModule(m))
	require.NoError(t, d.DestroyEvent(e))
	require.NoError(t, d.DestroyStream(s))
	require.NoError(t, d.Free(p))
	require.NoError(t, d.FreePinned(h))
}

func TestHandlesAreNotUsedAgain(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	seen := map[cuda.Event]bool{}
	for range 2000 {
		e, err := d.NewEvent()
		require.NoError(t, err)
		require.False(t, seen[e])
		seen[e] = true
		require.NoError(t, d.DestroyEvent(e))
		require.ErrorIs(t, d.Poll([]cuda.Mark{{Event: e}}), cuda.ErrInvalidHandle)
	}
	// More than a chunk of the table at once.
	var all []cuda.Mark
	for range 2500 {
		e, err := d.NewEvent()
		require.NoError(t, err)
		all = append(all, cuda.Mark{Event: e})
	}
	require.NoError(t, d.Poll(all))
	for _, m := range all {
		require.Equal(t, cuda.MarkFired, m.State)
	}
}

func TestReadAndWriteInChunks(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	want := make([]byte, 3<<20+777)
	for i := range want {
		want[i] = byte(i * 31 >> 3)
	}
	p, err := d.Alloc(uint64(len(want)), cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, d.Write(p, want))
	got := make([]byte, len(want))
	require.NoError(t, d.Read(got, p))
	require.True(t, bytes.Equal(want, got))
	require.ErrorIs(t, d.Read(got, p+1), cuda.ErrInvalidValue)
	require.ErrorIs(t, d.Write(p+cuda.DevicePtr(len(want)), want[:1]), cuda.ErrInvalidValue)
}

func TestPTXNewerThanTheDriver(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	src := bytes.Replace(image(t), []byte(".version 7.8"), []byte(".version 8.7"), 1)
	_, err = d.LoadModule(src)
	require.ErrorIs(t, err, cuda.ErrUnsupportedPTX)
	require.ErrorContains(t, err, "the image is PTX ISA 8.7 (CUDA 12.8), the driver supports CUDA 12.4, which takes ISA 8.4")
}

func TestFaultsInPTXAreTold(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	_, err = d.LoadModule([]byte(".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n\tfrobnicate.u32 %r1;\n}\n"))
	require.ErrorIs(t, err, cuda.ErrInvalidPTX)
	require.ErrorContains(t, err, "frobnicate")
}

func TestCostScaleIsForSimulators(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	_, err = d.Alloc(64, cuda.AllocOptions{CostScale: 2})
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
}

func TestKillReachesTheCaller(t *testing.T) {
	soft, err := softcuda.Add(sim.Options{Real: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, soft.Remove()) }()
	d, err := driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal()})
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, soft.Sim().Kill(cuda.ErrECC, "a test"))
	err = d.SyncStream(context.Background(), s)
	require.ErrorIs(t, err, cuda.ErrECC)
	require.ErrorIs(t, d.Poll(nil), cuda.ErrECC, "without asking the driver")
	require.NoError(t, d.Close(), "what is dead needs no more than to be given back")
	require.Nil(t, soft.Sim())
	// The primary context of the device can be had anew.
	d, err = driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal()})
	require.NoError(t, err)
	requireWorks(t, d)
	require.NoError(t, d.Close())
}

// crossings returns how often fn crosses into C. The count is the process's, so
// the least of a few is taken.
func crossings(fn func()) int64 {
	least := int64(math.MaxInt64)
	for range 5 {
		before := runtime.NumCgoCall()
		fn()
		least = min(least, runtime.NumCgoCall()-before)
	}
	return least
}

// A step is one crossing, as is a poll, and allocates nothing.
func TestSubmitAllocatesNothing(t *testing.T) {
	d, b, marks := step(t, library(t, clib.NoOp))
	require.EqualValues(t, 1, crossings(func() { require.NoError(t, d.Submit(b)) }))
	require.EqualValues(t, 1, crossings(func() { require.NoError(t, d.Poll(marks)) }))
	allocs := testing.AllocsPerRun(100, func() {
		if d.Submit(b) != nil || d.Poll(marks) != nil {
			t.Error("failed")
		}
	})
	require.Zero(t, allocs)
	require.NoError(t, d.Close())
}
